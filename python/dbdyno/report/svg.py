"""A chart as inline SVG that is safe and small enough for a page.

Vega's SVG is parsed and rebuilt with an allow list of elements and attributes, so that nothing but drawing remains,
whatever a name or an SQL text contains. In the process identifiers get a prefix (several figures share one page), tool
tips move from `aria-label` to `data-tip` (the page's script shows them), numbers lose unnecessary digits, and
neighbouring shapes with the same look become one path (which reduces a heat map to a tenth).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from dbdyno.report.figures import theme

_SVG = "{http://www.w3.org/2000/svg}"
_ELEMENTS = {"svg", "g", "path", "text", "tspan", "line", "rect", "circle", "defs", "clipPath"}
_ATTRIBUTES = {
    "viewBox",
    "transform",
    "d",
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "dx",
    "dy",
    "width",
    "height",
    "r",
    "cx",
    "cy",
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "stroke-dasharray",
    "stroke-miterlimit",
    "opacity",
    "clip-path",
    "id",
    "text-anchor",
    "font-size",
    "font-weight",
    "font-style",
    "data-tip",
}
_NUMBER = re.compile(r"(?<!\d)-?\d++\.\d{3,}(?:e-?\d+)?")
_REFERENCE = re.compile(r"^url\(#([\w-]+)\)$")


def vega_lite_version() -> str:
    """Return the version of Vega-Lite that Altair writes, in the form that vl-convert takes: `6.1`."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def inline(chart: Any, prefix: str, label: str) -> str:
    """Return the chart without its title as one `<svg>` element; `label` is its text for a screen reader.

    `prefix` must be unique on the page and consist of letters, digits and hyphens.
    """
    import vl_convert

    spec = chart.to_dict(validate=False)
    spec.pop("title", None)
    spec = theme.fit_titles(spec)
    raw = vl_convert.vegalite_to_svg(spec, vl_version=vega_lite_version())
    return clean_svg(raw, prefix, label)


def clean_svg(raw: str, prefix: str, label: str) -> str:
    """Return SVG text reduced to the allow list, with prefixed identifiers and merged shapes."""
    # The input is the output of our own renderer, not a foreign document.
    tree = ET.fromstring(raw)  # noqa: S314
    # Vega numbers identifiers consecutively within a process; here each figure starts with 0.
    found = [name for element in tree.iter() if (name := element.get("id"))]
    names = {name: f"{prefix}-{at}" for at, name in enumerate(dict.fromkeys(found))}
    root = _copy(tree, names)
    if root is None:
        return ""
    root.attrib.pop("width", None)
    root.attrib.pop("height", None)
    root.attrib |= {"role": "img", "aria-label": label}
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _copy(element: ET.Element, names: Mapping[str, str]) -> ET.Element | None:
    name = element.tag.removeprefix(_SVG)
    if name not in _ELEMENTS or element.get("display") == "none":
        return None
    copy = ET.Element(name)
    copy.text = element.text if name in ("text", "tspan") else None
    for key, value in element.attrib.items():
        is_mark = name != "g" and element.get("role") == "graphics-symbol"
        kept = "data-tip" if is_mark and key == "aria-label" else key
        if kept in _ATTRIBUTES:
            copy.set(kept, _value(kept, value, names))
    for child in element:
        _append(copy, _copy(child, names))
    if name == "g":
        return _flat(copy)
    return None if name == "path" and not copy.get("d") else copy


def _append(parent: ET.Element, child: ET.Element | None) -> None:
    """Append a child, or merge its path into that of an equal neighbour."""
    if child is None or (parent.tag != "clipPath" and _is_invisible(child)):
        return
    last = parent[-1] if len(parent) else None
    if last is not None and child.tag == last.tag == "path" and _alike(last, child):
        last.set("d", last.get("d", "") + child.get("d", ""))
    else:
        parent.append(child)


def _alike(first: ET.Element, second: ET.Element) -> bool:
    """Return True if two paths differ only in their points, so that one element can draw both.

    Outlines and translucent fills would look different where shapes overlap, and a tip belongs to one shape: such paths
    are not alike.
    """
    mine, yours = ({**e.attrib, "d": ""} for e in (first, second))
    is_flat = mine.get("stroke") in (None, mine.get("fill"))
    return is_flat and not {"opacity", "data-tip"} & set(mine) and mine == yours


def _is_invisible(element: ET.Element) -> bool:
    """Return True for the background of a Vega group: a path without fill and stroke, which inherits `none`."""
    return (
        element.tag == "path" and element.get("stroke") is None and element.get("fill") in (None, "none", "transparent")
    )


def _flat(group: ET.Element) -> ET.Element | None:
    """Return the only child of a group without attributes, None for an empty group, otherwise the group."""
    if not len(group):
        return None
    if not group.attrib and len(group) == 1:
        return group[0]
    return group


def _value(key: str, value: str, names: Mapping[str, str]) -> str:
    """Return an attribute's value: references renamed, foreign references removed, numbers shortened."""
    if key == "id":
        return names[value]
    if key in ("fill", "stroke", "clip-path") and "url" in value:
        reference = _REFERENCE.match(value)
        return f"url(#{names[reference[1]]})" if reference and reference[1] in names else "none"
    if key in ("d", "transform", "viewBox", "stroke-width"):
        return _NUMBER.sub(_short, value)
    return value


def _short(match: re.Match[str]) -> str:
    return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")
