"""Recording of a server from start to end, which leaves a run folder that every command on traces can read.

    with recording(place, Path("runs/now")) as it:
        ...                      # the server works
    it.report["waits"]             # what was recorded

The folder appears when it is complete. A recording that is killed at any moment leaves neither an incomplete folder
that looks like a run nor a probe in the server.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run
from dbdyno.trace.job import unwind_on_signals
from dbdyno.trace.record.process import ServerProcess
from dbdyno.trace.running import Running
from dbdyno.trace.source import manifest_head, server_file
from dbdyno.trace.staging import staged_folder

FORMAT = "postgresql waits"
LOST_NOTES = "the kernel lost notes"
UNDECODED = "changes of a wait that the code does not show"
_MEANS = {
    "read": "looks (--mode read)",
    "sites": "probes (--mode sites)",
    "watch": "watchpoints (--mode watch)",
}


@dataclass(frozen=True)
class RecordingOptions:
    """What to record, and how: database, user, duration, overhead limit, whether to time binds, technique.

    `cost_limit` is the largest cost as a share of a backend's time, or for looks, which cost the backends nothing, of
    the machine's time (0: no limit; None: 5 % of a backend's time, or for looks the limit in
    `crates/dyno-record/src/reading/pace.rs`). `mode` is `sites` (probes), `watch` (watchpoints), `read` (looks at the
    server's memory), `exact` (probes, else watchpoints), or None: looks, else probes, else watchpoints. With `copies`,
    the memory is read by copies even if it may be mapped.
    """

    database: str | None = None
    user: str | None = None
    for_ns: int | None = None
    cost_limit: float | None = None
    details: bool = False
    mode: str | None = None
    copies: bool = False


class Recording(Running):
    """A recording."""

    @property
    def fallback_reason(self) -> str | None:
        """Return the reason why the first technique of the requested order is not used, or None."""
        mode, why = self.core.mode()
        return f"recording by {_MEANS[mode]}: {why}" if why else None

    @property
    def warnings(self) -> list[str]:
        """Return the warnings about the recording, as sentences."""
        return warnings_of(self.report)


Texts = Callable[[Sequence[str]], Mapping[str, str]]
"""Function that returns the texts of statements by their query ids."""


@contextlib.contextmanager
def recording(
    place: ServerProcess, out: Path, options: RecordingOptions | None = None, texts: Texts | None = None
) -> Iterator[Recording]:
    """Record until the `with` block ends; then the run is in `out`.

    `texts` is called for statement texts that could not be read in time.

    Raises:
        TraceError: the recording cannot be made, or there was no session to record.
    """
    options = options or RecordingOptions()
    with unwind_on_signals(), staged_folder(out) as aside:
        started = datetime.now(UTC).isoformat()
        request = {
            "pid": place.pid,
            "mode": options.mode or "auto",
            "only": place.only,
            "out": str(aside),
            "database": options.database,
            "user": options.user,
            "for_ns": options.for_ns,
            "cost_limit": options.cost_limit,
            "details": options.details,
            "copies": options.copies,
        }
        made = Recording(_core.Recorder(json.dumps(request)))
        with made.until_end():
            yield made
        if not made.report.get("sessions_all"):
            raise TraceError(
                "there was no session to record",
                next_step="check --database and --user, or record while sessions are connected",
            )
        _complete_texts(aside, made.report, texts)
        whole = Run(aside, manifest_of(made.report, options, started))
        whole.save(status="complete")


def _complete_texts(folder: Path, report: JsonObject, texts: Texts | None) -> None:
    """Add missing texts to the run if `texts` knows them, and count those still missing."""
    without: list[tuple[str, int, int]] = report.pop("textless", None) or []
    found = texts([key for key, _, _ in without]) if texts and without else {}
    if found:
        from dbdyno.trace.record.texts import write_texts

        write_texts(folder, found)
    left = [(calls, ns) for key, calls, ns in without if key not in found]
    report["textless"] = {
        "statements": len(left),
        "calls": sum(calls for calls, _ in left),
        "elapsed_ns": sum(ns for _, ns in left),
        "found": len(found),
    }


def manifest_of(report: JsonObject, options: RecordingOptions, started: str) -> JsonObject:
    """Return the manifest of a recording, made from the core's report."""
    version = str(report.get("version", "")).partition(" ")[0]
    return {
        **manifest_head(FORMAT, f"PostgreSQL {version}, {report['elapsed_ns'] / 1e9:.0f} s", started),
        "files": [server_file(str(report.get("program", "")), version)],
        "totals": {"account": {"calls": report.get("calls"), "waits": report.get("waits")}, "recorder": report},
        "unread": {} if report.get("mode") == "read" else _unread(report),
        "warnings": warnings_of(report),
        "refused": [],
        "options": {
            "database": options.database,
            "user": options.user,
            "for_ns": options.for_ns,
            "cost_limit": options.cost_limit,
            "details": options.details,
            "mode": report.get("mode"),
        },
    }


def _unread(report: JsonObject) -> JsonObject:
    return {what: report[key] for what, key in ((LOST_NOTES, "gaps"), (UNDECODED, "undecoded")) if report.get(key)}


def warnings_of(report: JsonObject) -> list[str]:
    """Return the warnings about a recording, as sentences."""
    found = []
    if report.get("lost"):
        found.append(
            f"The kernel lost {report['lost']:,} notes in {report['gaps']:,} gaps: what the sessions did there is"
            " 'unobserved'."
        )
    for missing, said in zip(report.get("unrecorded", []), report.get("shed", []), strict=False):
        since = datetime.fromtimestamp(missing["from_ns"] / 1e9, UTC)
        found.append(
            f"{missing['what'][0].upper()}{missing['what'][1:]} were not recorded from {since:%H:%M:%S} UTC on"
            f" (none shown does not mean none): {said.partition(': ')[2]}. --cost-limit sets the limit; 0 removes it."
        )
    if report.get("stopped"):
        hint = " --cost-limit sets the limit; 0 removes it." if "the limit" in report["stopped"] else ""
        found.append(f"The recording {report['stopped']}.{hint}")
    if report.get("mode") == "read":
        from dbdyno.trace.record.looks import look_warnings

        return found + look_warnings(report)
    if report.get("mode") == "watch":
        return found + _of_watchpoints(report)
    if report.get("without_fields"):
        found.append(
            f"Calls have neither statement texts nor row counts: probes with fields are not allowed here "
            f"({report['without_fields']})."
        )
    if report.get("trap_ns"):
        found.append(
            f"A probe costs {report['trap_ns'] / 1e3:.2f} us of CPU here, {report['stepped_ns'] / 1e3:.2f} us where the"
            f" kernel must step over an instruction ({report['sites_stepped']} of {report['sites']} places); a wait has"
            " one of them in its time (p2 of a wait is its time without it)."
        )
    return found


def _of_watchpoints(report: JsonObject) -> list[str]:
    found = []
    if report.get("undecoded"):
        found.append(
            f"{report['undecoded']:,} changes of a wait could not be decoded from the code that made them: the time"
            " until the next is 'unobserved'."
        )
    for why, count in report.get("refused", {}).items():
        found.append(f"{count:,} watchpoints could not be set, and their data are missing: {why}.")
    if not report.get("with_calls") and not report.get("shed"):
        found.append(
            "A call is the time between two waits for the client: the server's code does not show where statements "
            "begin."
        )
    if report.get("unnamed_calls"):
        found.append(
            f"{report['unnamed_calls']:,} calls ({report['unnamed_ns'] / 1e9:.3f} s) have no statement: the server gave"
            " no query id, and the next statement came before the text was read (next: compute_query_id = on, or --mode"
            " sites)."
        )
    textless = report.get("textless") or {}
    if textless.get("statements"):
        found.append(
            f"{textless['statements']:,} statements ({textless['calls']:,} calls,"
            f" {textless['elapsed_ns'] / 1e9:.3f} s) are known only by their query ids: each call ended, and"
            " the next one began, before a look at its session (next: use --target with a role that may read"
            " pg_stat_statements there, or --mode sites)."
        )
    if report.get("trap_ns"):
        found.append(
            f"One hit of a watchpoint costs {report['trap_ns'] / 1e3:.2f} us of CPU here, a hit for a call"
            f" {report['call_trap_ns'] / 1e3:.2f} us. The time of a wait includes one hit (p2 of a wait is the time"
            " without it). Rows and SQLSTATEs are missing; the first milliseconds of new processes are 'unobserved'."
        )
    return found
