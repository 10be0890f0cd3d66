"""The page about claims: what was published, what the model gives, and whether it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (
    "claim",
    "title",
    "quantity",
    "unit",
    "value",
    "low",
    "high",
    "band_low",
    "band_high",
    "verdict",
    "basis",
    "replications",
    "steady",
    "source",
)
TONES = {"holds": "good", "does not hold": "bad", "cannot tell": "doubt"}
SIGNS = {"holds": "+", "does not hold": "-", "cannot tell": "?"}


def view(model: Analysis) -> base.View:
    """All claims as text."""
    claims = [
        {
            "claim": fmt.line(claim.get("claim") or ""),
            "title": fmt.line(claim.get("title") or "", 200),
            "source": fmt.line(claim.get("source") or "", 300),
            "verdict": fmt.line(claim.get("verdict") or "cannot tell"),
            "tone": TONES.get(str(claim.get("verdict")), "doubt"),
            "basis": _basis(claim),
            "notes": [fmt.line(note, 600) for note in reading.strings(claim, "notes")],
            "parts": [_part(part) for part in reading.entries(claim, "parts")],
        }
        for claim in reading.entries(model, "claims")
    ]
    return {
        "title": fmt.line(model.get("title") or "Claims"),
        "facts": fmt.line(model.get("facts") or "", 300),
        "claims": claims,
    }


def _basis(claim: dict[str, Any]) -> str:
    """What agreement is worth, and how far the verdict can be trusted."""
    words = fmt.line(claim.get("basis") or "")
    replications = claim.get("replications")
    if replications and claim.get("steady") is False:
        words += f"; not settled by {replications} replications: another seed may say otherwise"
    elif replications:
        words += f"; {replications} replications"
    return words


def _part(part: dict[str, Any]) -> base.View:
    unit = fmt.line(part.get("unit") or "")
    return {
        "quantity": fmt.line(part.get("quantity") or "", 200),
        "value": f"{number(part.get('value'))} {unit}".strip(),
        "interval": interval(part.get("low"), part.get("high")),
        "band": band(part.get("band_low"), part.get("band_high")),
        "verdict": fmt.line(part.get("verdict") or ""),
        "tone": TONES.get(str(part.get("verdict")), "even"),
    }


def number(value: Any) -> str:
    """Four digits."""
    given = fmt.number(value)
    if given is None:
        return fmt.NONE
    return f"{given:,.0f}".replace(",", fmt.THIN) if abs(given) >= 10_000 else f"{given:.4g}"


def interval(low: Any, high: Any) -> str:
    """From low to high; nothing where the model gives the same number every time."""
    if low is None or high is None or low == high:
        return ""
    return f"{number(low)} to {number(high)}"


def band(low: Any, high: Any) -> str:
    """What is asked for."""
    if low is None and high is None:
        return ""
    if high is None:
        return f">= {number(low)}"
    return f"<= {number(high)}" if low is None else f"{number(low)} to {number(high)}"


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per quantity that a claim asks for."""
    found = []
    for claim in reading.entries(model, "claims"):
        for part in reading.entries(claim, "parts"):
            both = {**claim, **part}
            found.append({name: both.get(name) for name in COLUMNS})
    return found


def print_page(model: Analysis, page: Console) -> None:
    """A paragraph for each claim: verdict, title, figures, notes."""
    shown = view(model)
    page.print(console.plain(shown["title"], "bold"))
    if shown["facts"]:
        page.print(console.plain(shown["facts"], "dim"))
    styles = {"good": "green", "bad": "red", "doubt": "yellow"}
    for claim in shown["claims"]:
        page.print()
        words = console.plain(f"{claim['claim']}  {claim['verdict']}", styles[claim["tone"]])
        words.append(f"  {claim['title']}", "bold")
        page.print(words)
        page.print(console.plain(claim["basis"], "dim"))
        table = console.table("", [""], ["", "", "", ""], narrowest=20, padding=(0, 2, 0, 0))
        table.show_header = False
        for part in claim["parts"]:
            sign = SIGNS.get(part["verdict"], " ")
            cells = (f"{sign} {part['quantity']}", part["value"], part["interval"], part["band"])
            table.add_row(*(console.plain(cell) for cell in cells))
        page.print(table)
        for note in claim["notes"]:
            console.item(page, " ", console.plain(note, "dim"))
    page.print()
    page.print(
        console.plain(
            "+ holds, - does not, ? cannot tell · value, 95 % interval over replications, band",
            "dim",
        )
    )


SECTIONS = (base.Section("model_claims", "Claims", view),)
