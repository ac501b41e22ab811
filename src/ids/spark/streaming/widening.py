"""Parts that grow with a stream: new levels are columns of zeros, and no sum changes.

How far values reach is known only when they have come. Levels are added a whole limb at a time,
above or below, so the bits that are there stay where they are.
"""

from __future__ import annotations

from ids.exact import Parts, bits_of
from ids.exact.limbs import LIMB_BITS
from ids.spark.panes import COUNT, Item, Layout
from ids.spark.streaming.revision import Revision

__all__ = ["Reach", "farther", "relaid", "widened"]

Reach = tuple[float, float]


def farther(a: Reach | None, b: Reach | None) -> Reach | None:
    """The reach, (largest, smallest but 0) magnitude, of both; None where nothing but 0 is."""
    known = [reach for reach in (a, b) if reach is not None]
    if not known:
        return None
    return max(large for large, _ in known), min(small for _, small in known)


def widened(parts: Parts, before: Reach | None, now: Reach, degree: int) -> Parts:
    """Parts of a measure that hold values of reach ``now``, and all that ``parts`` held.

    Where values so far were all 0 (``before`` is None) nothing needs to be held.
    """
    fitting = Parts.fit(*now, degree)
    largest, smallest = bits_of(*now)
    if before is None:
        # room to spare goes to both ends: the next value may lie a little beyond these
        spare = LIMB_BITS * fitting.levels - (largest - smallest)
        return fitting._replace(exponent=largest + spare // 2) if spare > 0 else fitting
    above = max(0, -(-(largest - parts.exponent) // LIMB_BITS))
    below = max(0, -(-(parts.exponent - LIMB_BITS * parts.levels - smallest) // LIMB_BITS))
    levels = parts.levels + above + below
    return Parts(parts.exponent + LIMB_BITS * above, levels, 2 * levels if parts.squares else 0)


def relaid(old: Layout, new: Layout, revision: Revision | None = None) -> dict[str, str]:
    """Where the sums of ``old`` lie under the wider parts of ``new``; those not named are 0.

    Where parts were chosen anew, all sums but the counts are 0, and it does not matter where they
    go. With a ``revision`` the two are of different scripts.
    """
    known, moved = set(new.sums), {COUNT: COUNT}
    for number, now in enumerate(new.parts):
        for item in new.items(number):
            source = item if revision is None else _source(item, revision)
            if source is None:
                continue
            before = old.parts[source.number]
            above = (now.exponent - before.exponent) // LIMB_BITS
            moved[item.count] = source.count
            moved |= {item.first(k + above): source.first(k) for k in range(before.levels)}
            moved |= {item.second(k + 2 * above): source.second(k) for k in range(before.squares)}
    return {to: of for to, of in moved.items() if to in known}


def _source(item: Item, revision: Revision) -> Item | None:
    """Whose sums these were in the script before."""
    source = revision.source(item.number, item.predicate, 0)
    return None if source is None else Item(*source)
