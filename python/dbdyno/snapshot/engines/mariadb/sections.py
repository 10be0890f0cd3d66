"""The sections of MariaDB's report, in order; a section that fails says why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.base.sections import MissingMeasurement, Part, Row, Table, columns, missing_measurement, section, table
from dbdyno.evidence.events import wait_class
from dbdyno.snapshot.engines.mariadb import load
from dbdyno.snapshot.engines.mariadb.sampler import ACTIVITY
from dbdyno.snapshot.engines.mariadb.texts import OWN_STATEMENT
from dbdyno.snapshot.engines.mariadb.views import OTHER_DIGEST, STATEMENTS
from dbdyno.snapshot.engines.metric import Metric
from dbdyno.snapshot.engines.shared_sections import (
    changed_settings,
    needs,
    rates_of,
    top_statements,
    unknown_rows_table,
)
from dbdyno.snapshot.model import build_sections, statement_beginning
from dbdyno.snapshot.reading.statement_texts import statement_texts
from dbdyno.snapshot.sessions import blocking
from dbdyno.snapshot.sessions import report as session_report

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

WATCH = "dbdyno snap watch --target DSN --every 60s"
CONSUMER = "update performance_schema.setup_consumers set enabled = 'YES' where name = '{}'"
WAITS = "events_waits_summary_global_by_event_name"


def sections(interval: Interval, top: int) -> list[Part]:
    """Return all sections, in order."""
    return build_sections(ORDER, interval, top)


def metrics(interval: Interval) -> list[tuple[Metric, float | None]]:
    """Return the metrics for comparing two periods and drawing curves."""
    found = load.status(interval)
    rate = rates_of(found, interval.seconds)
    return [
        (Metric("qps", "statements", "per_s", True), rate("questions")),
        (Metric("tps", "transactions", "per_s", True), rate("com_commit", "com_rollback")),
        (Metric("blocks", "pages asked for", "per_s"), rate("innodb_buffer_pool_read_requests")),
        (Metric("reads", "pages read", "per_s", False), rate("innodb_buffer_pool_reads")),
        (Metric("changes", "rows changed", "per_s"), rate("handler_write", "handler_update", "handler_delete")),
        (Metric("redo", "redo written", "bytes_per_s"), rate("innodb_os_log_written")),
        (Metric("lock_waits", "row lock waits", "per_s", False), rate("innodb_row_lock_waits")),
        (Metric("hitrate", "hit rate", "ratio", True), load.hit_ratio(found)),
    ]


def waits(interval: Interval, top: int) -> Part:
    """Return the section on sampled active sessions by class and event, and on waits timed by the server."""
    source, looks = interval.samples("activity", ACTIVITY)
    tables, lacks, notes = [], [], []
    if looks:
        tables += _sampled(interval, source, looks, top)
        notes.append(f"{looks} samples, one every {interval.seconds / looks:.2g} s")
    else:
        why = "the sessions were not sampled in this interval"
        lacks.append(missing_measurement("active sessions", why, WATCH))
    if not interval.missing_reason(WAITS):
        timed = interval.query(
            f"""select EVENT_NAME as event, COUNT_STAR as waits, SUM_TIMER_WAIT as time,
              SUM_TIMER_WAIT / nullif(COUNT_STAR, 0) as mean, verdict, why from {WAITS}
            where verdict <> 'ok' or COUNT_STAR > 0 order by time desc nulls last""",
            WAITS,
        )
        shown = columns("event:text waits time:ns mean:ns")
        tables.append(table("Timed by the server", shown, timed, top=top))
    return section(
        "waits",
        "Waits by class and event",
        tables,
        about="aas: average active sessions, as sampled. A session that waits for nothing that the server reports "
        "counts as CPU.",
        not_measured=[*lacks, *_switched_off(interval.after.facts)],
        notes=notes,
    )


def _sampled(interval: Interval, source: str, looks: int, top: int) -> list[Table]:
    """Return tables of active sessions by class and by event, without dbdyno's own."""
    ours = ", ".join(str(one.facts["session"]) for one in interval.chain)
    rows = interval.query(
        f"""select event_type as type, event, count(*) as seen, count(*) / {looks} as aas,
          count(*) / sum(count(*)) over () as share from {source}
        where state = 'active' and session not in ({ours})
          and {interval.inside} group by all order by seen desc, event"""
    )
    for row in rows:
        row["class"] = wait_class("mariadb", row["type"], row["event"])
    sums: dict[str, Row] = {}
    for row in rows:
        own = sums.setdefault(row["class"], {"class": row["class"], "aas": 0.0, "share": 0.0})
        own["aas"] += row["aas"]
        own["share"] += row["share"]
    by_class = sorted(sums.values(), key=lambda one: -one["aas"])
    return [
        table("By class", columns("class:text aas:aas share:ratio"), by_class),
        table("By event", columns("event:text class:text aas:aas share:ratio seen"), rows, top=top),
    ]


def _switched_off(facts: Mapping[str, Any]) -> Iterator[MissingMeasurement]:
    """Yield an entry for each measurement that is missing because an instrument or a consumer is disabled."""
    if not facts.get("waits_current"):
        yield missing_measurement(
            "file access and latches per session: they count as CPU",
            "the consumer events_waits_current is disabled",
            CONSUMER.format("events_waits_current"),
        )
    if not facts.get("waits_timed"):
        yield missing_measurement(
            "latches (wait/synch)",
            "no such instrument is enabled",
            "enable wait/synch/% in performance_schema.setup_instruments; it costs time",
        )


_SQL = (
    ("By time", "time", "statement:text share:ratio time:ns calls mean:ns rows_examined"),
    ("By calls", "calls", "statement:text calls time:ns mean:ns rows_sent rows_affected"),
    ("By rows examined", "rows_examined", "statement:text rows_examined rows_sent calls no_index:count:without_index"),
    ("By lock time", "lock_time", "statement:text lock_time:ns calls time:ns"),
    (
        "By temporary tables on disk",
        "disk_tables",
        "statement:text disk_tables:count:disk_tables temp_tables:count:temp_tables calls",
    ),
    ("By errors", "errors", "statement:text errors calls"),
)


@needs(STATEMENTS.name, name="sql", title="Top SQL", what="statements")
def statements(interval: Interval, top: int) -> Part:
    """Return the section TOP SQL, which lists the top statements by each of several costs."""
    view = STATEMENTS.name
    rows = interval.query(
        f"""select DIGEST as statement, sum(COUNT_STAR) as calls, sum(SUM_TIMER_WAIT) as time,
          sum(SUM_TIMER_WAIT) / nullif(sum(COUNT_STAR), 0) as mean,
          sum(SUM_TIMER_WAIT) / nullif(sum(sum(SUM_TIMER_WAIT)) over (), 0) as share,
          sum(SUM_ROWS_EXAMINED) as rows_examined, sum(SUM_ROWS_SENT) as rows_sent,
          sum(SUM_ROWS_AFFECTED) as rows_affected, sum(SUM_LOCK_TIME) as lock_time,
          sum(SUM_ERRORS) as errors, sum(SUM_CREATED_TMP_TABLES) as temp_tables,
          sum(SUM_CREATED_TMP_DISK_TABLES) as disk_tables, sum(SUM_NO_INDEX_USED) as no_index
        from {view} where verdict = 'ok' group by 1 having sum(COUNT_STAR) > 0""",
        view,
    )
    texts = statement_texts(interval)
    rows = [
        row | {"begins": statement_beginning(texts.get(row["statement"]))}
        for row in rows
        if not OWN_STATEMENT.search(texts.get(row["statement"]) or "")
    ]
    notes = []
    if any(row["statement"] == OTHER_DIGEST for row in rows):
        notes.append("the digest table was full: raise performance_schema_digests_size")
    lost = unknown_rows_table(interval, view, "DIGEST", top, "verdict <> 'ok'")
    about = "share: of the time of all statements. Statements are counted when they end."
    return top_statements(_SQL, rows, texts, top, lost, rest=OTHER_DIGEST, about=about, notes=notes)


def locks(interval: Interval, top: int) -> Part:
    """Return the section on deadlocks and row lock waits."""
    found = load.status(interval)
    counted = {
        "deadlocks": found.get("innodb_deadlocks"),
        "row_lock_waits": found.get("innodb_row_lock_waits"),
        "waited": None if found.get("innodb_row_lock_time") is None else (found["innodb_row_lock_time"] or 0) * 1e6,
        "verdict": interval.verdict("status").word,
    }
    return section("locks", "Locks", [table("", columns("deadlocks row_lock_waits waited:ns"), [counted])])


def settings(interval: Interval, top: int) -> Part:
    """Return the section on variables that changed."""
    return changed_settings(interval, "global_variables", "no setting changed")


@needs(load.TABLES, name="changes", title="Tables dropped or recreated", what="tables")
def changes(interval: Interval, top: int) -> Part:
    """Return the section on tables that were dropped or recreated.

    A new row is not reported: the table may be new, or be used for the first time.
    """
    rows = interval.query(
        f"""select OBJECT_SCHEMA || '.' || OBJECT_NAME as name, life, verdict, why
        from {load.TABLES} where verdict in ('partial', 'reset') order by 1""",
        load.TABLES,
    )
    shown = columns("name:text life:text verdict:text why:text")
    return section("changes", "Tables dropped or recreated", [table("", shown, rows)], notes=[] if rows else ["none"])


ORDER = (
    ("throughput", load.throughput),
    ("tables", load.tables),
    ("profile", load.profile),
    ("sessions", session_report.activity),
    ("waits", waits),
    ("sql", statements),
    ("io", load.files),
    ("indexes", load.indexes),
    ("blocking", blocking.section),
    ("locks", locks),
    ("settings", settings),
    ("changes", changes),
)
