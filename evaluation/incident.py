"""The picture in README, docs/incident.svg: ``python -m evaluation.incident`` draws it anew.

It shows the demo's stream: the average of the latency, and below it the lift of five conditions.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from matplotlib.dates import DateFormatter, MinuteLocator, date2num
from matplotlib.figure import Figure

import ids
from evaluation.bench import session
from evaluation.drawing import GREY, OURS, canvas, label_lines, svg
from ids.demo import Story, generate

_PICTURE = Path(__file__).parents[1] / "docs" / "incident.svg"
_ROWS = 200_000
_CULPRIT = "region = 'EU-West' AND tier = 'premium'"
_OTHERS = {
    "region = 'EU-West' AND tier <> 'premium'": "EU-West, not premium",
    "region = 'US-East' AND tier = 'premium'": "US-East, premium",
    "region = 'AP-South'": "AP-South",
    "endpoint = '/checkout'": "/checkout",
}


def attributed(events: Path) -> pa.Table:
    """The average at every slide, and the lift of each condition in order."""
    story = Story(_ROWS)
    items = ",\n".join(
        f"SHAPLEY_ATTRIBUTE(AVG(latency), {condition} WITH (SHARE, LIFT)) AS item{number}"
        for number, condition in enumerate((_CULPRIT, *_OTHERS))
    )
    return ids.sql(
        f"""SELECT AVG(latency) AS average, {items} FROM server_events
        WINDOW w AS (ORDER BY event_time ROWS {story.window} PRECEDING SLIDE {story.slide} ROWS)
        EMIT CHANGES""",
        server_events=events,
    )


def drawn(table: pa.Table) -> Figure:
    """The emits until the incident is at its height, the average above the lifts."""
    shown = table.slice(78, 27)
    times = date2num(shown["emit_at"].to_pylist())
    figure, (above, below) = canvas(1, 3.9, lines=2, sharex=True, height_ratios=[2, 3])
    figure.set_size_inches(7.4, 3.9)
    above.plot(times, shown["average"].to_numpy(), color="black")
    above.set_title("AVG(latency) of the last 10,000 requests, ms")
    below.set_title("lift: what the requests of a condition add to it, ms")
    ends = []
    for number, name in enumerate(("EU-West, premium", *_OTHERS.values())):
        lift = shown[f"item{number}_lift"].to_numpy()
        color, width = (OURS, 2.4) if number == 0 else (GREY, 1.0)
        below.plot(times, lift, color=color, linewidth=width)
        ends.append((float(times[-1]), float(lift[-1]), name, color))
    below.xaxis.set_major_locator(MinuteLocator(range(0, 60, 5)))
    below.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    below.margins(x=0)
    label_lines(below, ends)
    return figure


def _main() -> None:
    with TemporaryDirectory(prefix="ids-incident-") as directory:
        with session() as spark:
            generate(spark, _ROWS, Path(directory, "events"))
        table = attributed(Path(directory, "events"))
    _PICTURE.write_text(svg(drawn, table), encoding="utf-8")


if __name__ == "__main__":
    _main()
