"""Two sets of traces on a terminal: the answer, what changed, line by line, and the tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import account, base, changes, contributions, lines, tails

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"good": "green", "bad": "red", "even": "blue", "doubt": "yellow"}
_SHORT = {"Cannot tell": "?"}
_LINES_MOST = 8
_CHANGES_MOST = 5
_STEPS_MOST = 8
_HALF = 10


def print_answer(analysis: Analysis, page: Console) -> None:
    """What stands right below the verdict: the two numbers with the counts, and what changed."""
    _print_account(analysis, page)
    _print_changes(analysis, page)
    _print_contributions(analysis, page)


def _print_account(analysis: Analysis, page: Console) -> None:
    shown = account.view(analysis)
    if shown is None:
        return
    table = console.table("", [""], [*(fmt.line(name, 20) for name in shown["names"]), "change"], narrowest=22)
    for row in shown["rows"]:
        table.add_row(*(console.plain(cell) for cell in (row["name"], *row["sides"], row["change"])))
    page.print()
    page.print(table)


def _print_changes(analysis: Analysis, page: Console) -> None:
    """The statements that changed, two lines each: their figures per execution in either set."""
    shown = changes.view(analysis)
    if shown is None:
        return
    page.print()
    page.print(console.plain("Statements that changed, figures per execution of each", "bold"))
    most = 6 if page.width >= 100 else 4 if page.width >= 76 else 2
    names = [fmt.line(name, 16) for name in shown["names"]]
    for row in shown["rows"][:_CHANGES_MOST]:
        head = f"{row['difference']} {shown['per']}  {row['name']}  {row['what']}"
        page.print(console.plain(fmt.line(head, page.width), "yellow" if row["is_plan"] else ""))
        if row["text"]:
            page.print(console.plain(f"  {fmt.line(row['text'], page.width - 2)}", "cyan"))
        table = console.table("", ["  "], ["executions", *shown["figures"][:most]], narrowest=10, padding=(0, 2, 0, 0))
        for name, executions, cells in zip(names, row["executions"], row["cells"], strict=True):
            table.add_row(*(console.plain(cell) for cell in (f"  {name}", executions, *cells[:most])))
        page.print(table)
        for name, steps in zip(names, row["steps"], strict=False):
            for at, step in enumerate(steps[:_STEPS_MOST]):
                words = f"  {name if not at else ' ' * len(name)}  {'  ' * step['level']}{step['operation']}"
                page.print(console.plain(words[: page.width], "dim"))
            if len(steps) > _STEPS_MOST:
                page.print(console.plain(f"  {len(steps) - _STEPS_MOST} more steps", "dim"))
    left = len(shown["rows"]) - _CHANGES_MOST
    if left > 0:
        page.print(console.plain(f"{left} more; --format json or -o FILE.html shows all", "dim"))


def print_compared(analysis: Analysis, page: Console) -> None:
    """What only traces have: every line, and the tail."""
    _print_lines(analysis, page)
    print_tails(analysis, page)


def _print_contributions(analysis: Analysis, page: Console) -> None:
    shown = contributions.view(analysis)
    if shown is None:
        return
    short = [fmt.line(name, 14) for name in shown["names"]]
    names = [*short, "difference"] if page.width >= 72 else ["difference"]
    table = console.table(f"What made the difference, {shown['per']}", [""], names, narrowest=24, padding=(0, 2, 0, 0))
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
        table.add_column(shown["per"], justify="right", no_wrap=True)
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
