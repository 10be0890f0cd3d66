"""The sections of Oracle's report, in order; a section that fails says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Part, Row, Table, columns, section, table
from dbdyno.evidence.events import wait_class
from dbdyno.snapshot.engines.metric import Metric
from dbdyno.snapshot.engines.oracle.scripts import LICENSED, script
from dbdyno.snapshot.engines.shared_sections import (
    changed_settings,
    load_profile,
    needs,
    rates_of,
    sum_of,
    top_statements,
    unknown_rows_table,
)
from dbdyno.snapshot.model import build_sections, statement_beginning
from dbdyno.snapshot.reading.statement_texts import statement_texts
from dbdyno.snapshot.sessions import report as session_report

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

_PROFILE = (
    ("DB time (active sessions)", "DB time", "ns", 1e3),
    ("DB CPU", "DB CPU", "ns", 1e3),
    ("redo size", "redo size", "bytes", 1),
    ("logical reads", "session logical reads", "count", 1),
    ("block changes", "db block changes", "count", 1),
    ("physical reads", "physical reads", "count", 1),
    ("physical writes", "physical writes", "count", 1),
    ("user calls", "user calls", "count", 1),
    ("parses", "parse count (total)", "count", 1),
    ("hard parses", "parse count (hard)", "count", 1),
    ("sorts on disk", "sorts (disk)", "count", 1),
    ("logons", "logons cumulative", "count", 1),
    ("executes", "execute count", "count", 1),
    ("rows by scans", "table scan rows gotten", "count", 1),
    ("rows by rowid", "table fetch by rowid", "count", 1),
    ("commits", "user commits", "count", 1),
    ("rollbacks", "user rollbacks", "count", 1),
)
_THROUGHPUT = columns("database:text tps:per_s hitrate:ratio lio_ps:per_s rd_ps:per_s rows_ps:per_s changes_ps:per_s")


def sections(interval: Interval, top: int) -> list[Part]:
    """Return all sections, in order."""
    return build_sections(ORDER, interval, top)


def counts(interval: Interval) -> dict[str, int | None]:
    """Return statistics and the time model (in µs) over the interval, by name; None if not known."""
    rows = interval.query("select name, value from sysstat", "sysstat")
    if interval.has("sys_time_model"):
        rows += interval.query("select stat_name as name, value from sys_time_model", "sys_time_model")
    return {row["name"]: row["value"] for row in rows}


def _hits(found: dict[str, int | None]) -> float | None:
    asked = sum_of(found, "consistent gets from cache", "db block gets from cache")
    read = found.get("physical reads cache")
    return None if not asked or read is None else 1 - read / asked


def metrics(interval: Interval) -> list[tuple[Metric, float | None]]:
    """Return the metrics for comparing two periods and drawing curves."""
    found = counts(interval)
    rate = rates_of(found, interval.seconds)
    return [
        (Metric("tps", "transactions", "per_s", True), rate("user commits", "user rollbacks")),
        (Metric("aas", "active sessions", "aas", False), rate("DB time", factor=1e-6)),
        (Metric("blocks", "logical reads", "per_s"), rate("session logical reads")),
        (Metric("reads", "physical reads", "per_s", False), rate("physical reads")),
        (Metric("redo", "redo", "bytes_per_s"), rate("redo size")),
        (Metric("hard_parses", "hard parses", "per_s", False), rate("parse count (hard)")),
        (Metric("hitrate", "hit rate", "ratio", True), _hits(found)),
    ]


def throughput(interval: Interval, top: int) -> Part:
    """Return the section on the throughput of the whole instance."""
    found = counts(interval)
    rate = rates_of(found, interval.seconds)
    verdict = interval.verdict("instance")
    row = {
        "database": interval.after.facts.get("instance_name"),
        "tps": rate("user commits", "user rollbacks"),
        "hitrate": _hits(found),
        "lio_ps": rate("session logical reads"),
        "rd_ps": rate("physical reads"),
        "rows_ps": rate("table scan rows gotten", "table fetch by rowid"),
        "changes_ps": rate("db block changes"),
        "verdict": verdict.word,
        "why": verdict.why,
    }
    return section(
        "throughput",
        "Database throughput",
        [table("", _THROUGHPUT, [row])],
        about="tps: user commits and rollbacks. hitrate: 1 - physical reads cache / (consistent"
        " gets from cache + db block gets from cache). rows_ps: rows read by scans and by rowid.",
    )


def profile(interval: Interval, top: int) -> Part:
    """Return the section LOAD PROFILE, per second and per transaction."""
    found = counts(interval)
    done = sum_of(found, "user commits", "user rollbacks")
    values = [(label, found.get(name), unit, factor) for label, name, unit, factor in _PROFILE]
    return load_profile(interval, values, done)


@needs("system_event", name="waits", title="Waits by class and event")
def waits(interval: Interval, top: int) -> Part:
    """Return the section on foreground waits summed by the instance, on CPU time, and on sampled sessions."""
    events = interval.query(
        """select event, wait_class, total_waits_fg as waits,
          time_waited_micro_fg * 1000 as time,
          time_waited_micro_fg * 1000 / nullif(total_waits_fg, 0) as mean, verdict, why
        from system_event where wait_class <> 'Idle' and (verdict <> 'ok' or total_waits_fg > 0)""",
        "system_event",
    )
    cpu = counts(interval).get("DB CPU")
    events.append(
        {
            "event": "DB CPU",
            "wait_class": None,
            "waits": None,
            "mean": None,
            "time": None if cpu is None else cpu * 1000,
        }
    )
    whole = sum(row["time"] or 0 for row in events)
    sums: dict[str, Row] = {}
    for row in events:
        row["class"] = wait_class("oracle", row["wait_class"], None if row["event"] == "DB CPU" else row["event"])
        row["share"] = (row["time"] or 0) / whole if whole and row["time"] is not None else None
        own = sums.setdefault(row["class"], {"class": row["class"], "time": 0, "share": 0.0})
        own["time"] += row["time"] or 0
        own["aas"] = own["time"] / 1e9 / interval.seconds
        own["share"] += row["share"] or 0
    events.sort(key=lambda row: -(row["time"] or 0))
    return section(
        "waits",
        "Waits by class and event",
        [
            table(
                "By class",
                columns("class:text time:ns aas:aas share:ratio"),
                sorted(sums.values(), key=lambda row: -row["time"]),
            ),
            table("By event", columns("event:text class:text waits time:ns mean:ns share:ratio"), events, top=top),
            table(
                "By length",
                columns("event:text length:text waits share:ratio"),
                _lengths(interval, [row["event"] for row in events[:5]]),
            ),
            *_sampled(interval, top),
        ],
        about="foreground sessions; share: of the sum of waits and CPU time",
    )


def _lengths(interval: Interval, events: list[str]) -> list[Row]:
    if not interval.has("event_histogram_micro"):
        return []
    rows = interval.query(
        """select event, wait_time_micro as us, wait_count as waits,
          wait_count / sum(wait_count) over (partition by event) as share
        from event_histogram_micro where verdict = 'ok' and wait_count > 0 order by event, us""",
        "event_histogram_micro",
    )
    return [row | {"length": f"up to {row['us']} us"} for row in rows if row["event"] in events]


def _sampled(interval: Interval, top: int) -> list[Table]:
    found = []
    source, looks = interval.samples("activity", script("session").columns)
    history = LICENSED + "active_session_history"
    sources = [("Active sessions, sampled", source, looks)]
    if history in interval.after.views:
        ash, _ = interval.samples(history, script(history).columns)
        sources.append(("V$ACTIVE_SESSION_HISTORY (licensed)", ash, round(interval.seconds)))
    for title, relation, times in sources:
        if not times:
            continue
        rows = interval.query(
            f"""select coalesce(event, 'CPU') as event, event_type as type, statement,
              count(*) / {times} as aas from {relation}
            where kind = 'client' and {interval.inside} group by all order by aas desc, event"""
        )
        for row in rows:
            row["class"] = wait_class("oracle", row["type"], row["event"] if row["type"] else None)
        shown = columns("event:text class:text statement:text aas:aas")
        found.append(table(title, shown, rows, top=top))
    return found


_SQL = (
    ("By elapsed time", "elapsed", "statement:text share:ratio elapsed:ns executions mean:ns"),
    ("By CPU time", "cpu", "statement:text cpu:ns executions elapsed:ns"),
    ("By logical reads", "gets", "statement:text gets executions rows"),
    ("By physical reads", "reads", "statement:text reads executions io:ns:time_waiting"),
    ("By executions", "executions", "statement:text executions rows mean:ns"),
    ("By parse calls", "parses", "statement:text parses executions"),
)


@needs("sql", name="sql", title="Top SQL", what="statements")
def statements(interval: Interval, top: int) -> Part:
    """Return the section TOP SQL, which lists the top statements by each of several costs."""
    rows = interval.query(
        """select sql_id as statement, sum(executions) as executions,
          sum(elapsed_time) * 1000 as elapsed, sum(cpu_time) * 1000 as cpu,
          sum(user_io_wait) * 1000 as io, sum(buffer_gets) as gets, sum(disk_reads) as reads,
          sum(rows_processed) as rows, sum(parse_calls) as parses,
          sum(elapsed_time) * 1000 / nullif(sum(executions), 0) as mean,
          sum(elapsed_time) / nullif(sum(sum(elapsed_time)) over (), 0) as share,
          case when bool_or(verdict = 'evicted') then 'evicted' else 'ok' end as verdict,
          coalesce(max(why) filter (verdict = 'evicted'), '') as why
        from sql where verdict in ('ok', 'evicted') and executions is not null group by 1""",
        "sql",
    )
    texts = statement_texts(interval)
    rows = [row | {"begins": statement_beginning(texts.get(row["statement"]))} for row in rows]
    lost = unknown_rows_table(interval, "sql", "sql_id", top, "executions is null")
    about = "share: of the total elapsed time of the statements still in the shared pool"
    return top_statements(_SQL, rows, texts, top, lost, about=about)


@needs("segment_statistics", name="segments", title="Most accessed segments")
def segments(interval: Interval, top: int) -> Part:
    """Return the section MOST ACCESSED SEGMENTS, sorted by logical reads."""
    rows = interval.query(
        """select owner || '.' || object_name || coalesce(' ' || subobject_name, '') as segment,
          object_type as type, logical_reads,
          logical_reads / nullif(sum(logical_reads) over (), 0) as share, physical_reads,
          physical_writes, block_changes, buffer_busy, itl_waits, row_lock_waits, verdict, why
        from segment_statistics where verdict <> 'ok' or logical_reads + physical_reads > 0
        order by logical_reads desc nulls last, 1""",
        "segment_statistics",
    )
    shown = columns(
        "segment:text type:text share:ratio logical_reads physical_reads physical_writes"
        " block_changes buffer_busy itl_waits row_lock_waits"
    )
    return section("segments", "Most accessed segments", [table("", shown, rows, top=top)])


@needs("parameter", name="settings", title="Settings", what="parameters")
def settings(interval: Interval, top: int) -> Part:
    """Return the section on parameters that changed."""
    return changed_settings(interval, "parameter", "no parameter changed")


def provenance(interval: Interval, top: int) -> Part:
    """Return the section on the limits of every Oracle report, which its reader must know."""
    return section("provenance", "How sure this is", notes=[NEVER_RUN])


NEVER_RUN = (
    "dbdyno's queries for Oracle follow the public reference; its makers never ran them against an instance."
    " `dbdyno snap check --target oracle://...` shows which of them this instance accepts"
)
ORDER = (
    ("throughput", throughput),
    ("segments", segments),
    ("profile", profile),
    ("sessions", session_report.activity),
    ("waits", waits),
    ("sql", statements),
    ("settings", settings),
    ("provenance", provenance),
)
