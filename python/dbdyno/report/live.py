"""One frame of the live screen as text: load profile, active sessions by class, top SQL, sessions.

It depends only on its arguments. What does not fit is cut off at the bottom; an unknown value is a dash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.pages import format as fmt
from dbdyno.report import characters, console, live_sessions

if TYPE_CHECKING:
    from rich.console import Console

_CELL = 37
_BAR = 24
_NUMBER = 9
_STYLES = {
    "CPU": "green",
    "lock": "red",
    "latch": "magenta",
    "commit": "yellow",
    "log write": "yellow",
    "data read": "blue",
    "data write": "blue",
}


def render_frame(frame: Mapping[str, Any], *, width: int, height: int | None, color: bool, foot: str = "") -> str:
    """Return the frame, `width` columns wide and at most `height` lines high; `foot` is the last line."""

    def draw(page: Console) -> None:
        _head(frame, page)
        if frame.get("plan"):
            live_sessions.plan(page, frame["plan"])
            return
        view = frame.get("view", "all")
        if view in ("all", "overview"):
            _profile(frame["profile"], page)
            _classes(frame, page)
            _statements(frame["statements"], page)
        if "sessions" in frame:
            _sessions(frame, view, page, height)
        for note in frame["notes"]:
            page.print()
            page.print(console.plain_text(fmt.line(note), "dim"))

    lines = console.render_text(draw, width=width, color=color).rstrip("\n").split("\n")
    if height is not None:
        lines = lines[: max(height - (1 if foot else 0), 1)]
        lines += [""] * (height - len(lines) - (1 if foot else 0)) if foot else []
    return "\n".join([*lines, foot[:width]] if foot else lines)


def _head(frame: Mapping[str, Any], page: Console) -> None:
    states = "  ".join(f"{name} {fmt.count(value)}" for name, value in frame["states"].items())
    about = f"{frame['at']}  over {fmt.span(frame['seconds'])}  {states}"
    for words, style in ((fmt.line(frame["title"]), "bold"), (about, "dim")):
        page.print(console.plain_text(words, style), no_wrap=True, overflow="ellipsis")


def _sessions(frame: Mapping[str, Any], view: str, page: Console, most: int | None) -> None:
    if view in ("all", "overview", "sessions"):
        live_sessions.sessions(page, frame["sessions"], frame.get("listed", ""), frame.get("chosen"), most)
    if view == "blocking" or (frame["tree"] and view != "progress"):
        live_sessions.show_blocking(page, frame["tree"], frame.get("chosen"), most)
    if view == "progress" or (frame["progress"] and view in ("all", "overview")):
        live_sessions.progress(page, frame["progress"])


def _profile(rows: Sequence[Mapping[str, Any]], page: Console) -> None:
    from rich.table import Table

    across = max(1, page.width // _CELL)
    grid = Table.grid(padding=(0, 3, 0, 0))
    for _ in range(across):
        grid.add_column(no_wrap=True)
        grid.add_column(justify="right", no_wrap=True, min_width=9)
    deep = -(-len(rows) // across)
    for at in range(deep):
        cells: list[Any] = []
        for row in rows[at::deep]:
            cells += [console.plain_text(row["label"], "dim"), _value(row["value"], row["unit"])]
        grid.add_row(*cells)
    page.print()
    page.print(grid)


def _small(value: float, unit: str = "") -> str:
    """Return a value with at most two decimals; a few seconds of samples are not more precise."""
    shown = fmt.significant(value) if value >= 10 else f"{value:.2f}" if value >= 0.005 else "<0.01"
    return f"{shown} {unit}".rstrip()


def _value(value: float | None, unit: str) -> str:
    if unit == "ratio":
        return fmt.percent(value, 3)
    if unit == "bytes_per_s":
        shown = fmt.size(None if value is None else round(value))
        return shown if shown == fmt.NONE else f"{shown}/s"
    return fmt.rate(value, 3)


def _classes(frame: Mapping[str, Any], page: Console) -> None:
    rows = frame["classes"]
    page.print()
    if rows is None:
        page.print(console.plain_text("Active sessions: not sampled yet", "bold"))
        return
    whole = sum(row["aas"] for row in rows)
    title = f"Active sessions {fmt.significant(whole)}, mean of {frame['looks']} looks"
    table = console.table(title, [], [], narrowest=8)
    table.show_header = False
    table.add_column(no_wrap=True, min_width=10)
    table.add_column(justify="right", no_wrap=True, min_width=6)
    table.add_column(no_wrap=True, width=_BAR)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for row in rows:
        drawn = console.plain_text(characters.bar(row["share"], _BAR), _STYLES.get(row["class"], "white"))
        events = ", ".join(fmt.line(one) for one in row["events"])
        table.add_row(row["class"], _small(row["aas"]), drawn, console.plain_text(events))
    page.print(table)


def _statements(rows: Sequence[Mapping[str, Any]] | None, page: Console) -> None:
    if rows is None:
        return
    page.print()
    if not rows:
        page.print(console.plain_text("Top SQL: no statement ended", "bold"))
        return
    table = console.table("Top SQL by time", [], [])
    for name in ("share", "sessions", "calls/s", "mean"):
        table.add_column(name, justify="right", no_wrap=True, width=_NUMBER)
    table.add_column("statement", no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(
            _small(row["share"] * 100, "%"),
            _small(row["aas"]),
            fmt.significant(row["calls"]),
            fmt.duration(row["mean"]),
            console.plain_text(fmt.line(row["text"] or row["statement"], page.width - 4 * (_NUMBER + 1))),
        )
    page.print(table)
