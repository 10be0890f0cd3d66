"""Sentences on what a capture made from logs lacks, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.evidence.log_sources import LogSources
from dbdyno.trace.proxy.log_report import Reason, Report

_SHORTEST_NS = 1_000_000
_ENOUGH = 20
"""Minimum number of executions for the conclusion that the server does not log durations below the shortest one."""


def describe_reason(reason: Reason) -> str:
    """Return a reason in words, with the number of entries and the places of the first ones."""
    places = ", ".join(reason["places"]) + (", …" if reason["count"] > len(reason["places"]) else "")
    return f"{reason['count']:,} x {reason['reason']} ({places})"


def import_notes(report: Report, sources: LogSources, database: str | None) -> Iterator[str]:
    """Yield sentences about what a capture lacks, and what was assumed."""
    for one in report["unused"]:
        left_out = "kept, but not replayed" if one["left_out"] else "not read" if one["unread"] else "not used"
        yield f"{left_out}: {describe_reason(one)}"
    named = [name for name in report["databases"] if name]
    if database is None and len(named) > 1:
        listed = ", ".join(f"{name} ({report['databases'][name]:,})" for name in named[:5])
        yield (
            f"the log has statements of {len(named)} databases, {listed}: a replay sends all of them to one;"
            " --database NAME keeps those of one"
        )
    own = _of_mariadb(report, sources) if sources.is_mariadb else _of_postgres(report)
    for applies, sentence in (*_doubts(report), *own):
        if applies:
            yield sentence


def _doubts(report: Report) -> Iterator[tuple[bool, str]]:
    zone = report["zones"][0] if report["zones"] else ""
    yield (
        bool(report["zones"]),
        f"times are {'in ' + zone if zone else 'without a zone'}: read as UTC; --timezone names another zone",
    )
    yield report["year_assumed"], "times have no year: the year of the file's last change was used"
    yield (
        report["begun_before"] > 0,
        f"sessions that were within a transaction when the log began: {report['begun_before']:,}",
    )
    yield (
        report["prepared_before"] > 0,
        "statements prepared before the log began, or whose preparation was not logged; a replay prepares them again:"
        f" {report['prepared_before']:,}",
    )


def _of_postgres(report: Report) -> Iterator[tuple[bool, str]]:
    shortest_ns = report["shortest_ns"] or 0
    yield (
        report["coarse"],
        "times are in whole seconds (%t): think times are equally coarse, statements of a session keep their order; "
        "%m has"
        " milliseconds",
    )
    yield (
        report["by_gaps"],
        "sessions are distinguished by process, connection lines and pauses of an hour: %c in log_line_prefix is exact",
    )
    yield (
        shortest_ns >= _SHORTEST_NS and report["executions"] >= _ENOUGH,
        f"the shortest execution took {shortest_ns / 1e6:.3g} ms: it seems that shorter ones were not logged"
        " (log_min_duration_statement)",
    )
    yield (
        report["untimed"] > 0,
        f"statements without a duration (log_duration = on logs it), which count as zero time: {report['untimed']:,}",
    )
    yield (
        report["stateless"] > 0,
        "failures without SQLSTATE (%e in log_line_prefix, csvlog and jsonlog have it), for which a replay accepts any:"
        f" {report['stateless']:,}",
    )


def _of_mariadb(report: Report, sources: LogSources) -> Iterator[tuple[bool, str]]:
    forms = {file.form for file in sources.files}
    shortest_ns = report["shortest_ns"] or 0
    yield (
        report["coarse"],
        "times are in whole seconds: think times are equally coarse, statements of a session keep their order",
    )
    yield "general" in forms, "a general log has no durations: each statement counts as zero time"
    yield bool(forms & {"slow", "general"}), "these logs do not say which statements failed"
    yield (
        shortest_ns >= _SHORTEST_NS and report["executions"] >= _ENOUGH,
        f"the shortest execution took {shortest_ns / 1e6:.3g} ms: it seems that shorter ones were not logged"
        " (long_query_time = 0 logs all)",
    )
    yield True, "statements are in MariaDB's dialect: a replay sends them to PostgreSQL as they are"
