"""Two sets of traces on a terminal: what made the difference, line by line, and the tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.report import console
from dbdyno.report import format as fmt
from dbdyno.report.reading import Analysis
from dbdyno.report.sections import base, contributions, lines, tails

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"good": "green", "bad": "red", "even": "blue", "doubt": "yellow"}
_SHORT = {"Cannot tell": "?"}
_LINES_MOST = 8
_HALF = 10


def print_compared(analysis: Analysis, page: Console) -> None:
    """The three parts that only traces have."""
    _print_contributions(analysis, page)
    _print_lines(analysis, page)
    print_tails(analysis, page)


def _print_contributions(analysis: Analysis, page: Console) -> None:
    shown = contributions.view(analysis)
    if shown is None:
        return
    short = [fmt.line(name, 14) for name in shown["names"]]
    names = [*short, "difference"] if page.width >= 72 else ["difference"]
    table = console.table("What made the difference, per execution", [""], names, narrowest=24, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for row in shown["rows"][:_LINES_MOST]:
        numbers = [row["base"], row["value"], row["difference"]] if len(names) > 1 else [row["difference"]]
        style = "red" if row["part"] > 0 else "green"
        cells = [console.plain(cell) for cell in (row["name"], *numbers)]
        table.add_row(*cells, console.plain(_sided(row["part"]), style))
    page.print()
    page.print(table)


def _sided(part: float) -> str:
    """A bar to the right of the line for more, to the left for less."""
    filled = min(round(abs(part) * _HALF), _HALF)
    if part >= 0:
        return " " * _HALF + "│" + "█" * filled
    return " " * (_HALF - filled) + "█" * filled + "│"


def _print_lines(analysis: Analysis, page: Console) -> None:
    shown = lines.view(analysis)
    if shown is None:
        return
    wide = page.width >= 104
    short = [fmt.line(name, 12) for name in shown["names"]]
    for part in shown["tables"]:
        numbers = ["one takes", ""] if not wide else [*short, "one takes", ""]
        table = console.table(part["title"], [""], numbers, narrowest=24, padding=(0, 2, 0, 0))
        table.add_column("per execution", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        for row in part["rows"][:_LINES_MOST]:
            name = f"{row['name']}  {row['text']}" if row["text"] else row["name"]
            cells = [console.plain(fmt.line(name, page.width - (82 if wide else 52)))]
            if wide:
                cells += [console.plain(mean) for mean in row["means"]]
            if row["only"]:
                table.add_row(*cells, console.plain(row["only"], "yellow"), "", console.plain(row["difference"]), "")
                continue
            table.add_row(*cells, *_judged(row["mean"]), console.plain(row["difference"]), _word(row["per_execution"]))
        left = len(part["rows"]) - _LINES_MOST
        page.print()
        page.print(table)
        if left > 0:
            page.print(console.plain(f"{left} more; --format csv or -o FILE.html shows all", "dim"))


def _judged(found: base.View | None) -> list[Any]:
    if found is None:
        return ["", ""]
    return [console.plain(found["change"]), _word(found)]


def _word(found: base.View | None) -> Any:
    if found is None:
        return ""
    word = found["decision"]["word"]
    return console.plain(_SHORT.get(word, word.lower()), _STYLES[found["decision"]["tone"]])


def print_tails(analysis: Analysis, page: Console) -> None:
    """The slow ends of two sets or arms, where they were looked at."""
    shown = tails.view(analysis)
    if shown is None:
        return
    page.print()
    page.print(console.plain("The slow tail, compared apart", "bold"))
    for sentence in shown["sentences"]:
        console.item(page, "•", console.plain(sentence))
    short = [fmt.line(name, 14) for name in shown["names"]]
    table = console.table("", ["quantile"], [*short, "change"], narrowest=10, padding=(0, 2, 0, 0))
    for row in shown["rows"]:
        table.add_row(*(console.plain(cell) for cell in (row["name"], *row["times"], row["change"])))
    page.print(table)
