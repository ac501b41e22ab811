"""The case study: how soon after its onset the planted predicate leads for three emits in a row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.baselines.estimators import Floats
from evaluation.bench import Bench, equality, plain, registering, where
from evaluation.step import SUBJECTS, Findings, Row
from ids.demo.events import SHIFT, incident_rows

SIGNALS = {"AVG lift": "lift", "ΔΦ of VAR": "delta"}
SLIDE = 20  # rows; the paper does not say, but its 79 and 9,399 are 9,320 apart: a multiple
# One of four is always first: a rule may also ask that the leader stand out from its own calm.
_RULES = {"first of four": -np.inf} | {f"first, {k} σ above its calm": float(k) for k in (2, 3)}
_IN_A_ROW = 3  # the paper's
_BEFORE = 390  # emits before the onset: the paper's
_CALM = 10  # windows of rows, before those emits, that tell what is usual
_NOBODY = -1
Leaders = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Candidate:
    """A conjunction of equalities, under the name it is registered by.

    >>> PLANTED.condition, PLANTED.label
    ("region = 'EU-West' AND tier = 'premium'", 'EU-West ∧ premium')
    """

    name: str
    equal: tuple[tuple[str, str | int | float], ...]

    @property
    def condition(self) -> str:
        return " AND ".join(equality(column, value) for column, value in self.equal)

    @property
    def label(self) -> str:
        return " ∧ ".join(str(value) for _, value in self.equal)

    def mask(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """The rows it holds on, found without the engine."""
        holds = [where(plain(rows[name]), value) for name, value in self.equal]
        return np.asarray(np.logical_and.reduce(holds))


PLANTED = Candidate("planted", (("region", "EU-West"), ("tier", "premium")))
_CHECKOUT = Candidate("checkout", (("endpoint", "/checkout"),))
_US_PREMIUM = Candidate("us_premium", (("region", "US-East"), ("tier", "premium")))
_EU_BASIC = Candidate("eu_basic", (("region", "EU-West"), ("tier", "basic")))
_EU = Candidate("eu", (("region", "EU-West"),))
_PREMIUM = Candidate("premium", (("tier", "premium"),))
RIVALS = {
    "siblings": (PLANTED, _US_PREMIUM, _EU_BASIC, _CHECKOUT),
    "parents": (PLANTED, _EU, _PREMIUM, _CHECKOUT),
}
"""Siblings share a value with the planted predicate but no row; parents hold on all its rows."""


def replay(
    rows: pa.Table, candidates: Sequence[Candidate], window: int, slide: int, onset: int
) -> pa.Table:
    """For each full window: tuples since row ``onset``, the average, each candidate's signals."""
    asked = ",\n".join(
        f"SHAPLEY_ATTRIBUTE(AVG(latency), {one.name} WITH (SHARE, LIFT)) AS {one.name},\n"
        f"SHAPLEY_DELTA(VAR_POP(latency), {one.name}) AS {one.name}_delta"
        for one in candidates
    )
    script = f"""
        {registering({one.name: one.condition for one in candidates}, "requests")}
        SELECT AVG(latency) AS average, {asked}
        FROM requests
        WINDOW w AS (ORDER BY event_time ROWS {window} PRECEDING SLIDE {slide} ROWS)
        EMIT CHANGES;
    """
    emits = ids.sql(script, requests=rows)
    tuples = slide * np.arange(1, emits.num_rows + 1) - onset
    columns = {"tuples": pa.array(tuples), "average": emits["average"]}
    for signal, part in SIGNALS.items():
        columns |= {f"{signal}: {one.label}": emits[f"{one.name}_{part}"] for one in candidates}
    return pa.table(columns).filter(pc.equal(emits["n"], window))


def replanted(calm: pa.Table, onset: int) -> pa.Table:
    """Calm rows with another incident in them, from row ``onset`` of these to their end."""
    slowed, values = PLANTED.mask(calm), calm["latency"].to_numpy()
    slowed[:onset] = False
    at = calm.column_names.index("latency")
    return calm.set_column(at, "latency", pa.array(np.where(slowed, SHIFT * values, values)))


def leaders(signal: Floats, least: Floats) -> Leaders:
    """Who has led for three emits, this one the last, and exceeded its ``least``; −1 where none."""
    first = signal.argmax(axis=0)
    first = np.where(signal.max(axis=0) > least[first], first, _NOBODY)
    runs = np.lib.stride_tricks.sliding_window_view(first, _IN_A_ROW)
    held = np.where((runs == runs[:, :1]).all(axis=1), runs[:, 0], _NOBODY)
    return np.concatenate([np.full(_IN_A_ROW - 1, _NOBODY), held])


def led_from(held: Leaders, tuples: npt.NDArray[np.int64]) -> int | None:
    """Tuples after the onset when the planted predicate has led, its three emits all after it."""
    begun = np.roll(tuples, _IN_A_ROW - 1)  # of the run that ends here; nobody leads where it wraps
    after = tuples[(held == 0) & (begun > 0)]
    return int(after[0]) if after.size else None


def _calm(emits: pa.Table) -> pa.Table:
    """The emits before those that are watched, but for the first, which has no delta."""
    before = int((emits["tuples"].to_numpy() <= 0).sum()) - _BEFORE
    return emits.slice(1, before - 1)


def _judged(emits: pa.Table, calm: pa.Table) -> Iterator[tuple[Row, Leaders]]:
    """Each signal by each rule: when the planted predicate leads, and who leads at each emit."""
    for signal in SIGNALS:
        names = [name for name in emits.column_names if name.startswith(signal)]
        values, quiet = (np.stack([table[name] for name in names]) for table in (emits, calm))
        for rule, deviations in _RULES.items():
            held = leaders(values, quiet.mean(axis=1) + deviations * quiet.std(axis=1))
            led = led_from(held, emits["tuples"].to_numpy())
            yield {"signal": signal, "rule": rule, "led_after": led}, held


class _Scene:
    """The stream, where its incident lies, and how large the window is that slides over it."""

    def __init__(self, bench: Bench) -> None:
        self.rows = bench.events(SUBJECTS["synthetic"])
        self.window = bench.size.of(quick=2_000, full=20_000)
        self.onset, end = incident_rows(self.rows.num_rows)
        self.incident = end - self.onset

    def emits(self, candidates: Sequence[Candidate], slide: int, after: int) -> pa.Table:
        """A window fills, ten windows are calm, then come the emits before, and ``after`` rows."""
        lead_in = self.window * (1 + _CALM) + _BEFORE * slide
        rows = self.rows.slice(self.onset - lead_in, lead_in + after)
        return replay(rows, candidates, self.window, slide, lead_in)


def case(bench: Bench) -> Findings:
    """What the figures show: every emit near the onset, and some of those further away."""
    scene = _Scene(bench)
    candidates = list(dict.fromkeys(one for rivals in RIVALS.values() for one in rivals))
    emits = scene.emits(candidates, SLIDE, scene.incident + 3 * scene.window // 2)
    tuples = emits["tuples"].to_numpy()
    near = np.abs(tuples) <= 100 * SLIDE
    far = np.arange(len(tuples)) % bench.size.of(quick=5, full=40) == 0
    seen = (near | far) & (tuples > -_BEFORE * SLIDE)
    told = emits.append_column("near", pa.array(near)).append_column("far", pa.array(far))
    rows: list[Row] = told.filter(seen).to_pylist()
    facts = {"window": scene.window, "slide": SLIDE, "incident": scene.incident}
    return {"rq6_case": rows, "rq6_case_facts": [{**facts, "planted": PLANTED.label}]}


def leads(rivals: str, bench: Bench) -> Findings:
    """Every slide and rule: when the planted predicate leads, and who led before."""
    scene = _Scene(bench)
    rows: list[Row] = []
    for slide in (1, 10, SLIDE, 50):
        emits = scene.emits(RIVALS[rivals], slide, scene.incident)
        watched = np.flatnonzero(emits["tuples"].to_numpy() <= 0)[-_BEFORE:]
        for found, held in _judged(emits, _calm(emits)):
            decoy, planted = int((held[watched] > 0).sum()), int((held[watched] == 0).sum())
            before = {"before": len(watched), "decoy_led": decoy, "planted_led": planted}
            rows.append({"rivals": rivals, "slide": slide, **found, **before})
    return {"rq6_leads": rows}


def onsets(bench: Bench) -> Findings:
    """The incident planted anew on calm rows elsewhere, and followed for half a window."""
    scene = _Scene(bench)
    lead_in, after = scene.window + SLIDE, scene.window // 2
    last = scene.onset - lead_in - after - SLIDE
    places = np.linspace(0, last, bench.size.of(quick=5, full=20)).astype(int).tolist()
    rows: list[Row] = []
    for rivals, candidates in RIVALS.items():
        calm = _calm(scene.emits(candidates, SLIDE, 0))
        for k, first in enumerate(places):
            onset = lead_in + k % SLIDE  # slides do not know where an incident begins
            table = replanted(scene.rows.slice(first, onset + after), onset)
            emits = replay(table, candidates, scene.window, SLIDE, onset)
            facts: Row = {"rivals": rivals, "onset": first + onset}
            rows += [{**facts, **found} for found, _ in _judged(emits, calm)]
    return {"rq6_onsets": rows}
