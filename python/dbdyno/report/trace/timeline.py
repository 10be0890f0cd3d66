"""What sessions did, interval by interval: a strip per session, or a bar per interval of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base, pictures
from dbdyno.report.trace.head import clock
from dbdyno.report.trace.profile import seconds, share

if TYPE_CHECKING:
    from rich.console import Console

# A letter and a terminal colour for each class, so that a strip can be read without colour too.
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


def view(model: Analysis) -> base.View | None:
    """Classes with their time, sessions with their facts; None without sessions."""
    sessions = reading.entries(model, "sessions")
    if not sessions:
        return None
    classes = reading.entries(model, "classes")
    whole = sum(fmt.number(entry.get("time_ns")) or 0.0 for entry in classes) or 1.0
    every = fmt.number(model.get("every_ns")) or 1e9
    return {
        "every": fmt.duration(every),
        "classes": [
            {
                "class": fmt.line(entry.get("class") or ""),
                "seconds": seconds(entry.get("time_ns")),
                "share": share((fmt.number(entry.get("time_ns")) or 0.0) / whole),
                "letter": _letter(entry.get("class"))[0],
                "style": _letter(entry.get("class"))[1],
            }
            for entry in classes
        ],
        "sessions": [
            {
                "name": fmt.line(row.get("name") or f"session {row.get('session')}"),
                "file": fmt.line(row.get("file") or ""),
                "from": clock(row.get("started_ns"), every),
                "elapsed": fmt.span((row.get("elapsed_ns") or 0) / 1e9),
                "calls": fmt.count(row.get("calls")),
                "waits": fmt.count(row.get("waits")),
            }
            for row in sessions
        ],
    }


def _letter(name: object) -> tuple[str, str]:
    return _LETTERS.get(str(name or "other").lower(), _LETTERS["other"])


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per session, interval and class."""
    return [
        {
            "session": row.get("name") or row.get("session"),
            "at_ns": entry["at_ns"],
            "width_ns": entry["width_ns"],
            "class": name,
            "time_ns": round(time_ns),
        }
        for row in reading.entries(model, "sessions")
        for entry in row.get("bins") or []
        for name, time_ns in entry["classes"].items()
    ]


def print_page(model: Analysis, page: Console) -> None:
    """A key of the classes; then one session interval by interval, or a strip for each."""
    shown = view(model)
    if shown is None:
        return
    _print_key(shown, page)
    sessions = reading.entries(model, "sessions")
    page.print()
    if len(sessions) == 1 and len(sessions[0]["bins"]) <= _ROWS_MOST:
        _print_rows(model, sessions[0], page)
    else:
        _print_strips(model, shown, sessions, page)


def _print_key(shown: base.View, page: Console) -> None:
    table = console.table(
        f"Every {shown['every']}", ["class"], ["seconds", "share"], narrowest=16, padding=(0, 2, 0, 0)
    )
    for entry in shown["classes"]:
        sign = console.plain(f"{entry['letter']} ", entry["style"])
        sign.append(entry["class"])
        cells = (console.plain(entry[key]) for key in ("seconds", "share"))
        table.add_row(sign, *cells)
    page.print(table)


def _print_rows(model: Analysis, session: dict[str, Any], page: Console) -> None:
    """One line per interval: a bar as long as the interval is, letters by class."""
    every = fmt.number(model.get("every_ns")) or 1e9
    order = [str(entry.get("class")) for entry in reading.entries(model, "classes")]
    room = max(page.width - 27, 16)
    for entry in session["bins"]:
        words = console.plain("").append(f"{clock(entry['at_ns'], every):<13}", style="dim")
        busy = sum(t for name, t in entry["classes"].items() if _is_busy(name) and t > 0)
        words.append_text(_bar(entry["classes"], order, every, room))
        words.append(f"  {share(busy / every)} busy", style="dim")
        page.print(words)


def _is_busy(name: str) -> bool:
    return name.lower() not in (*_QUIET, "unaccounted")


def _bar(classes: dict[str, float], order: list[str], every: float, room: int) -> Any:
    """Letters in the order of the key; what a class lacks of a letter the next one gets."""
    words = console.plain("")
    reached, drawn = 0.0, 0
    for name in order:
        reached += max(classes.get(name, 0.0), 0.0)
        upto = min(round(reached / every * room), room)
        letter, style = _letter(name)
        words.append(letter * (upto - drawn), style=style)
        drawn = max(upto, drawn)
    words.append(" " * (room - drawn))
    return words


def _print_strips(model: Analysis, shown: base.View, sessions: list[dict[str, Any]], page: Console) -> None:
    """One line per session: in each interval the letter of the class with most time."""
    first = min((entry["bin"] for row in sessions for entry in row["bins"]), default=0)
    last = max((entry["bin"] for row in sessions for entry in row["bins"]), default=0)
    longest = max((len(about["name"]) for about in shown["sessions"]), default=8)
    width = min(longest, 16)
    room = max(page.width - width - 2, 16)
    per = -(-(last - first + 1) // room)
    start = clock(sessions[0]["started_ns"], fmt.number(model.get("every_ns")) or 1e9)
    note = f"one sign is {fmt.duration((model.get('every_ns') or 0) * per)}, from {start} on"
    page.print(console.plain(f"{note}: what took most of it, work before waiting", "dim"))
    for about, row in zip(shown["sessions"], sessions, strict=True):
        words = console.plain("").append(f"{fmt.line(about['name'], width):<{width}}  ", style="dim")
        cells: dict[int, dict[str, float]] = {}
        for entry in row["bins"]:
            cell = cells.setdefault((entry["bin"] - first) // per, {})
            for name, time_ns in entry["classes"].items():
                cell[name] = cell.get(name, 0.0) + time_ns
        for at in range((last - first) // per + 1):
            letter, style = _dominant(cells.get(at))
            words.append(letter, style=style)
        page.print(words)


def _dominant(classes: dict[str, float] | None) -> tuple[str, str]:
    """The class with most time; work counts before the client's turn where it is a tenth."""
    if not classes:
        return " ", ""
    whole = sum(max(time_ns, 0.0) for time_ns in classes.values()) or 1.0
    busy = {name: t for name, t in classes.items() if _is_busy(name)}
    top = max(busy, key=lambda name: busy[name], default=None)
    if top is not None and sum(busy.values()) >= whole / 10 and busy[top] > 0:
        return _letter(top)
    return _letter(max(classes, key=lambda name: classes[name]))


SECTIONS = (
    pictures.SECTION,
    base.Section("trace_timeline", "Time by class", view),
)
