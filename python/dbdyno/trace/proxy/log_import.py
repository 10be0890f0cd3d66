"""Captures made from PostgreSQL's server logs, which `trace replay` and plans run as they run those of the proxy.

    found = import_logs(sources, Path("runs/monday"), database="shop")
    found.report["executions"]

The core reads the files (`_core.LogJob`). The folder appears when it is complete; a log without a statement that can be
used leaves none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.base.version import VERSION
from dbdyno.evidence.captures import FORMAT
from dbdyno.evidence.encryption import encrypting, read_key
from dbdyno.evidence.log_sources import LogSources
from dbdyno.evidence.run import SCHEMA, Run
from dbdyno.evidence.trace_tables import KIND
from dbdyno.trace.job import Progress, cleaned_up
from dbdyno.trace.staging import in_place

SOURCE = "server log"
"""Value of `source` in the manifest of a capture from logs."""
_TICK_S = 0.05
_MOSTLY = 0.5
_SHORTEST_NS = 1_000_000
_ENOUGH = 20
"""Number of executions from which the shortest duration shows what is not logged."""


class FileReport(TypedDict):
    """What was read of a file; times are in ns since 1970."""

    path: str
    bytes: int
    entries: int
    events: int
    late: int
    from_ns: int | None
    to_ns: int | None
    broken: str | None


class Reason(TypedDict):
    """Entries or statements that could not be used for one reason.

    `unread`: an entry could not be read. `left_out`: a statement is kept, but a replay leaves it out.
    """

    reason: str
    count: int
    places: list[str]
    unread: bool
    left_out: bool


class Report(TypedDict):
    """What the core says about an import."""

    files: list[FileReport]
    sessions: int
    calls: int
    waits: int
    executions: int
    failed: int
    stateless: int
    untimed: int
    begun_before: int
    prepared_before: int
    with_parameters: int
    shortest_ns: int | None
    first_ns: int | None
    last_ns: int | None
    databases: dict[str, int]
    version: str
    by_gaps: bool
    zones: list[str]
    coarse: bool
    year_assumed: bool
    unused: list[Reason]


@dataclass(frozen=True)
class Imported:
    """An import: the core's report, and sentences about what it lacks."""

    report: Report
    refused: Sequence[str]
    notes: Sequence[str]

    @property
    def is_flawed(self) -> bool:
        """Return True if a file or an entry could not be read."""
        return bool(self.refused) or any(one["unread"] for one in self.report["unused"])


def import_logs(
    sources: LogSources,
    out: Path,
    *,
    database: str | None = None,
    title: str = "",
    replace: bool = False,
    progress: Progress | None = None,
    key_file: Path | None = None,
) -> Imported:
    """Import logs as a capture into the new folder `out`; `database` keeps the sessions of one database.

    With `key_file`, messages are kept encrypted with its key.

    Raises:
        TraceError: The files are no logs, or have no statement that can be used; nothing is written then.
        EvidenceError: The evidence cannot be written.
    """
    started = datetime.now(UTC).isoformat()
    key = read_key(key_file) if key_file is not None else None
    with cleaned_up(), in_place(out, replace=replace) as aside:
        with encrypting(aside, key):
            report = _run(_request(sources, aside, database), progress)
        refused = list(_refused(report))
        _require_statements(report, refused, database)
        notes = [*sources.notes, *_notes(report, database)]
        limits = (_DURATIONS, _VALUES if key is None else _ENCRYPTED)
        run = Run(aside, _manifest(report, refused, (*notes, *limits), title, started))
        run.save(status="complete")
    return Imported(report, refused, notes)


def _request(sources: LogSources, out: Path, database: str | None) -> dict[str, Any]:
    files = [asdict(file) | {"path": str(file.path)} for file in sources.files]
    return {
        "out": str(out),
        "files": files,
        "details": list(sources.details),
        "payloads": list(sources.payloads),
        "pieces": sources.pieces,
        "zone": [asdict(offset) for offset in sources.zone],
        "database": database,
    }


def _run(request: Mapping[str, Any], progress: Progress | None) -> Report:
    """Run the import on a thread of the core, so that this one can show progress and react to Ctrl-C."""
    job = _core.LogJob(json.dumps(request))
    try:
        while not job.is_over():
            time.sleep(_TICK_S)
            if progress is not None:
                progress(*job.progress())
    except BaseException:
        job.stop()
        while not job.is_over():
            time.sleep(_TICK_S)
        raise
    report: Report = json.loads(job.finish())
    return report


def _refused(report: Report) -> Iterator[str]:
    """Yield a sentence for each file that is no log, or could not be read to its end."""
    for file in report["files"]:
        name = Path(file["path"]).name
        if file["broken"]:
            yield f"{name} cannot be read to its end: {file['broken']}; what precedes that is kept"
        elif not file["entries"] and file["bytes"]:
            yield f"{name} is no log of PostgreSQL: no line has the form of an entry"


def _require_statements(report: Report, refused: Sequence[str], database: str | None) -> None:
    where = report["files"][0]["path"] if report["files"] else ""
    if not any(file["entries"] for file in report["files"]):
        raise TraceError(
            "no entry of PostgreSQL's log was found" + (f": {refused[0]}" if refused else ""),
            where=where,
            next_step="name csvlog, jsonlog or text logs; for text of an unusual form add --line-prefix",
        )
    backwards = [one for one in report["files"] if one["late"] > _MOSTLY * max(one["events"], 1) and one["events"] > 1]
    if backwards:
        name = Path(backwards[0]["path"]).name
        raise TraceError(
            "the entries are in descending order of time: a log is read from its beginning",
            where=backwards[0]["path"],
            next_step=f"reverse the lines: tac {name} > ascending-{name}",
        )
    if len(report["zones"]) > 1:
        raise TraceError(
            f"the log's times are in several zones ({', '.join(report['zones'])}), whose offsets are not known",
            where=where,
            next_step="give the value of log_timezone, such as --timezone Europe/Berlin",
        )
    if not report["executions"]:
        of = f" of database {database!r}" if database else ""
        reasons = "; ".join(_counted(one) for one in report["unused"][:3])
        raise TraceError(
            f"the log has no statement{of} that can be used" + (f": {reasons}" if reasons else ""),
            where=where,
            next_step="set log_min_duration_statement = 0 (or log_statement = all and log_duration = on), and messages"
            " in English (lc_messages = C)",
        )


def _counted(one: Reason) -> str:
    places = ", ".join(one["places"]) + (", …" if one["count"] > len(one["places"]) else "")
    return f"{one['count']:,} x {one['reason']} ({places})"


def _notes(report: Report, database: str | None) -> Iterator[str]:
    """Yield sentences about what the capture lacks, and what was assumed."""
    for one in report["unused"]:
        left_out = "kept, but left out of a replay" if one["left_out"] else "not read" if one["unread"] else "not used"
        yield f"{left_out}: {_counted(one)}"
    named = [name for name in report["databases"] if name]
    if database is None and len(named) > 1:
        counted = ", ".join(f"{name} ({report['databases'][name]:,})" for name in named[:5])
        yield (
            f"the log has statements of {len(named)} databases, {counted}: a replay sends all of them to one;"
            " --database NAME keeps those of one"
        )
    for applies, sentence in _doubts(report):
        if applies:
            yield sentence


def _doubts(report: Report) -> Iterator[tuple[bool, str]]:
    zone = report["zones"][0] if report["zones"] else ""
    shortest_ns = report["shortest_ns"] or 0
    yield (
        bool(report["zones"]),
        f"times are {'in ' + zone if zone else 'without a zone'}: taken as UTC; --timezone names another zone",
    )
    yield report["year_assumed"], "times have no year: that of the file's last change was taken"
    yield (
        report["coarse"],
        "times are in whole seconds (%t): think times are that coarse, statements of a session keep their order; %m has"
        " milliseconds",
    )
    yield (
        report["by_gaps"],
        "sessions are kept apart by process, by connection lines, and by silence of an hour: %c in log_line_prefix is"
        " exact",
    )
    yield (
        shortest_ns >= _SHORTEST_NS and report["executions"] >= _ENOUGH,
        f"the shortest execution took {shortest_ns / 1e6:.3g} ms: it seems that shorter ones were not logged"
        " (log_min_duration_statement)",
    )
    yield (
        report["untimed"] > 0,
        "statements without a duration (log_duration = on logs it), which count as taking no time:"
        f" {report['untimed']:,}",
    )
    yield (
        report["stateless"] > 0,
        "failures without SQLSTATE (%e in log_line_prefix, csvlog and jsonlog have it), for which a replay accepts any:"
        f" {report['stateless']:,}",
    )
    yield (
        report["begun_before"] > 0,
        f"sessions that were within a transaction when the log began: {report['begun_before']:,}",
    )
    yield (
        report["prepared_before"] > 0,
        "statements prepared before the log began, or not logged as they were prepared, which are prepared again:"
        f" {report['prepared_before']:,}",
    )


def _manifest(report: Report, refused: Sequence[str], notes: Sequence[str], title: str, started: str) -> dict[str, Any]:
    first = Path(report["files"][0]["path"]).name
    more = len(report["files"]) - 1
    length_s = ((report["last_ns"] or 0) - (report["first_ns"] or 0)) / 1e9
    version = f" of PostgreSQL {report['version']}" if report["version"] else ""
    named = first if not more else f"{first} and {more} more"
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "format": FORMAT,
        "source": SOURCE,
        "status": "complete",
        "title": title or f"server log{version}: {named}, {length_s:,.0f} s",
        "started_at": started,
        "tool_version": VERSION,
        "files": [
            {
                "file": number,
                "path": one["path"],
                "bytes": one["bytes"],
                "lines": one["entries"],
                "facts": {"version": f"PostgreSQL {report['version']}".strip()},
            }
            for number, one in enumerate(report["files"])
        ],
        "totals": {"account": {"calls": report["calls"], "waits": report["waits"]}, "log": report},
        "unread": {},
        "refused": [],
        "warnings": [f"{one[0].upper()}{one[1:]}." for one in (*refused, *notes)],
        "options": {"binds": True},
    }


_DURATIONS = (
    "a log has durations of the server: a call is that long; the time until the next one, network included, is think"
    " time"
)
_VALUES = "messages are kept with their values: the run holds what clients sent"
_ENCRYPTED = "messages are kept encrypted: trace replay and rehearse need the key (--key-file)"
