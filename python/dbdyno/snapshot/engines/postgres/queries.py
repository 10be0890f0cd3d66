"""Report section on top SQL by time, calls, I/O, WAL, temporary files and planning, from pg_stat_statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import MissingMeasurement, Part, Row, Table, missing_measurement, table
from dbdyno.base.sql_text import quoted
from dbdyno.snapshot.engines.postgres.facts import is_ours, is_ours_sql
from dbdyno.snapshot.engines.postgres.section_helpers import (
    JIT_COUNTS,
    JIT_TIMES,
    column_or_null,
    missing_timing,
    setting,
)
from dbdyno.snapshot.engines.shared_sections import needs, top_statements, unknown_rows_table
from dbdyno.snapshot.model import sql_columns, statement_beginning
from dbdyno.snapshot.plans.latency import SOURCES
from dbdyno.snapshot.plans.plan_changes import latencies

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

VIEW = "pg_stat_statements"

_WAYS = ("read", "write")
SINCE = "; after a reset, a statement has at least what was counted since the reset"
_ORDERS = (
    ("By time", "time", "calls time:ns share:ratio mean:ns sd:ns rows database:text user:text"),
    ("By calls", "calls", "calls share_calls:ratio:share time:ns mean:ns sd:ns rows database:text"),
    ("By mean time", "mean", "mean:ns sd:ns calls time:ns rows database:text user:text"),
    (
        "By I/O time",
        "io",
        "io:ns:I/O_time share_io:ratio:share read_time:ns write_time:ns temp_time:ns reads written local_read temp_read"
        " local_written temp:count:temp_written calls time:ns database:text",
    ),
    (
        "By blocks read",
        "reads",
        "reads share_reads:ratio:share hits hitrate:ratio read_time:ns rows calls time:ns database:text",
    ),
    (
        "By blocks asked for",
        "blocks",
        "blocks share_blocks:ratio:share reads hitrate:ratio rows calls time:ns database:text",
    ),
    (
        "By blocks dirtied",
        "dirtied",
        "dirtied share_dirtied:ratio:share written wal:bytes hitrate:ratio rows calls time:ns",
    ),
    ("By blocks written", "written", "written share_written:ratio:share dirtied hitrate:ratio rows calls time:ns"),
    (
        "By WAL",
        "wal",
        "wal:bytes share_wal:ratio:share records fpi full:count:buffers_full dirtied calls time:ns database:text",
    ),
    (
        "By temporary blocks",
        "temp",
        "temp:count:written share_temp:ratio:share temp_read:count:read temp_read_time:ns:read_time"
        " temp_write_time:ns:write_time rows calls time:ns database:text",
    ),
    (
        "By blocks of temporary tables",
        "local",
        "local:count:blocks local_read:count:read local_written:count:written calls time:ns",
    ),
    ("By parallel workers", "launched", "launched planned calls time:ns database:text"),
    (
        "By JIT time",
        "jit",
        "jit:ns:JIT_time functions generation:ns inlined inlining:ns optimized optimization:ns emitted emission:ns"
        " deformed deform:ns calls time:ns database:text",
    ),
    (
        "By planning time",
        "plan",
        "plans plan:ns:plan_time share_plan:ratio:share plan_mean:ns plan_sd:ns calls time:ns",
    ),
)
_NEEDS = {"full": "wal_buffers_full", "deformed": "jit_deform_count", "deform": "jit_deform_time"}
"""Columns that only newer servers have."""
_SHARED_OUT = ("calls", "io", "reads", "blocks", "dirtied", "written", "wal", "temp", "plan")
"""Measures for which each statement's share of all statements is also computed."""


@needs(VIEW, name="sql", title="Top SQL", what="statements")
def statements(interval: Interval, top: int) -> Part:
    """Return the section with the top statements in each sort order, and their texts."""
    rows, has = _rows(interval), interval.columns(VIEW)
    ours = [row for row in rows if is_ours(row["text"] or "")]
    roles = interval.after.facts.get("roles") or {}
    rows = [row | _named(row, roles) for row in rows if not is_ours(row["text"] or "")]
    orders = (
        (heading, order, " ".join(one for one in spec.split() if _NEEDS.get(one.split(":")[0], VIEW) in {VIEW, *has}))
        for heading, order, spec in _ORDERS
    )
    return top_statements(
        orders,
        rows,
        {row["statement"]: row["text"] for row in rows},
        top,
        unknown_rows_table(interval, VIEW, "queryid::varchar", top),
        further=[_latency(interval, rows, top)],
        about="share: of the time of all statements except dbdyno's. sd: standard deviation over the interval's calls,"
        " if there were two or more. Statements are counted when they end.",
        not_measured=_not_measured(interval, rows),
        notes=notes_on_statements(interval, ours),
    )


_LATENCY = "statement:text p50:ns p95:ns p99:ns worst:ns:max logged:text:calls_seen from:text time:ns database:text"


def _latency(interval: Interval, rows: list[Row], top: int) -> Table:
    """Return the table of latency quantiles from a log or recording stored for the interval, sorted by total time."""
    known = latencies(interval)
    shown = [
        row
        | {name: known[row["statement"]][name] for name in ("p50", "p95", "p99", "worst")}
        | {
            "logged": f"{known[row['statement']]['executions']} of {row['calls']:.0f}",
            "from": SOURCES[known[row["statement"]]["source"]],
        }
        for row in rows
        if row["statement"] in known
    ]
    return table("Latency of executions", sql_columns(_LATENCY), shown, top=top)


def _rows(interval: Interval) -> list[Row]:
    """Return one row per statement and database with its counts and times over the interval."""
    has = interval.columns(VIEW)
    time = "total_exec_time" if "total_exec_time" in has else "total_time"
    read_time = "shared_blk_read_time" if "shared_blk_read_time" in has else "blk_read_time"
    write_time = read_time.replace("read", "write")
    timed = setting(interval, "track_io_timing") == "on"
    top = "d.toplevel is not false" if "toplevel" in has else "true"
    planned = setting(interval, "pg_stat_statements.track_planning") == "on"
    keys = [k for k in ("userid", "dbid", "queryid", "toplevel") if k in has]
    on = {end: " and ".join(f"{end}.{quoted(k)} is not distinct from d.{quoted(k)}" for k in keys) for end in "ab"}
    before, after = interval.ends(VIEW)
    interval.table(VIEW)
    names, texts = _names(interval), _texts(interval)
    own = f"(partition by coalesce({is_ours_sql('t.query')}, false))"
    return interval.query(
        f"""with d as (
          select d.queryid, d.dbid, sum(d.calls) as calls, sum(d.{time}) * 1e6 as time,
            sum(d.rows) as rows, sum(d.shared_blks_hit) as hits, sum(d.shared_blks_read) as reads,
            {_timed(f"d.{read_time}", timed)} as read_time,
            {_timed(f"d.{write_time}", timed)} as write_time, {_timed(_temp_io(has), timed)} as temp_time,
            {_timed(_io(has, read_time, write_time), timed)} as io,
            sum({column_or_null("parallel_workers_to_launch", has, at="d.")}) as planned,
            sum({column_or_null("parallel_workers_launched", has, at="d.")}) as launched,
            sum(d.shared_blks_dirtied) as dirtied, sum(d.shared_blks_written) as written,
            sum(d.local_blks_hit + d.local_blks_read) as local, sum(d.local_blks_read) as local_read,
            sum(d.local_blks_written) as local_written, sum(d.temp_blks_read) as temp_read,
            {_timed(column_or_null("temp_blk_read_time", has, at="d."), timed)} as temp_read_time,
            {_timed(column_or_null("temp_blk_write_time", has, at="d."), timed)} as temp_write_time,
            {", ".join(_jit_parts(has))},
            sum({_jit(has)}) * 1e6 as jit, string_agg(distinct d.userid::varchar, ', ') as user_ids,
            sum(d.temp_blks_written) as temp, sum({column_or_null("wal_bytes", has, at="d.")}) as wal,
            sum({column_or_null("wal_records", has, at="d.")}) as records,
            sum({column_or_null("wal_fpi", has, at="d.")}) as fpi,
            sum({column_or_null("wal_buffers_full", has, at="d.")}) as full,
            {"sum(d.plans)" if planned else "null::double"} as plans,
            {"sum(d.total_plan_time) * 1e6" if planned else "null::double"} as plan,
            {_sd("plans", "plan_time") if planned else "null::double"} as plan_sd,
            bool_or(d.verdict = 'evicted') as least, max(d.why) filter (d.verdict = 'evicted') as lost,
            {_sd("calls", time.removeprefix("total_"))} as sd
          from {VIEW} d left join {before} a on {on["a"]} left join {after} b on {on["b"]}
          where d.verdict in ('ok', 'evicted') and d.calls > 0 and {top} group by 1, 2)
        select d.* exclude (least, lost), d.queryid::varchar as statement,
          case when least then 'evicted' else 'ok' end as verdict, coalesce(lost, '') as why,
          n.datname as database, t.query as text,
          hits + reads as blocks, time / calls as mean, plan / nullif(plans, 0) as plan_mean,
          hits / nullif(hits + reads, 0) as hitrate, time / nullif(sum(time) over {own}, 0) as share,
          {", ".join(f"{name} / nullif(sum({name}) over {own}, 0) as share_{name}" for name in _SHARED_OUT)}
        from d left join {names} n on n.datid = d.dbid left join {texts} t on t.queryid = d.queryid
        order by time desc"""
    )


def _named(row: Row, roles: dict[str, str]) -> Row:
    """Return the beginning of a statement and its users."""
    users = [roles.get(one, one) for one in (row["user_ids"] or "").split(", ")]
    return {"begins": statement_beginning(row["text"]), "user": ", ".join(users)}


def _sd(count: str, time: str) -> str:
    """Return SQL for the standard deviation of the time per call within the interval.

    It is computed from the lifetime values of both ends by Chan's formula, for a statement with a single entry that was
    not reset between the two ends.
    """
    m2 = (
        f"b.{count} * b.stddev_{time} ** 2 - coalesce(a.{count} * a.stddev_{time} ** 2, 0)"
        f" - coalesce((d.total_{time} / d.{count} - a.mean_{time}) ** 2 * a.{count} * d.{count} / b.{count}, 0)"
    )
    return (
        f"case when count(*) = 1 and sum(d.{count}) > 1 and"
        f" any_value(b.{count} - coalesce(a.{count}, 0)) = any_value(d.{count}) then"
        f" sqrt(greatest(any_value({m2}), 0) / any_value(d.{count})) * 1e6 end"
    )


def _timed(sql: str, timed: bool) -> str:
    """Return SQL for a sum of milliseconds, converted to ns; NULL unless reads and writes are timed."""
    return f"sum({sql}) * 1e6" if timed else "null::double"


def _temp_io(has: set[str]) -> str:
    """Return SQL for the time of reads and writes of temporary files (PostgreSQL 15 and later)."""
    return " + ".join(column_or_null(f"temp_blk_{word}_time", has, at="d.") for word in _WAYS)


def _io(has: set[str], *shared: str) -> str:
    """Return SQL for the time of all reads and writes, in milliseconds."""
    names = [*shared, *(f"{kind}_blk_{word}_time" for kind in ("local", "temp") for word in _WAYS)]
    return " + ".join(f"d.{name}" for name in names if name in has)


def _jit_parts(has: set[str]) -> list[str]:
    """Return the select list with the count and time of each step of JIT compilation."""
    known = [(f"jit_{one}", word, "") for one, word in JIT_COUNTS.items()]
    known += [(f"jit_{one}_time", one, " * 1e6") for one in JIT_TIMES]
    return [f"sum({column_or_null(name, has, at='d.')}){times} as {word}" for name, word, times in known]


def _jit(has: set[str]) -> str:
    """Return SQL for the time of JIT compilation, in milliseconds."""
    known = [f"d.jit_{name}_time" for name in JIT_TIMES if f"jit_{name}_time" in has]
    return " + ".join(known) or "null::double"


def _names(interval: Interval) -> str:
    """Return an SQL relation with the databases' names."""
    if interval.has("pg_stat_database"):
        return interval.ends("pg_stat_database")[1]
    return "(select null::bigint as datid, null::varchar as datname where false)"


def _texts(interval: Interval) -> str:
    """Return an SQL relation with the texts known at the end of the interval."""
    if "statement_texts" in interval.after.views and not interval.after.views["statement_texts"].get("problem"):
        return interval.ends("statement_texts")[1]
    return "(select null::bigint as queryid, null::varchar as query where false)"


def _not_measured(interval: Interval, rows: list[Row]) -> list[MissingMeasurement | None]:
    planning = setting(interval, "pg_stat_statements.track_planning")
    has = interval.columns(VIEW)
    return [
        None
        if planning == "on" or "plans" not in has
        else missing_measurement(
            "planning time", "pg_stat_statements.track_planning is off", "pg_stat_statements.track_planning = on"
        ),
        missing_timing(interval, "time of reads"),
        None
        if "wal_bytes" in has
        else missing_measurement("WAL by statement", "this version does not count it", "PostgreSQL 13 or later"),
        None
        if "statement_texts" in interval.after.views
        else missing_measurement("texts", "they were left out (--redact)"),
        None
        if interval.after.facts.get("monitor") is not False
        else missing_measurement(
            "statements of other roles",
            "the role may not see them",
            f"grant pg_monitor to {interval.after.facts.get('role')}",
        ),
    ]


def notes_on_statements(interval: Interval, ours: list[Row]) -> list[str]:
    """Return notes on how full the extension's table is, what it has lost, and which statements are left out."""
    notes = []
    used = int(interval.query(f"select count(*) as n from {interval.ends(VIEW)[1]}")[0]["n"])
    most = setting(interval, "pg_stat_statements.max") or ""
    if most.isdigit() and used >= 0.9 * int(most):
        notes.append(f"{used} of {most} entries are in use (pg_stat_statements.max): new statements evict others")
    verdict = interval.verdict("statements")
    if verdict.word != "ok":
        notes.append(f"{verdict.word}: {verdict.why}" + (SINCE if verdict.word == "reset" else ""))
    if ours:
        time = sum(row["time"] for row in ours) / 1e6
        notes.append(f"{len(ours)} statements of dbdyno's own are left out ({time:.1f} ms)")
    return notes
