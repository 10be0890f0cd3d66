"""Sections of the check of trace files: what was read, what was not and where, and whether the times add up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Finding, Section, Tone
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.common import with_noun
from dbdyno.pages.reading import Analysis, Entry

_RECORDS = 8


def sections(model: Analysis) -> Iterator[Section]:
    """Yield the overall answer, then each file, then the refused files."""
    files, refused = reading.entries(model, "checked"), reading.entries(model, "refused")
    if not files and not refused:
        return
    tone, words = _answer(model)
    yield Section(
        "trace_check",
        "What was read",
        findings=(Finding(f"{words[:1].upper()}{words[1:]}.", tone),),
        parts=(
            *(_file(at, file) for at, file in enumerate(files, 1)),
            *(
                Section(
                    f"refused-{at}",
                    fmt.line(one.get("path") or ""),
                    findings=(Finding(fmt.line(one.get("sentence") or ""), "bad"),),
                    tone="bad",
                )
                for at, one in enumerate(refused, 1)
            ),
        ),
    )


def _answer(model: Analysis) -> tuple[Tone, str]:
    """Return the overall result as tone and sentence."""
    files, refused = reading.entries(model, "checked"), reading.entries(model, "refused")
    left = sum(unread.get("count") or 0 for file in files for unread in file.get("unread") or [])
    if refused:
        return "bad", f"{len(refused)} {'file was' if len(refused) == 1 else 'files were'} refused"
    if left:
        return "doubt", f"{fmt.count(left)} {'piece was' if left == 1 else 'pieces were'} not read"
    if model.get("ok") is False:
        return "doubt", "everything was read, but a check failed"
    return "good", "everything was read, and the times add up"


def _file(at: int, file: Entry) -> Section:
    records = sorted((file.get("records") or {}).items(), key=lambda pair: -pair[1])
    facts = [
        fmt.line(file.get("format") or "", 40),
        f"version {fmt.line(file['version'], 30)}" if file.get("version") else "",
        f"level {fmt.line(file['level'], 20)}" if file.get("level") not in (None, "") else "",
        fmt.size(file.get("bytes")),
        f"{fmt.count(file.get('lines'))} lines",
    ]
    orphans = fmt.count(file.get("orphans")) if file.get("orphans") else ""
    told = [
        ", ".join(f"{fmt.line(name)} {fmt.count(n)}" for name, n in records[:_RECORDS]),
        *_closes(file.get("closes")),
        _clock(file.get("clock") or {}),
        f"{orphans} recursive calls without a parent count as calls of the client" if orphans else "",
    ]
    return Section(
        f"file-{at}",
        fmt.line(file.get("path") or ""),
        " · ".join(fact for fact in facts if fact and fact != fmt.NONE),
        sentences=tuple(line for line in told if line),
        findings=tuple(_unread(unread) for unread in file.get("unread") or []),
    )


def _closes(closes: Any) -> list[str]:
    """Return the two sums as sentences: the sessions' time, and the time of the calls within it."""
    if not isinstance(closes, dict) or closes.get("elapsed_ns") is None:
        return []

    def times(*names: str) -> list[str]:
        return [fmt.seconds(closes.get(f"{name}_ns")) for name in names]

    whole, calls, between, rest = times("elapsed", "call", "between", "unexplained")
    cpu, inside, unaccounted = times("cpu", "wait_inside", "unaccounted")
    word = "The times add up" if closes.get("closes", True) else "The times do not add up"
    return [
        f"{word}: {whole} s = {calls} in calls + {between} in waits between them + {rest} that nothing explains",
        f"Calls: {calls} s = {cpu} CPU + {inside} in waits + {unaccounted} unaccounted for",
    ]


def _clock(clock: Entry) -> str:
    if not clock.get("stamps"):
        return "no wall-clock stamp"
    residual = fmt.duration(clock.get("residual_max_ns"))
    return f"{with_noun(clock['stamps'], 'wall-clock stamp')}, at most {residual} off"


def _unread(unread: Entry) -> Finding:
    first = unread.get("first") or {}
    where = f"line {first.get('line')}, byte {first.get('byte_offset')}"
    words = f"{fmt.line(unread.get('reason') or '')} × {fmt.count(unread.get('count'))}, first at {where}"
    return Finding(words, "doubt", (fmt.line(first.get("sample") or "", 100),))


def rows(model: Analysis) -> list[TableRow]:
    """Return one row per file and reason for unread content; a file without unread content has one row."""
    found: list[TableRow] = []
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
