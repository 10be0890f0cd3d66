"""Timeline drawn with characters: a bar per interval for one session, or a strip for each of several sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import TableRow
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.report import console

if TYPE_CHECKING:
    from rich.text import Text

# A letter and a terminal colour for each class, so that a strip is readable without colour, too.
_LETTERS = {
    "cpu": ("C", "green"),
    "commit": ("c", "red"),
    "log write": ("l", "yellow"),
    "data read": ("R", "blue"),
    "data write": ("W", "cyan"),
    "free buffer": ("f", "magenta"),
    "lock": ("X", "bright_red"),
    "latch": ("x", "bright_magenta"),
    "network": ("n", "bright_black"),
    "other": ("o", "white"),
    "idle": ("·", "bright_black"),
    "unaccounted": ("?", "bright_yellow"),
}
_ROWS_MOST = 120
_QUIET = ("idle", "network")
_NAME_MOST = 16


def lines(model: Mapping[str, Any], width: int) -> list[Text]:
    """Return a key of the classes, then one line per interval of a single session, or one strip per session."""
    sessions = reading.entries(model, "sessions")
    if not sessions:
        return []
    if len(sessions) == 1 and len(sessions[0]["bins"]) <= _ROWS_MOST:
        return [_key(model), *_rows(model, sessions[0], width)]
    return [_key(model), *_strips(model, sessions, width)]


def _key(model: Mapping[str, Any]) -> Text:
    words = console.plain_text("")
    for entry in reading.entries(model, "classes"):
        letter, style = _letter(entry.get("class"))
        words.append(f"{letter} ", style).append(f"{fmt.line(entry.get('class') or '')}  ", "dim")
    return words


def _letter(name: object) -> tuple[str, str]:
    return _LETTERS.get(str(name or "other").lower(), _LETTERS["other"])


def _rows(model: Mapping[str, Any], session: Mapping[str, Any], width: int) -> list[Text]:
    """Return one line per interval: a bar as long as the interval, made of the classes' letters."""
    every = fmt.number(model.get("every_ns")) or 1e9
    order = [str(entry.get("class")) for entry in reading.entries(model, "classes")]
    room = max(width - 27, 16)
    made = []
    for entry in session["bins"]:
        words = console.plain_text("").append(f"{fmt.clock(entry['at_ns'], every):<13}", style="dim")
        busy = sum(t for name, t in entry["classes"].items() if _is_busy(name) and t > 0)
        words.append_text(_bar(entry["classes"], order, every, room))
        words.append(f"  {fmt.share(busy / every)} busy", style="dim")
        made.append(words)
    return made


def _is_busy(name: str) -> bool:
    return name.lower() not in (*_QUIET, "unaccounted")


def _bar(classes: dict[str, float], order: list[str], every: float, room: int) -> Any:
    """Return the classes' letters in the order of the key; rounding errors carry over to the next class."""
    words = console.plain_text("")
    reached, drawn = 0.0, 0
    for name in order:
        reached += max(classes.get(name, 0.0), 0.0)
        upto = min(round(reached / every * room), room)
        letter, style = _letter(name)
        words.append(letter * (upto - drawn), style=style)
        drawn = max(upto, drawn)
    words.append(" " * (room - drawn))
    return words


def _strips(model: Mapping[str, Any], sessions: list[TableRow], width: int) -> list[Text]:
    """Return one line per session: in each interval the letter of the class with most time."""
    first = min((entry["bin"] for row in sessions for entry in row["bins"]), default=0)
    last = max((entry["bin"] for row in sessions for entry in row["bins"]), default=0)
    names = [fmt.line(row.get("name") or f"session {row.get('session')}") for row in sessions]
    wide = min(max(map(len, names), default=8), _NAME_MOST)
    room = max(width - wide - 2, 16)
    per = -(-(last - first + 1) // room)
    every = fmt.number(model.get("every_ns")) or 1e9
    note = f"one letter is {fmt.duration(every * per)}, from {fmt.clock(sessions[0]['started_ns'], every)} on"
    made = [console.plain_text(fmt.line(f"{note}, and shows what took most of that time", width), "dim")]
    for name, row in zip(names, sessions, strict=True):
        words = console.plain_text("").append(f"{fmt.line(name, wide):<{wide}}  ", style="dim")
        cells: dict[int, dict[str, float]] = {}
        for entry in row["bins"]:
            cell = cells.setdefault((entry["bin"] - first) // per, {})
            for kind, time_ns in entry["classes"].items():
                cell[kind] = cell.get(kind, 0.0) + time_ns
        for at in range((last - first) // per + 1):
            letter, style = _dominant(cells.get(at))
            words.append(letter, style=style)
        made.append(words)
    return made


def _dominant(classes: dict[str, float] | None) -> tuple[str, str]:
    """Return the letter and style of the class with most time.

    Work takes precedence over the client's think time if it is at least a tenth of the time.
    """
    if not classes:
        return " ", ""
    whole = sum(max(time_ns, 0.0) for time_ns in classes.values()) or 1.0
    busy = {name: t for name, t in classes.items() if _is_busy(name)}
    top = max(busy, key=lambda name: busy[name], default=None)
    if top is not None and sum(busy.values()) >= whole / 10 and busy[top] > 0:
        return _letter(top)
    return _letter(max(classes, key=lambda name: classes[name]))
