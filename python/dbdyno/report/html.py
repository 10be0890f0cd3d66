"""The report as one HTML file: offline, printable, readable on a phone, safe.

How it stays safe: Jinja escapes everything; figures pass an allow list (`svg.py`); the analysis
goes in as JSON without any character that HTML or JavaScript could take for its own; and a content
security policy forbids the network and all scripts and styles but the two on the page, named by
their hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from dbdyno.pages import reading
from dbdyno.report.figures import theme
from dbdyno.report.files import write_whole
from dbdyno.report.sections import order
from dbdyno.report.typography import unbroken

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def render_html(analysis: Mapping[str, Any]) -> str:
    """The whole page as text.

    Raises:
        ReportError: the analysis has another schema or kind, or is torn; `where` names the place.
    """
    safe = reading.read(analysis)
    sections: list[dict[str, Any]] = [
        {
            "name": section.name,
            "title": section.title,
            "view": view,
            "template": section.template or section.name,
        }
        for section in order(safe)
        if (view := section.view(safe)) is not None
    ]
    style, script = _style(), _template_text("report.js")
    return unbroken(
        _environment()
        .get_template("report.html")
        .render(
            sections=sections,
            title=sections[0]["view"]["title"],
            style=_trusted(style),
            script=_trusted(script),
            policy=_policy(style, script),
            analysis=_trusted(embedded_json(analysis)),
        )
    )


def write_html(analysis: Mapping[str, Any], path: Path | str) -> Path:
    """Writes the page; the file is complete or not there. Returns its path.

    Raises:
        ReportError: as `render_html`, or the file cannot be written.
    """
    target = Path(path)
    write_whole(target, render_html(analysis).encode())
    return target


def embedded_json(analysis: Mapping[str, Any]) -> str:
    """The analysis as JSON that can stand inside `<script>`; NaN becomes null."""
    plain = json.dumps(reading.finite(analysis), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        plain = plain.replace(character, escape)
    return plain


def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_template_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _template_text(name: str) -> str:
    return resources.files("dbdyno.report").joinpath("templates", name).read_text(encoding="utf-8")


def _trusted(own: str) -> Any:
    from markupsafe import Markup

    return Markup(own)  # noqa: S704 - only our own style sheet, script and escaped JSON


def _style() -> str:
    """The style sheet with the rules that give the figures their dark colours."""
    dark = "".join(
        f'.themed [fill="{light}"]{{fill:{night}}}.themed [stroke="{light}"]{{stroke:{night}}}'
        for light, night in theme.DARK.items()
    )
    return _template_text("report.css") + f"@media screen and (prefers-color-scheme:dark){{{dark}}}"


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded from anywhere; only our style and script run, by their hash."""
    rules = (
        "default-src 'none'",
        "img-src data:",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
