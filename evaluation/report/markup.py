"""HTML elements: what is put in is escaped, unless it is an element itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

__all__ = ["Markup", "element", "glued", "joined", "scrolled"]

_VOID = {"meta", "br"}
_UNIT = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:×|%|±|[KMG]?i?B|[nµm]?s|min|h)(?!\w))")
_EQUATION = re.compile(r"(?<!\w)([\w|/]{1,4}) = (?=\S)")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *inside: str, **attributes: str | None) -> Markup:
    """One element; an attribute that is None is left out, and ``_`` in its name is a hyphen.

    >>> element("p", "a < b, ", element("b", "c"), class_="note")
    '<p class="note">a &lt; b, <b>c</b></p>'
    """
    spelled = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{spelled}>")
    return Markup(f"<{name}{spelled}>{joined(inside)}</{name}>")


def joined(pieces: Iterable[str]) -> Markup:
    """Several pieces as one."""
    return Markup("".join(p if isinstance(p, Markup) else escape(glued(p)) for p in pieces))


def glued(text: str) -> str:
    """No line ends between a number and its unit, nor within a short equation.

    >>> glued("at N = 10 it takes 5 µs or 3 ×").split(" ")
    ['at', 'N\\xa0=\\xa010', 'it', 'takes', '5\\xa0µs', 'or', '3\\xa0×']
    """
    return _EQUATION.sub("\\1\u00a0=\u00a0", _UNIT.sub("\u00a0", text))


def scrolled(name: str, inside: Markup, kind: str = "scroll") -> Markup:
    """A box that scrolls by itself, by keys as well: a wide table must not widen the page."""
    return element("div", inside, class_=kind, tabindex="0", role="region", aria_label=name)
