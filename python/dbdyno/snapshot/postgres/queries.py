"""Top SQL by time, calls, I/O, WAL, temporary files, planning: from pg_stat_statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.snapshot.difference import quoted
from dbdyno.snapshot.model import Lack, Part, Row, Table, beginning, columns, lacking, section, sql_columns, table
from dbdyno.snapshot.plans.latency import SOURCES
from dbdyno.snapshot.plans.proved import latencies
from dbdyno.snapshot.postgres.facts import is_ours
from dbdyno.snapshot.postgres.parts import present, setting, unknown, untimed

if TYPE_CHECKING:
    from dbdyno.snapshot.interval import Interval

VIEW = "pg_stat_statements"

_ORDERS = (
    ("By time", "time", "statement:text calls time:ns share:ratio mean:ns sd:ns rows database:text user:text"),
    ("By calls", "calls", "statement:text calls share_calls:ratio:share time:ns mean:ns rows database:text"),
    ("By mean time", "mean", "statement:text mean:ns sd:ns calls time:ns rows database:text user:text"),
    (
        "By I/O time",
        "io",
        "statement:text io:ns:I/O_time read_time:ns write_time:ns temp_time:ns reads calls time:ns database:text",
    ),
    (
        "By blocks read",
        "reads",
        "statement:text reads share_reads:ratio:share hits read_time:ns calls time:ns database:text",
    ),
    ("By blocks asked for", "blocks", "statement:text blocks reads hitrate:ratio calls time:ns database:text"),
    ("By blocks dirtied", "dirtied", "statement:text dirtied written calls time:ns database:text"),
    ("By blocks written", "written", "statement:text written dirtied calls time:ns database:text"),
    ("By WAL", "wal", "statement:text wal:bytes share_wal:ratio:share records fpi calls time:ns database:text"),
    ("By temporary blocks", "temp", "statement:text temp share_temp:ratio:share calls time:ns database:text"),
    ("By parallel workers", "launched", "statement:text launched planned calls time:ns database:text"),
    ("By JIT time", "jit", "statement:text jit:ns:JIT_time calls time:ns database:text"),
    ("By planning time", "plan", "statement:text plans plan:ns:plan_time calls time:ns database:text"),
)


def statements(interval: Interval, top: int) -> Part:
    """The first statements of each order; their texts follow."""
    title = "Top SQL"
    missing = interval.missing(VIEW)
    if missing:
        return section("sql", title, not_measured=[lacking("statements", *missing)])
    rows = _rows(interval)
    ours = [row for row in rows if is_ours(row["text"] or "")]
    roles = interval.after.facts.get("roles") or {}
    rows = [row | _named(row, roles) for row in rows if not is_ours(row["text"] or "")]
    tables = []
    shown: dict[str, Row] = {}
    for heading, order, spec in _ORDERS:
        first = sorted((r for r in rows if r[order]), key=lambda r: -r[order])
        tables.append(table(heading, sql_columns(spec), first, top=top))
        shown |= {row["statement"]: row for row in first[:top]}
    tables.append(_latency(interval, rows, top))
    texts = [{"statement": name, "text": row["text"]} for name, row in shown.items()]
    interval.table(VIEW)
    lost = unknown(interval, VIEW, "queryid::varchar", top)
    return section(
        "sql",
        title,
        [*tables, table("Texts", columns("text:text statement:code:identifier"), texts), lost],
        about="share: of all statements' time in the interval. sd: of the interval's own calls, of more than one."
        " Statements are counted when they end.",
        not_measured=_not_measured(interval, rows),
        notes=_notes(interval, ours),
    )


_LATENCY = "statement:text p50:ns p95:ns p99:ns worst:ns:max logged:text:calls_seen from:text time:ns database:text"


def _latency(interval: Interval, rows: list[Row], top: int) -> Table:
    """Quantiles from a log or a recording, where one of this time is kept: those that took most time."""
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
    """One row per statement and database, numbers of the interval."""
    has = interval.columns(VIEW)
    time = "total_exec_time" if "total_exec_time" in has else "total_time"
    mean, sd = time.replace("total", "mean"), time.replace("total", "stddev")
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
    m2 = (
        f"b.calls * b.{sd} ** 2 - coalesce(a.calls * a.{sd} ** 2, 0)"
        f" - coalesce((d.{time} / d.calls - a.{mean}) ** 2 * a.calls * d.calls / b.calls, 0)"
    )
    return interval.query(
        f"""with d as (
          select d.queryid, d.dbid, sum(d.calls) as calls, sum(d.{time}) * 1e6 as time,
            sum(d.rows) as rows, sum(d.shared_blks_hit) as hits, sum(d.shared_blks_read) as reads,
            {_timed(f"d.{read_time}", timed)} as read_time,
            {_timed(f"d.{write_time}", timed)} as write_time, {_timed(_temp_io(has), timed)} as temp_time,
            {_timed(_io(has, read_time, write_time), timed)} as io,
            sum({present("parallel_workers_to_launch", has, at="d.")}) as planned,
            sum({present("parallel_workers_launched", has, at="d.")}) as launched,
            sum(d.shared_blks_dirtied) as dirtied, sum(d.shared_blks_written) as written,
            sum({_jit(has)}) * 1e6 as jit, string_agg(distinct d.userid::varchar, ', ') as user_ids,
            sum(d.temp_blks_written) as temp, sum({present("wal_bytes", has, at="d.")}) as wal,
            sum({present("wal_records", has, at="d.")}) as records,
            sum({present("wal_fpi", has, at="d.")}) as fpi,
            {"sum(d.plans)" if planned else "null::double"} as plans,
            {"sum(d.total_plan_time) * 1e6" if planned else "null::double"} as plan,
            bool_or(d.verdict = 'evicted') as least, max(d.why) filter (d.verdict = 'evicted') as lost,
            case when count(*) = 1 and sum(d.calls) > 1 and
                any_value(b.calls - coalesce(a.calls, 0)) = any_value(d.calls) then
              sqrt(greatest(any_value({m2}), 0) / any_value(d.calls)) * 1e6 end as sd
          from {VIEW} d left join {before} a on {on["a"]} left join {after} b on {on["b"]}
          where d.verdict in ('ok', 'evicted') and d.calls > 0 and {top} group by 1, 2)
        select d.* exclude (least, lost), d.queryid::varchar as statement,
          case when least then 'evicted' else 'ok' end as verdict, coalesce(lost, '') as why,
          n.datname as database, t.query as text,
          hits + reads as blocks, time / calls as mean, hits / nullif(hits + reads, 0) as hitrate,
          time / nullif(sum(time) over (), 0) as share,
          calls / nullif(sum(calls) over (), 0) as share_calls,
          reads / nullif(sum(reads) over (), 0) as share_reads,
          wal / nullif(sum(wal) over (), 0) as share_wal,
          temp / nullif(sum(temp) over (), 0) as share_temp
        from d left join {names} n on n.datid = d.dbid left join {texts} t on t.queryid = d.queryid
        order by time desc"""
    )


def _named(row: Row, roles: dict[str, str]) -> Row:
    """How a statement begins, and whose it is."""
    users = [roles.get(one, one) for one in (row["user_ids"] or "").split(", ")]
    return {"begins": beginning(row["text"]), "user": ", ".join(users)}


def _timed(sql: str, timed: bool) -> str:
    """Milliseconds added up, in ns, where reads and writes are timed."""
    return f"sum({sql}) * 1e6" if timed else "null::double"


def _temp_io(has: set[str]) -> str:
    """Time of reads and writes of temporary files; PostgreSQL 15 and later."""
    return " + ".join(present(f"temp_blk_{word}_time", has, at="d.") for word in ("read", "write"))


def _io(has: set[str], *shared: str) -> str:
    """Time of all reads and writes, in milliseconds."""
    names = [*shared, *(f"{kind}_blk_{word}_time" for kind in ("local", "temp") for word in ("read", "write"))]
    return " + ".join(f"d.{name}" for name in names if name in has)


def _jit(has: set[str]) -> str:
    """What compiling took, in milliseconds."""
    parts = [f"jit_{name}_time" for name in ("generation", "inlining", "optimization", "emission", "deform")]
    known = [f"d.{name}" for name in parts if name in has]
    return " + ".join(known) or "null::double"


def _names(interval: Interval) -> str:
    """A relation with the databases' names."""
    if interval.has("pg_stat_database"):
        return interval.ends("pg_stat_database")[1]
    return "(select null::bigint as datid, null::varchar as datname where false)"


def _texts(interval: Interval) -> str:
    """A relation with the texts known at the end of the interval."""
    if "statement_texts" in interval.after.views and not interval.after.views["statement_texts"].get("problem"):
        return interval.ends("statement_texts")[1]
    return "(select null::bigint as queryid, null::varchar as query where false)"


def _not_measured(interval: Interval, rows: list[Row]) -> list[Lack | None]:
    planning = setting(interval, "pg_stat_statements.track_planning")
    has = interval.columns(VIEW)
    return [
        None
        if planning == "on" or "plans" not in has
        else lacking(
            "planning time", "pg_stat_statements.track_planning is off", "pg_stat_statements.track_planning = on"
        ),
        untimed(interval, "time of reads"),
        None
        if "wal_bytes" in has
        else lacking("WAL by statement", "this version counts none", "PostgreSQL 13 or later"),
        None if "statement_texts" in interval.after.views else lacking("texts", "they were left out (--redact)"),
        None
        if interval.after.facts.get("monitor") is not False
        else lacking(
            "statements of other roles",
            "the role may not see them",
            f"grant pg_monitor to {interval.after.facts.get('role')}",
        ),
    ]


def _notes(interval: Interval, ours: list[Row]) -> list[str]:
    notes = []
    verdict = interval.verdict("statements")
    if verdict.word != "ok":
        notes.append(f"{verdict.word}: {verdict.why}")
    if ours:
        time = sum(row["time"] for row in ours) / 1e6
        notes.append(f"{len(ours)} statements of dbdyno's own are left out ({time:.1f} ms)")
    return notes
