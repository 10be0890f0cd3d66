"""The response-time profile: every microsecond of the sessions is in exactly one line.

The core computes it while reading, so no evidence is written for it: `profile_page` of files takes one pass over them.
Before `where` and `top` are applied, the lines add up to the sessions' time exactly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.trace.job import Options, Progress, run_job
from dbdyno.trace.names import imported_run, nothing_read_reason, torn_records
from dbdyno.trace.page import NO_WAITS, SCHEMA, files_title, merge_warnings, reader_warnings, title_of, unread_warning

DIMENSIONS = (
    "event",
    "class",
    "kind",
    "statement",
    "force",
    "module",
    "action",
    "client",
    "service",
    "session",
    "container",
    "file",
    "depth",
    "object",
    "p1",
    "p2",
    "p3",
    "second",
    "minute",
)
"""Dimensions that a profile can be grouped by."""


@dataclass(frozen=True)
class Request:
    """What a profile is grouped by, which part of the traces it covers, and the number of its lines."""

    by: tuple[str, ...] = ("event",)
    where: str | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    depth: int | None = None
    top: int | None = None
    sums: tuple[str, ...] = ()
    buckets: int = 1

    def is_core(self) -> bool:
        """Return True if the core's one-pass profile can answer the request; otherwise an import is queried.

        Raises:
            TraceError: an expression is not valid.
        """
        plain = not self.sums and self.buckets == 1 and len(self.by) <= 4
        if all(name in DIMENSIONS for name in self.by) and self.where is None:
            return plain
        from dbdyno.trace.expression import compile_condition, compile_value

        compiled = [compile_value(name, "waits") for name in self.by]
        if self.where is not None:
            compiled.append(compile_condition(self.where, "waits"))
        return plain and all(found.is_core for found in compiled)

    def as_json(self) -> str:
        """Return the request in the form that the core takes."""
        return json.dumps(
            {
                "by": list(self.by),
                "where": self.where,
                "from_ns": self.from_ns,
                "to_ns": self.to_ns,
                "depth": self.depth,
                "top": self.top,
            }
        )


def profile_trace(
    files: str | Path | Sequence[str | Path],
    by: str | Sequence[str] = "event",
    *,
    where: str | None = None,
    top: int | None = None,
) -> dict[str, object]:
    """Return the response-time profile of trace files, or of one imported run, as a plain dict.

    `["profile"]["rows"]` are its lines (`name`, `count`, `total_ns`, `share`, `p99_ns` ...); their `total_ns` add up to
    `["facts"]["elapsed_ns"]`. `by` names one dimension or several (see `DIMENSIONS`).

    Raises:
        TraceError: no file could be read.
    """
    names = [files] if isinstance(files, str | Path) else files
    dimensions = (by,) if isinstance(by, str) else tuple(by)
    return profile_page([str(name) for name in names], Request(dimensions, where, top=top))


def profile_page(
    names: Sequence[str],
    request: Request | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> JsonObject:
    """Return the profile of trace files, or of one imported run, as a page.

    `refused` lists the files that could not be read.

    Raises:
        TraceError: no file could be read.
    """
    request, options = request or Request(), options or Options()
    if not request.is_core():
        return _by_expressions(names, request, options, progress)
    text = request.as_json()
    run = imported_run(names)
    if run is not None:
        from dbdyno import _core

        found = json.loads(_core.profile_run(run.path, text)) | {"warnings": list(run.manifest.warnings or [])}
        title = title_of(run.manifest)
    else:
        found = run_job(names, options, lambda job: str(job.profile(text)), progress, begun=text)
        title = ""
    return page_of(found, request, names, title)


def _by_expressions(names: Sequence[str], request: Request, options: Options, progress: Progress | None) -> JsonObject:
    """Return the same page as `profile_page`, but computed from an import, where expressions are SQL."""
    from dbdyno.trace.conditions import restrict
    from dbdyno.trace.pivot import calls_by_kind, pivot
    from dbdyno.trace.source import open_traces

    narrowed = (request.where, request.from_ns, request.to_ns, request.depth)
    is_part = any(value is not None for value in narrowed)
    with open_traces(names, options, progress) as traces:
        whole = traces.rows(
            "select coalesce(sum(elapsed_ns), 0)::bigint as elapsed_ns, count(*) as sessions, min(started_ns) as"
            " from_ns, max(started_ns + elapsed_ns) as to_ns from sessions"
        )[0]
        calls = calls_by_kind(traces)
        restrict(
            traces, where=request.where, from_ns=request.from_ns, to_ns=request.to_ns, depth=request.depth, always=True
        )
        rows = pivot(traces, request.by, sums=request.sums, buckets=request.buckets, is_part=is_part)
        kept = rows[: request.top] if request.top else rows
        wanted = [row["key"].get("statement") for row in kept if "statement" in row["key"]]
        texts = traces.connection.execute(
            "select statement, any_value(text)[1:200] from statements where statement in (select unnest($1::varchar[]))"
            " group by statement",
            [wanted],
        ).fetchall()
        left = rows[len(kept) :]
        manifest = traces.manifest
        found = {
            **whole,
            "files": len(manifest.files),
            "bytes": sum(int(file.get("bytes") or 0) for file in manifest.files),
            "lines": sum(int(file.get("lines") or 0) for file in manifest.files),
            "by": list(request.by),
            "rows": kept,
            "left_out_by_top": {
                "count": sum(row["count"] for row in left),
                "total_ns": sum(row["total_ns"] for row in left),
            },
            "calls": calls,
            "statements": {key: text for key, text in texts if text},
            "warnings": manifest.warnings or [],
            "refused": traces.refused,
            "unread": manifest.unread if manifest.has("unread") else {},
        }
        model = page_of(found, request, names, title_of(manifest) if manifest.title else "")
        return model | {"torn": traces.torn}


def page_of(found: Mapping[str, Any], request: Request, names: Sequence[str], title: str = "") -> JsonObject:
    """Return the page made from an answer of the core.

    Raises:
        TraceError: no file could be read.
    """
    refused = list(found.get("refused") or [])
    if not found.get("files"):
        raise TraceError(nothing_read_reason(names, refused), next_step="name 10046 trace files")
    rows = found.get("rows") or []
    narrowed = (request.where, request.from_ns, request.to_ns, request.depth)
    facts = ("files", "bytes", "lines", "sessions", "elapsed_ns", "from_ns", "to_ns")
    return {
        "schema": SCHEMA,
        "kind": "trace",
        "page": "profile",
        "facts": {name: found.get(name) for name in facts}
        | {"title": title or _title(names, found)}
        | {name: found.get(name) or [] for name in ("versions", "levels")},
        "profile": {
            "by": found.get("by") or list(request.by),
            "rows": rows,
            "left_out": found.get("left_out_by_top") or {},
            "elapsed_ns": found.get("elapsed_ns"),
            "shown_ns": sum(int(row.get("total_ns") or 0) for row in rows)
            + int((found.get("left_out_by_top") or {}).get("total_ns") or 0),
            "is_part": any(value is not None for value in narrowed),
        },
        "calls": found.get("calls") or [],
        "statements": found.get("statements") or {},
        "warnings": _warnings(found, names),
        "refused": refused,
        "torn": torn_records(found.get("unread") or {}),
    }


def _title(names: Sequence[str], found: Mapping[str, Any]) -> str:
    if len(names) == 1 and names[0] != "-" and not Path(names[0]).is_file():
        return names[0]
    return files_title(names) if len(names) == found.get("files") else ", ".join(names[:3])


def _warnings(found: Mapping[str, Any], names: Sequence[str]) -> list[dict[str, object]]:
    said = list(found.get("warnings") or [])
    warnings = reader_warnings(said, _paths(names))
    has_wait = any(row.get("what") == "wait" for row in found.get("rows") or [])
    is_by_event = "event" in (found.get("by") or [])
    if found.get("calls") and is_by_event and not has_wait and not any("WAIT" in s for s in said):
        warnings.append({"code": "no waits", "text": NO_WAITS, "next": ""})
    unread = found.get("unread") or {}
    total = sum(unread.values()) if isinstance(unread, dict) else len(unread)
    if total and not any("could not be read" in text for text in said):
        warnings.append(unread_warning(total))
    return merge_warnings(warnings)


def _paths(names: Sequence[str]) -> list[str]:
    """Return the named files, and all paths in the named folders."""
    paths = []
    for name in map(Path, names):
        paths += [str(path) for path in name.rglob("*")] if name.is_dir() else [str(name)]
    return paths
