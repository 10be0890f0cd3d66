"""Check of trace files: formats, records, what was not read, whether the times add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.trace.job import Options, Progress, run_job
from dbdyno.trace.page import SCHEMA, files_title, reader_warnings

CLEAN, LEFT, FAILED = 0, 1, 2
"""Exit codes: everything was read; something was not read; a file was refused or nothing was read."""


def check_page(names: Sequence[str], options: Options | None = None, progress: Progress | None = None) -> JsonObject:
    """Return the page of a check; `exit` is its exit code."""
    found = run_job(names, options or Options(), lambda job: str(job.check()), progress)
    files = list(found.get("files") or [])
    refused = [_refusal_of(entry) for entry in found.get("refused") or []]
    return {
        "schema": SCHEMA,
        "kind": "trace",
        "page": "check",
        "facts": {
            "title": files_title([file.get("path") for file in files]),
            "files": len(files),
            "bytes": sum(int(file.get("bytes") or 0) for file in files),
            "lines": sum(int(file.get("lines") or 0) for file in files),
            "sessions": sum(_number(file.get("sessions")) for file in files),
        },
        "checked": files,
        "refused": refused,
        "ok": bool(found.get("ok", True)),
        "exit": _exit(files, refused, bool(found.get("ok", True))),
        "warnings": reader_warnings(found.get("warnings") or [], [file.get("path") for file in files]),
    }


def _exit(files: list[dict[str, object]], refused: list[Any], is_ok: bool) -> int:
    if refused or not files:
        return FAILED
    left = any(file.get("unread") for file in files)
    return CLEAN if is_ok and not left else LEFT


def _number(value: Any) -> int:
    """Return a count, or the length of a list."""
    return len(value) if isinstance(value, list) else int(value or 0)


def _refusal_of(entry: dict[str, object]) -> dict[str, object]:
    """Return the entry of a refused file, with the leading path removed from its sentence."""
    path, sentence = str(entry.get("path") or ""), str(entry.get("sentence") or "")
    return {**entry, "sentence": sentence.removeprefix(f"{path}: ")}
