"""The page about a machine: the drawing, and every parameter with where its number comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.report.model import drawing
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = ("path", "value", "unit", "default", "given", "meaning", "source")


def head(model: Analysis) -> base.View:
    """Title, name and the drawing; always there."""
    return {
        "title": fmt.line(model.get("title") or "a machine"),
        "name": fmt.line(model.get("name") or ""),
        "drawing": drawing.svg(model),
    }


def parameters(model: Analysis) -> base.View | None:
    """The parameters by section, or None without any."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in reading.entries(model, "parameters"):
        section, _, key = fmt.line(entry.get("path") or "").rpartition(".")
        groups.setdefault(section, []).append(
            {
                "key": key,
                "value": value_text(entry.get("value")),
                "unit": fmt.line(entry.get("unit") or ""),
                "given": bool(entry.get("given")),
                "meaning": fmt.line(entry.get("meaning") or "", 300),
                "source": fmt.line(entry.get("source") or "", 300),
            }
        )
    return {"groups": [{"name": n, "rows": r} for n, r in groups.items()]} if groups else None


def value_text(value: Any) -> str:
    """A parameter's value as words."""
    if value is None:
        return fmt.NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:,.10g}".replace(",", fmt.THIN)
    if isinstance(value, list):
        return fmt.line(", ".join(value_text(entry) for entry in value), 60)
    return "a table" if isinstance(value, dict) else fmt.line(value, 60)


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per parameter."""
    return [{name: entry.get(name) for name in COLUMNS} for entry in reading.entries(model, "parameters")]


def print_page(model: Analysis, page: Console) -> None:
    """The tree, then the parameters; `*` marks what the machine gives itself."""
    page.print(console.plain(fmt.line(model.get("title") or "a machine"), "bold"))
    page.print()
    for line in drawing.tree(model):
        page.print(console.plain(line), soft_wrap=True)
    shown = parameters(model)
    for group in shown["groups"] if shown else []:
        page.print()
        page.print(console.plain(f"[{group['name']}]", "bold"))
        table = console.table("", [""], [""], narrowest=12, padding=(0, 2, 0, 0))
        table.show_header = False
        table.columns[1].justify = "right"
        table.add_column("", overflow="fold", ratio=1)
        for row in group["rows"]:
            value = f"{row['value']} {row['unit']}".strip()
            words = console.plain(row["meaning"])
            words.append(f" · {row['source']}", "dim")
            key = console.plain(f"{row['key']} *" if row["given"] else row["key"])
            table.add_row(key, console.plain(value), words)
        page.print(table)
    page.print()
    page.print(console.plain("* given by the machine; all else is the default", "dim"))


SECTIONS = (
    base.Section("model_machine", "Machine", head),
    base.Section("model_parameters", "Parameters", parameters),
)
