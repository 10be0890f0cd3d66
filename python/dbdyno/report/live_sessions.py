"""Parts of the live screen about sessions: the list, the blocking tree, progress of commands, a plan.

They depend only on their arguments; text from the server cannot control the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.pages import format as fmt
from dbdyno.report import characters, console
from dbdyno.report.branches import fitting_branches

if TYPE_CHECKING:
    from rich.console import Console

_BAR = 20
_GAP = 2
"""Number of blanks between two columns."""
_COLUMNS = (
    ("pid", 0),
    ("user", 60),
    ("database", 120),
    ("app", 100),
    ("state", 70),
    ("wait", 0),
    ("time", 0),
    ("xact", 0),
    ("horizon", 110),
)
"""Columns with the minimum width of the terminal at which they are shown.

The horizon is omitted if no session has one, as on other engines than PostgreSQL.
"""
_MOST = {"user": 10, "database": 10, "app": 12, "state": 12, "wait": 20, "pid": 24}
_STATES = {"idle in transaction": "idle in xact", "idle in transaction (aborted)": "aborted xact"}


def sessions(
    page: Console,
    rows: Sequence[Mapping[str, Any]],
    about: str,
    chosen: int | None = None,
    most: int | None = None,
) -> None:
    """Print the list of sessions, at most `most` of them.

    `about` says how the list is sorted and filtered, `chosen` is the pid under the cursor.
    """
    page.print()
    if not rows:
        page.print(console.plain_text(f"Sessions: none{about}", "bold"))
        return
    _rows(page, f"Sessions, {len(rows)}{about}", [(0, row) for row in rows], chosen, most)


def show_blocking(
    page: Console,
    tree: Sequence[tuple[int, Mapping[str, Any]]],
    chosen: int | None = None,
    most: int | None = None,
) -> None:
    """Print each session below the session that it waits for; at most `most` sessions."""
    page.print()
    if not tree:
        page.print(console.plain_text("Who blocks whom: nobody waits for a lock", "bold"))
        return
    roots = sum(depth == 0 for depth, _ in tree)
    _rows(
        page,
        f"Who blocks whom, {roots} root{'' if roots == 1 else 's'}, {len(tree) - roots} waiting",
        tree,
        chosen,
        most,
    )


def progress(page: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the progress of commands that report it."""
    page.print()
    if not rows:
        page.print(console.plain_text("Progress: no running command reports it", "bold"))
        return
    table = console.table("Progress", [], [])
    for name, right in (
        ("pid", True),
        ("command", False),
        ("done", True),
        ("", False),
        ("phase", False),
        ("on", False),
    ):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        done = row["done"]
        bar = "" if done is None else characters.bar(min(done, 1.0), _BAR)
        cells = (str(row["pid"]), row["what"], fmt.percent(done, 3), bar, row["phase"], row["on"] or "")
        table.add_row(*(console.plain_text(fmt.line(cell, 60)) for cell in cells))
    page.print(table)


def plan(page: Console, lines: Sequence[str]) -> None:
    """Print a plan line by line, with its indentation."""
    page.print()
    for line in lines:
        start = len(line) - len(line.lstrip(" "))
        page.print(console.plain_text(" " * start + fmt.line(line, 400)), no_wrap=True, overflow="ellipsis")


def _rows(
    page: Console,
    title: str,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
    chosen: int | None,
    most: int | None,
) -> None:
    """Print the first `most` rows in columns that are as wide as all rows need."""
    leads = fmt.branches([depth for depth, _ in rows])
    shown = [
        (
            _cells(fitting_branches(lead, depth, _MOST["pid"]), row),
            f"{_style(row)} reverse".strip() if row["pid"] == chosen else _style(row),
        )
        for lead, (depth, row) in zip(leads, rows, strict=True)
    ]
    names = [name for name, least in _COLUMNS if page.width >= least]
    if not any(cells["horizon"] for cells, _ in shown):
        names = [name for name in names if name != "horizon"]
    widths = {name: max(len(name), *(len(cells[name]) for cells, _ in shown)) for name in names}
    widths = {name: min(width, _MOST.get(name, width)) for name, width in widths.items()}
    rest = page.width - sum(widths.values()) - _GAP * len(names)
    table = console.table(title, [], [])
    for name in names:
        right = "right" if name in ("time", "xact", "horizon") else "left"
        table.add_column(name, justify=right, no_wrap=True, overflow="ellipsis", width=widths[name])
    table.add_column("statement", no_wrap=True, overflow="ellipsis", width=max(rest, 8))
    for cells, style in shown[:most]:
        statement = fmt.line(cells["statement"], max(rest, 8))
        table.add_row(*(console.plain_text(one, style) for one in (*(cells[name] for name in names), statement)))
    page.print(table)


def _cells(lead: str, row: Mapping[str, Any]) -> dict[str, str]:
    pid = "prepared" if row["pid"] == 0 else str(row["pid"])
    state = _STATES.get(str(row["state"]), row["state"])
    words = {"user": row["user"], "database": row["database"], "app": row["application"], "state": state}
    return {
        "pid": lead + pid,
        **{name: fmt.line(word or "") for name, word in words.items()},
        "wait": fmt.line(row["wait"] or ""),
        "time": _time(row["statement_us"]),
        "xact": _time(row["transaction_us"]),
        "horizon": fmt.count(age) if (age := row.get("horizon_age")) is not None else "",
        "statement": str(row["query"] or ""),
    }


def _style(row: Mapping[str, Any]) -> str:
    return "red" if row["blockers"] else "yellow" if str(row["state"]).startswith("idle in") else ""


def _time(us: float | None) -> str:
    """Return a time as `12 ms`, `3.2 s` or `1:05:09`; "" for None."""
    if us is None:
        return ""
    seconds = float(us) / 1e6
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
