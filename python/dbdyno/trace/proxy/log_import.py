"""Captures made from the logs of PostgreSQL and MariaDB, which commands read like those of the proxy.

    found = import_logs(sources, Path("runs/monday"), database="shop")
    found.report["executions"]

The core reads the files (`_core.LogJob`). The folder appears when it is complete; no folder is created for a log
without a usable statement.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.version import VERSION
from dbdyno.evidence.captures import FORMAT, MARIADB
from dbdyno.evidence.encryption import encrypt_parts, read_key
from dbdyno.evidence.log_sources import LogSources
from dbdyno.evidence.run import SCHEMA, Run
from dbdyno.evidence.trace_tables import KIND
from dbdyno.trace.job import Progress, unwind_on_signals
from dbdyno.trace.proxy.log_notes import describe_reason, import_notes
from dbdyno.trace.proxy.log_report import Report
from dbdyno.trace.staging import staged_folder

SOURCE = "server log"
"""Value of `source` in the manifest of a capture from logs."""
_TICK_S = 0.05
_MOSTLY = 0.5


@dataclass(frozen=True)
class LogImport:
    """An import: the core's report, and sentences about what the capture lacks."""

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
) -> LogImport:
    """Import logs as a capture into the new folder `out`; `database` limits it to the sessions of one database.

    With `key_file`, messages are kept encrypted with its key.

    Raises:
        TraceError: The files are not logs, or have no usable statement; nothing is written then.
        EvidenceError: The evidence cannot be written.
    """
    started = datetime.now(UTC).isoformat()
    key = read_key(key_file) if key_file is not None else None
    with unwind_on_signals(), staged_folder(out, replace=replace) as aside:
        with encrypt_parts(aside, key):
            report = _run(_request(sources, aside, database), progress)
        refused = list(_refused_files(report))
        _require_statements(report, sources, refused, database)
        notes = [*sources.notes, *import_notes(report, sources, database)]
        limits = (_DURATIONS, _VALUES if key is None else _ENCRYPTED)
        run = Run(aside, _manifest(report, sources, refused, (*notes, *limits), title, started))
        run.save(status="complete")
    return LogImport(report, refused, notes)


def _request(sources: LogSources, out: Path, database: str | None) -> JsonObject:
    files = [file._asdict() | {"path": str(file.path)} for file in sources.files]
    return {
        "out": str(out),
        "files": files,
        "details": list(sources.details),
        "payloads": list(sources.payloads),
        "pieces": sources.pieces,
        "zone": [offset._asdict() for offset in sources.zone],
        "database": database,
        "is_mariadb": sources.is_mariadb,
    }


def _run(request: Mapping[str, Any], progress: Progress | None) -> Report:
    """Run the import in a thread of the core, so that the calling thread can show progress and react to Ctrl-C."""
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


def _refused_files(report: Report) -> Iterator[str]:
    """Yield a sentence for each file that is not a log, or could not be read to its end."""
    for file in report["files"]:
        name = Path(file["path"]).name
        if file["broken"]:
            yield f"{name} cannot be read to its end: {file['broken']}; the part before that is kept"
        elif not file["entries"] and file["bytes"]:
            yield f"{name} is no log of PostgreSQL or MariaDB: no line has the form of an entry"


def _require_statements(report: Report, sources: LogSources, refused: Sequence[str], database: str | None) -> None:
    where = report["files"][0]["path"] if report["files"] else ""
    if not any(file["entries"] for file in report["files"]):
        raise TraceError(
            "the files contain no log entry of PostgreSQL or MariaDB" + (f": {refused[0]}" if refused else ""),
            where=where,
            next_step="name csvlog, jsonlog or text logs, or MariaDB's slow or general log; for text of an unusual form"
            " add --line-prefix",
        )
    backwards = [one for one in report["files"] if one["late"] > _MOSTLY * max(one["events"], 1) and one["events"] > 1]
    if backwards:
        name = Path(backwards[0]["path"]).name
        raise TraceError(
            "the entries are in descending order of time; expected the oldest entry first",
            where=backwards[0]["path"],
            next_step=f"reverse the lines with: tac {name} > ascending-{name}",
        )
    if len(report["zones"]) > 1:
        raise TraceError(
            f"the log's times are in several zones ({', '.join(report['zones'])}), whose offsets are not known",
            where=where,
            next_step="give the value of log_timezone, such as --timezone Europe/Berlin",
        )
    if not report["executions"]:
        of = f" of database {database!r}" if database else ""
        reasons = "; ".join(describe_reason(one) for one in report["unused"][:3])
        raise TraceError(
            f"the log has no statement{of} that can be used" + (f": {reasons}" if reasons else ""),
            where=where,
            next_step=_next_step(report, sources, database),
        )


def _next_step(report: Report, sources: LogSources, database: str | None) -> str:
    """Return what to do about a log without a usable statement."""
    if database and any("database" in one["reason"] for one in report["unused"]):
        return f"check the name {database!r}, or leave out --database to keep the statements of all databases"
    return _LOG_ALL_MARIADB if sources.is_mariadb else _LOG_ALL


_LOG_ALL = (
    "set log_min_duration_statement = 0 (or log_statement = all and log_duration = on), and messages in English"
    " (lc_messages = C)"
)
_LOG_ALL_MARIADB = "set slow_query_log = on, long_query_time = 0 and min_examined_row_limit = 0; or general_log = on"


def _manifest(
    report: Report, sources: LogSources, refused: Sequence[str], notes: Sequence[str], title: str, started: str
) -> JsonObject:
    engine = "MariaDB" if sources.is_mariadb else "PostgreSQL"
    first = Path(report["files"][0]["path"]).name
    more = len(report["files"]) - 1
    length_s = ((report["last_ns"] or 0) - (report["first_ns"] or 0)) / 1e9
    version = f" of {engine} {report['version']}" if report["version"] else ""
    named = first if not more else f"{first} and {more} more"
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "format": FORMAT,
        "source": SOURCE,
        **({"dialect": MARIADB} if sources.is_mariadb else {}),
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
                "facts": {"version": f"{engine} {report['version']}".strip()},
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
    "a log has the server's durations, which are used for calls; the time until the next call, including the network, "
    "is think time"
)
_VALUES = "messages are kept with their values: the run contains what clients sent"
_ENCRYPTED = "messages are kept encrypted: trace replay and rehearse need the key (--key-file)"
