"""What was read of each file, what was not and where, and whether the time closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base
from dbdyno.report.trace.profile import seconds

if TYPE_CHECKING:
    from rich.console import Console

_RECORDS = 8


def view(model: Analysis) -> base.View | None:
    """The files as text, and the refused ones."""
    files = reading.entries(model, "checked")
    refused = reading.entries(model, "refused")
    if not files and not refused:
        return None
    return {
        "files": [_file(file) for file in files],
        "refused": [
            {"path": fmt.line(r.get("path") or ""), "sentence": fmt.line(r.get("sentence") or "")} for r in refused
        ],
        "answer": answer(model),
    }


def answer(model: Analysis) -> base.View:
    """The whole in a word and a sentence."""
    files, refused = reading.entries(model, "checked"), reading.entries(model, "refused")
    left = sum(unread.get("count") or 0 for file in files for unread in file.get("unread") or [])
    if refused:
        noun = "file was" if len(refused) == 1 else "files were"
        return {"tone": "bad", "words": f"{len(refused)} {noun} refused"}
    if left:
        noun = "piece was" if left == 1 else "pieces were"
        return {"tone": "doubt", "words": f"{fmt.count(left)} {noun} not read"}
    if model.get("ok") is False:
        return {"tone": "doubt", "words": "read whole, but something does not hold"}
    return {"tone": "good", "words": "everything was read, and the time closes"}


def _file(file: dict[str, Any]) -> base.View:
    records = file.get("records") or {}
    counted = sorted(records.items(), key=lambda pair: -pair[1])
    closes = file.get("closes")
    clock = file.get("clock") or {}
    facts = [
        fmt.line(file.get("format") or "", 40),
        f"version {fmt.line(file['version'], 30)}" if file.get("version") else "",
        f"level {fmt.line(file['level'], 20)}" if file.get("level") not in (None, "") else "",
        fmt.size(file.get("bytes")),
        f"{fmt.count(file.get('lines'))} lines",
    ]
    return {
        "path": fmt.line(file.get("path") or ""),
        "facts": [fact for fact in facts if fact and fact != fmt.NONE],
        "records": ", ".join(f"{fmt.line(name)} {fmt.count(n)}" for name, n in counted[:_RECORDS]),
        "closes": _closes(closes),
        "clock": _clock(clock),
        "orphans": fmt.count(file.get("orphans")) if file.get("orphans") else "",
        "unread": [_unread(unread) for unread in file.get("unread") or []],
    }


def _closes(closes: Any) -> list[str]:
    """The two sums, written out: the sessions' time, and the calls' within it."""
    if not isinstance(closes, dict) or closes.get("elapsed_ns") is None:
        return []

    def told(*names: str) -> list[str]:
        return [seconds(closes.get(f"{name}_ns")) for name in names]

    whole, calls, between, rest = told("elapsed", "call", "between", "unexplained")
    cpu, inside, unaccounted = told("cpu", "wait_inside", "unaccounted")
    word = "The time closes" if closes.get("closes", True) else "The time does not close"
    return [
        f"{word}: {whole} s = {calls} in calls + {between} in waits between them + {rest} that nothing explains",
        f"Calls: {calls} s = {cpu} CPU + {inside} in waits + {unaccounted} unaccounted for",
    ]


def _clock(clock: dict[str, Any]) -> str:
    if not clock.get("stamps"):
        return "no wall-clock stamp"
    residual = fmt.duration(clock.get("residual_max_ns"))
    noun = "stamp" if clock["stamps"] == 1 else "stamps"
    return f"{fmt.count(clock['stamps'])} wall-clock {noun}, at most {residual} off"


def _unread(unread: dict[str, Any]) -> base.View:
    first = unread.get("first") or {}
    return {
        "reason": fmt.line(unread.get("reason") or ""),
        "count": fmt.count(unread.get("count")),
        "place": f"line {first.get('line')}, byte {first.get('byte_offset')}",
        "sample": fmt.line(first.get("sample") or "", 100),
    }


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per file and reason of what was left unread; a clean file has one row."""
    found: list[dict[str, Any]] = []
    for file in reading.entries(model, "checked"):
        head = {name: file.get(name) for name in ("path", "format", "version", "level", "bytes", "lines")}
        for unread in file.get("unread") or [{}]:
            first = unread.get("first") or {}
            found.append(
                head
                | {"reason": unread.get("reason"), "count": unread.get("count", 0)}
                | {name: first.get(name) for name in ("line", "byte_offset", "sample")}
            )
    for refused in reading.entries(model, "refused"):
        names = found[0] if found else {"path": None, "reason": None, "sample": None}
        found.append(
            dict.fromkeys(names) | {"path": refused.get("path"), "reason": "refused", "sample": refused.get("sentence")}
        )
    return found


def print_page(model: Analysis, page: Console) -> None:
    """The answer, then file by file."""
    shown = view(model)
    if shown is None:
        return
    styles = {"good": "bold green", "doubt": "bold yellow", "bad": "bold red"}
    page.print(console.plain(shown["answer"]["words"].capitalize() + ".", styles[shown["answer"]["tone"]]))
    for file in shown["files"]:
        page.print()
        page.print(console.plain(file["path"], "bold"))
        for words in (" · ".join(file["facts"]), file["records"], *file["closes"], file["clock"]):
            if words:
                console.item(page, " ", console.plain(words))
        if file["orphans"]:
            words = f"{file['orphans']} recursive calls without a parent count as the client's own"
            console.item(page, " ", console.plain(words))
        for unread in file["unread"]:
            words = f"{unread['reason']} × {unread['count']}, first at {unread['place']}: "
            console.item(page, "!", console.plain(words + unread["sample"], "yellow"))
    for refused in shown["refused"]:
        page.print()
        console.item(page, "✗", console.plain(f"{refused['path']}: {refused['sentence']}", "red"))


SECTIONS = (base.Section("trace_check", "What was read", view),)
