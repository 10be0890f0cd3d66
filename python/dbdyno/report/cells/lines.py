"""Pages about cells as text: head, findings, sections as tables that fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.report import console
from dbdyno.report.cells import arranged, page
from dbdyno.pages.reading import Analysis
from dbdyno.report.snapshot import lines

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"good": "green", "bad": "bold red", "even": "blue", "doubt": "yellow"}
_SIGNS = {"good": "+", "bad": "!", "even": "·", "doubt": "?"}


def draw(model: Analysis, out: Console) -> None:
    """The whole page."""
    from rich.text import Text

    shown = page.head(model)
    out.print(console.plain(shown["title"], "bold") + Text(f"  {' → '.join(shown['ends'])}"))
    facts = [shown["kind"], *([shown["elapsed"]] if shown["elapsed"] else []), *shown["chips"]]
    out.print(console.plain(" · ".join(facts), "dim"))
    verdict = shown["verdict"]
    out.print(Text(verdict["word"], style=_STYLES[verdict["tone"]]) + Text(f"  {shown['why']}"))
    said = page.said(model)
    if said:
        out.print()
        out.print(console.plain("FINDINGS", "bold"))
    for one in said:
        words = console.plain(one["text"], "" if one["tone"] == "even" else _STYLES[one["tone"]])
        console.item(out, _SIGNS[one["tone"]], words)
        if one["next"]:
            console.item(out, " ", console.plain(f"next: {one['next']}", "dim"))
    for section in arranged.sections(model):
        lines.section(section, out)
