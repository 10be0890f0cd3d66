"""Report section on sums over statements: by database, by role, and of JIT compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Part, Row, columns, section, table
from dbdyno.snapshot.engines.postgres.facts import is_ours
from dbdyno.snapshot.engines.postgres.section_helpers import JIT_COUNTS, JIT_TIMES, column_or_null, setting
from dbdyno.snapshot.engines.shared_sections import needs
from dbdyno.snapshot.reading.statement_texts import statement_texts

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

VIEW = "pg_stat_statements"
_SPEC = (
    " statements calls time:ns share:ratio plan:ns:plan_time io:ns:I/O_time temp_io:ns:temp_I/O_time rows blocks reads"
    " dirtied local:count:local_blocks temp_read temp:count:temp_written wal:bytes full:count:WAL_buffers_full"
)
_ACCESS = (
    " reads read_time:ns write_time:ns local_reads local_dirtied local_written temp_read temp:count:temp_written"
    " temp_read_time:ns temp_write_time:ns"
)
_JIT = columns(
    "database:text functions generation:ns inlined inlining:ns optimized optimization:ns emitted emission:ns deformed"
    " deform:ns"
)


@needs(VIEW, name="totals", title="Statements by database and role", what="statements")
def totals(interval: Interval, top: int) -> Part:
    """Return the section with sums over the statements of each database and of each role."""
    names = {}
    if interval.has("pg_stat_database"):
        rows = interval.query(f"select datid, datname from {interval.ends('pg_stat_database')[1]}")
        names = {row["datid"]: row["datname"] for row in rows}
    roles = {int(oid): name for oid, name in (interval.after.facts.get("roles") or {}).items()}
    by_database, by_role = (_sums(interval, key, known) for key, known in (("dbid", names), ("userid", roles)))
    has = interval.columns(VIEW)
    return section(
        "totals",
        "Statements by database and role",
        [
            table("By database", columns("of:text:database" + _shown(interval, has)), by_database, top=top),
            table(
                "Reads and writes, by database",
                columns("of:text:database" + _shown(interval, has, _ACCESS)),
                by_database,
            ),
            table("By role", columns("of:text:role" + _shown(interval, has)), by_role, top=top),
            table("Compiling (JIT), by database", _JIT, _jit(interval, has, names), top=top),
        ],
        about="top-level statements, except dbdyno's whose text is known; statements: those that were called."
        " blocks: shared, hit and read. local: blocks of temporary tables, hit and read.",
        notes=[] if by_database else ["no statement ended"],
    )


def _shown(interval: Interval, has: set[str], spec: str = _SPEC) -> str:
    """Return a column specification without the columns that this server cannot fill."""
    lacks = set()
    if setting(interval, "pg_stat_statements.track_planning") != "on" or "plans" not in has:
        lacks.add("plan")
    if setting(interval, "track_io_timing") != "on":
        lacks |= {"io", "temp_io", "read_time", "write_time", "temp_read_time", "temp_write_time"}
    if "temp_blk_read_time" not in has:
        lacks |= {"temp_io", "temp_read_time", "temp_write_time"}
    if "wal_bytes" not in has:
        lacks.add("wal")
    if "wal_buffers_full" not in has:
        lacks.add("full")
    return " " + " ".join(word for word in spec.split() if word.split(":")[0] not in lacks)


def _where(interval: Interval) -> str:
    """Return the SQL condition for entries that count: at the top level, and not known to be dbdyno's own."""
    top = "toplevel is not false" if "toplevel" in interval.columns(VIEW) else "true"
    ours = ""
    if interval.has("statement_texts"):
        ids = ", ".join(key for key, text in statement_texts(interval).items() if is_ours(text))
        ours = f" and queryid not in ({ids})" if ids else ""
    return f"verdict in ('ok', 'evicted') and calls > 0 and {top}{ours}"


def _sums(interval: Interval, key: str, names: dict[int, str]) -> list[Row]:
    has = interval.columns(VIEW)
    time = "total_exec_time" if "total_exec_time" in has else "total_time"
    shared = "shared_blk" if "shared_blk_read_time" in has else "blk"
    io = [f"{shared}_read_time", f"{shared}_write_time", "local_blk_read_time", "local_blk_write_time"]
    waited = " + ".join(name for name in io if name in has)
    temp = " + ".join(column_or_null(f"temp_blk_{word}_time", has) for word in ("read", "write"))
    rows = interval.query(
        f"""select {key} as id, count(*) as statements, sum(calls) as calls, sum({time}) * 1e6 as time,
          sum({time}) / nullif(sum(sum({time})) over (), 0) as share, sum(rows) as rows,
          sum({column_or_null("total_plan_time", has)}) * 1e6 as plan, sum({waited}) * 1e6 as io,
          sum({temp}) * 1e6 as temp_io, sum(shared_blks_hit + shared_blks_read) as blocks,
          sum(shared_blks_read) as reads, sum(shared_blks_dirtied) as dirtied,
          sum(local_blks_hit + local_blks_read) as local, sum(local_blks_read) as local_reads,
          sum(local_blks_dirtied) as local_dirtied, sum(local_blks_written) as local_written,
          sum({shared}_read_time) * 1e6 as read_time, sum({shared}_write_time) * 1e6 as write_time,
          sum({column_or_null("temp_blk_read_time", has)}) * 1e6 as temp_read_time,
          sum({column_or_null("temp_blk_write_time", has)}) * 1e6 as temp_write_time, sum(temp_blks_read) as temp_read,
          sum(temp_blks_written) as temp, sum({column_or_null("wal_bytes", has)}) as wal,
          sum({column_or_null("wal_buffers_full", has)}) as full,
          case when bool_or(verdict = 'evicted') then 'evicted' else 'ok' end as verdict,
          coalesce(max(why) filter (verdict = 'evicted'), '') as why
        from {VIEW} where {_where(interval)} group by 1 order by time desc""",
        VIEW,
    )
    for row in rows:
        row["of"] = names.get(row["id"], f"oid {row['id']}")
    return rows


def _jit(interval: Interval, has: set[str], names: dict[int, str]) -> list[Row]:
    """Return the counts and times of JIT compilation, for databases where something was compiled."""
    if "jit_functions" not in has:
        return []
    counts = ", ".join(f"sum({column_or_null(f'jit_{name}', has)}) as {word}" for name, word in JIT_COUNTS.items())
    times = ", ".join(f"sum({column_or_null(f'jit_{word}_time', has)}) * 1e6 as {word}" for word in JIT_TIMES)
    rows = interval.query(
        f"select dbid as id, {counts}, {times} from {VIEW} where {_where(interval)} group by 1"
        " having sum(jit_functions) > 0 order by functions desc",
        VIEW,
    )
    return [{**row, "database": names.get(row["id"], f"oid {row['id']}")} for row in rows]
