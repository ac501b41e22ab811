"""A figure's SVG made part of a page: nothing in it may touch, or be touched by, another one's."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from evaluation.report.markup import Markup

__all__ = ["inlined", "points"]

_LEFT_OUT = {"metadata", "style"}  # a style inside would hold for the whole page


def inlined(svg: str, name: str, alt: str) -> Markup:
    """The drawing as an element of a page, told to those who cannot see it by ``alt``.

    Equal parts of two figures bear equal names, and a name on a page must be unique: every name,
    and every reference to one, gets the figure's own name before it. Comments, the document's
    prologue and namespaces go: HTML knows what ``svg`` is.
    """
    root = ElementTree.fromstring(svg)
    for node in root.iter():
        node.tag = _local(node.tag)
        node.attrib = {_local(key): _named(_local(key), v, name) for key, v in node.items()}
        node.text, node.tail = _ink(node.text), _ink(node.tail)
        for child in [c for c in node if _local(c.tag) in _LEFT_OUT]:
            node.remove(child)
    for key in ("width", "height"):  # the page decides; the viewBox keeps the proportions
        root.attrib.pop(key, None)
    root.attrib |= {"role": "img", "aria-label": alt}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def points(svg: str) -> float:
    """How wide a drawing is by itself, in points."""
    _, _, width, _ = ElementTree.fromstring(svg).attrib["viewBox"].split()
    return float(width)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _named(key: str, value: str, name: str) -> str:
    """An attribute with the names in it made the figure's own; line breaks in paths are blanks."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return re.sub(r"^#", f"#{name}-", value)
    return re.sub(r"url\(#", f"url(#{name}-", " ".join(value.split()))


def _ink(text: str | None) -> str | None:
    return text if text and text.strip() else None
