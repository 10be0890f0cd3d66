"""Export of a model run's waits and calls as Oracle trace files (event 10046), one per arm and session.

The run is first laid out as if it had been imported from traces (calls, waits, cursors, stamps by file and line), and
that is passed to the writer of `dbdyno trace write`.

Precision: a trace counts microseconds, a model nanoseconds. Timestamps are rounded, not durations: each timestamp loses
its fraction of a microsecond, and a duration is the difference of two such timestamps. So a duration is off by less
than 1 us, consecutive durations add up to the whole, and no error accumulates, however long the run. The CPU time of a
call is its duration minus the waits inside it, which is exact in the model.

A transaction is written as a call of depth 0, and what it calls (a commit) as a call of depth 1 inside it. Each block
is a separate session in the file (`SESSION ID`), because the blocks of a model do not follow one another in time. The
trace's module is the arm's name, its action is the block.

Limits: what the trace format cannot hold is left out (metrics, redo bytes of a commit). The whole run is sorted on
disk, in the system's temporary folder: about 150 bytes for each call and wait.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import ModelError
from dbdyno.base.signals import interruptible
from dbdyno.evidence.query import complete_parts

if TYPE_CHECKING:
    import duckdb

    from dbdyno.evidence.run import Run

# Oracle's names of p1, p2 and p3 (Oracle Database Reference, appendix C); for other events they are p1, p2, p3.
PARAMETERS = {
    "SQL*Net message from client": "driver id,#bytes,p3",
    "cell multiblock physical read": "cellhash#,diskhash#,bytes",
    "cell single block physical read": "cellhash#,diskhash#,bytes",
    "cell smart table scan": "cellhash#,p2,p3",
    "db file parallel write": "requests,interrupt,timeout",
    "db file scattered read": "file#,block#,blocks",
    "db file sequential read": "file#,block#,blocks",
    "direct path read": "file number,first dba,block cnt",
    "direct path read temp": "file number,first dba,block cnt",
    "direct path write temp": "file number,first dba,block cnt",
    "free buffer waits": "file#,block#,set-id#",
    "log buffer space": "p1,p2,p3",
    "log file parallel write": "files,blocks,requests",
    "log file sync": "buffer#,sync scn,p3",
    "rdbms ipc message": "timeout,p2,p3",
    "read by other session": "file#,block#,class#",
    "write complete waits": "file#,block#,p3",
}
# Oracle's command codes: a PL/SQL block and COMMIT; all other kinds get 0.
_COMMANDS = {"transaction": 47, "commit": 44}
_SQLID = "0123456789abcdfghjkmnpqrstuvwxyz"


@dataclass(frozen=True)
class TraceFile:
    """A trace file that was written, with the number of its records."""

    path: str
    records: int


def write_model_trace(run: Run, out: Path) -> list[TraceFile]:
    """Write the traces of a model run into the folder `out`.

    Raises:
        ModelError: the run is not a model run, or has no complete block.
        EvidenceError: a part cannot be read or a file cannot be written.
    """
    import duckdb

    from dbdyno import _core

    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-model-trace-") as scratch,
        interruptible(duckdb.connect(str(Path(scratch) / "work.duckdb"))) as connection,
    ):
        _read(connection, run)
        _number(connection, run)
        _measure(connection)
        connection.execute(_RECORDS)
        layout = Path(scratch) / "import"
        _lay_out(connection, layout)
        written = json.loads(_core.write_trace(layout, out))
    return [TraceFile(file["path"], file["records"]) for file in written["files"]]


def is_model(run: Run) -> bool:
    """Return True if the target of the run was a model."""
    return run.manifest.has("machine")


def _read(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Create the tables `c` and `w`: the calls and waits of complete blocks, with their durations in us."""
    if not is_model(run):
        raise ModelError("is not a run of a model", where=str(run.path), next_step="read a trace with `dbdyno trace`")
    for table in ("calls", "waits"):
        parts, broken = complete_parts(run, table)
        if broken:
            raise ModelError(broken[0], where=str(run.path), next_step="run the model again")
        if not parts:
            raise ModelError(
                f"contains no complete block with {table}",
                where=str(run.path),
                next_step=f"finish the run with: dbdyno run --resume {run.id}",
            )
        names = ", ".join("'" + str(part).replace("'", "''") + "'" for part in parts)
        connection.execute(f"create view {table} as select * from read_parquet([{names}])")  # noqa: S608
    connection.execute("""
        create table w as
        select arm::varchar as arm, object::varchar as object, session::bigint as session,
               block::bigint as block, started_ns, started_ns + elapsed_ns as ended_ns,
               ended_ns // 1000 - started_ns // 1000 as us, event::varchar as event, p1, p2, p3
        from waits""")
    connection.execute("""
        create table c as
        select arm::varchar as arm, 'session' as object, session::bigint as session,
               block::bigint as block, started_ns, started_ns + elapsed_ns as ended_ns,
               ended_ns // 1000 - started_ns // 1000 as us, kind::varchar as kind,
               case kind::varchar when 'commit' then 'COMMIT' else statement::varchar end as text,
               (kind::varchar != 'transaction')::utinyint as depth, rows
        from calls""")


def _number(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Create the tables `f` (files), `s` (statements), `p` (names of wait parameters) and `h` (file header)."""
    connection.execute("""
        create table f as
        with found as (
          select arm, object, session from w union select arm, object, session from c)
        select arm, object, session,
               (row_number() over (order by arm, object != 'session', object, session)
                 - 1)::uinteger as file
        from found""")
    texts = connection.execute("select text, min(kind), min(depth) from c group by text order by text").fetchall()
    connection.execute(
        "create table s (cursor bigint, text varchar, sqlid varchar, hash_value bigint, command bigint, depth utinyint)"
    )
    for at, (text, kind, depth) in enumerate(texts, 1):
        row = [at, text, *identifiers(text), _COMMANDS.get(kind, 0), depth]
        connection.execute("insert into s values (?, ?, ?, ?, ?, ?)", row)
    connection.execute("create table p (event varchar, names varchar)")
    connection.executemany("insert into p values (?, ?)", list(PARAMETERS.items()))
    header = (
        "Written by dbdyno from a modelled run; no Oracle database was involved\n"
        f"Instance name: {run.manifest.machine['target']}\nDatabase name: {run.id}"
    )
    connection.execute("create table h as select ? as header", [header])


def identifiers(text: str) -> tuple[str, int]:
    """Return Oracle's SQL_ID and hash value of a statement's text.

    The SQL_ID is the last 64 bits of the MD5 of the text with a NUL appended, in base 32; the hash value is the last 32
    bits of the same MD5.
    """
    digest = hashlib.md5(text.encode() + b"\0", usedforsecurity=False).digest()
    high, low = (int.from_bytes(digest[at : at + 4], "little") for at in (8, 12))
    number = high << 32 | low
    return "".join(_SQLID[number >> 5 * at & 31] for at in range(12, -1, -1)), low


def _measure(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables `ww` (waits with their cursor) and `cc` (calls with their CPU time).

    The waits of a session do not overlap, so the time waited inside a call is the difference of two running sums.
    """
    connection.execute("""
        create table numbered as
        select file, s.cursor, c.* exclude (arm, object, session)
        from c join f using (arm, object, session) join s using (text)""")
    connection.execute("""
        create table ww as
        with own as (
          select file, w.* exclude (arm, object, session)
          from w join f using (arm, object, session))
        select own.*, sum(own.us) over (partition by own.file order by own.ended_ns) as waited_us,
               coalesce(if(i.started_ns <= own.started_ns, i.cursor, null),
                        if(o.started_ns <= own.started_ns, o.cursor, null), 0) as cursor
        from own
        asof left join (select * from numbered where depth = 1) i
          on own.file = i.file and own.ended_ns <= i.ended_ns
        asof left join (select * from numbered where depth = 0) o
          on own.file = o.file and own.ended_ns <= o.ended_ns""")
    connection.execute("""
        create table cc as
        with sums as (
          select file, ended_ns, max(waited_us) as waited_us from ww group by file, ended_ns)
        select n.*, greatest(0, us - coalesce(e.waited_us, 0) + coalesce(b.waited_us, 0)) as cpu_us
        from numbered n
        asof left join sums e on n.file = e.file and n.ended_ns >= e.ended_ns
        asof left join sums b on n.file = b.file and n.started_ns >= b.ended_ns""")


# Table `r`: every record with its line. Within a block the order is: stamps, statements, then calls and waits; children
# come before their parents, and waits before the call that waited.
_RECORDS = """
    create table r as
    with first as (
      select file, block, min(started_ns) as started_ns, min(ended_ns) as ended_ns
      from (select file, block, started_ns, ended_ns from ww union all
            select file, block, started_ns, ended_ns from cc) group by all),
    cursors as (
      select distinct c.file, c.block, c.cursor, first.started_ns
      from cc c join first using (file, block)),
    heads as (
      select f.*, arm, b.block, coalesce(c.started_ns, b.ended_ns) as wall_ns
      from f join first b using (file)
      left join (select distinct file, block, started_ns from cursors) c using (file, block)),
    records as (
      select file, block, 'stamp' as what, place, null::bigint as ended_ns, 0::bigint as started_ns,
             kind as word,
             case kind when 'session' then format('{}.{}', file + 1, block + 1)
                       when 'module' then arm when 'action' then format('block {}', block)
                       else '' end as text,
             wall_ns // 1000 * 1000 as wall_ns
      from heads,
        (values (0, 'session'), (1, 'module'), (2, 'action'), (3, 'clock')) k (place, kind)
      union all by name
      select file, block, 'cursor' as what, 4 + cursor as place, cursor, 0::bigint as started_ns,
             started_ns // 1000 as tim from cursors
      union all by name
      select file, block, 'wait' as what, 0 as place, ended_ns, started_ns, cursor, us,
             event as word, p1, p2, p3, ended_ns // 1000 as tim from ww
      union all by name
      select file, block, 'end' as what, 1 as place, ended_ns, started_ns, ended_ns // 1000 as tim
      from cc where kind = 'commit'
      union all by name
      select file, block, 'call' as what, if(depth = 1, 2, 3) as place, ended_ns, started_ns,
             cursor, us, cpu_us, depth, rows, ended_ns // 1000 as tim from cc)
    select *, row_number() over (partition by file order by block, ended_ns nulls first, place,
                                 started_ns desc) as line, 0::bigint as byte_offset
    from records order by file, line"""

_CALLS = """
    select file, line, byte_offset, 'exec' as kind, cursor::ubigint as cursor,
           cpu_us::bigint * 1000 as cpu_ns, us::bigint * 1000 as elapsed_ns,
           0::bigint as physical_reads, 0::bigint as consistent_reads, 0::bigint as current_reads,
           0::utinyint as misses, coalesce(rows, 0)::bigint as rows, depth::utinyint as depth,
           1::utinyint as goal, 0::bigint as plan_hash, null::utinyint as close_type,
           tim::bigint as tim, null::bigint as lob_bytes, null::varchar as lob_type,
           0::bigint as call, 0::uinteger as session
    from r where what = 'call' and file = ? order by line"""

_WAITS = """
    select file, line, byte_offset, cursor::ubigint as cursor, word as event,
           us::bigint * 1000 as elapsed_ns, coalesce(names, 'p1,p2,p3') as parameters,
           coalesce(p1, 0)::bigint as p1, coalesce(p2, 0)::bigint as p2,
           coalesce(p3, 0)::bigint as p3, null::bigint as object_id, tim::bigint as tim
    from r left join p on event = word where what = 'wait' and file = ? order by line"""

_SMALL = {
    "files": """
        select file, format('{}_{}{}.trc', regexp_replace(arm, '[^A-Za-z0-9._=-]+', '-', 'g'),
                            if(object = 'session', 's', object),
                            if(object = 'session', printf('%03d', session), '')) as path,
               ''::varchar as version, 1000::bigint as unit_ns, header
        from f, h order by file""",
    "statements": "select sqlid as statement, text from s",
    "cursors": """
        select file, line, byte_offset, r.cursor::ubigint as cursor, sqlid as statement,
               strlen(s.text)::bigint as length, s.depth, 0::bigint as user_id,
               0::bigint as login_id, command, hash_value, '0' as address, sqlid,
               tim::bigint as tim, null::bigint as error
        from r join s on s.cursor = r.cursor where what = 'cursor' order by line""",
    "transactions": """
        select file, line, byte_offset, false as rollback, false as read_only, tim::bigint as tim
        from r where what = 'end' order by file, line""",
    "stamps": """
        select file, line, byte_offset, word as kind, text as value, wall_ns::bigint as wall_ns,
               0::bigint as zone_min, 6::utinyint as digits, '' as container
        from r where what = 'stamp' order by file, line""",
    "plans": """
        select 0::ubigint as cursor, 0::bigint as id, 0::bigint as rows, 0::bigint as parent,
               0::bigint as position, 0::bigint as object_id, '' as text, 0::uinteger as file,
               0::bigint as line, 0::bigint as byte_offset limit 0""",
    "errors": """
        select 0::ubigint as cursor, 0::bigint as error, 0::bigint as tim, 0::uinteger as file,
               0::bigint as line, 0::bigint as byte_offset limit 0""",
    "binds": """
        select 0::ubigint as cursor, 0::bigint as number, '' as value, '' as head,
               0::uinteger as file, 0::bigint as line, 0::bigint as byte_offset limit 0""",
}


def _lay_out(connection: duckdb.DuckDBPyConnection, layout: Path) -> None:
    """Write the folder of an import, from which the trace writer makes its files."""
    for folder in ("calls", "waits"):
        (layout / folder).mkdir(parents=True)
    for name, query in _SMALL.items():
        connection.sql(query).write_parquet(str(layout / f"{name}.parquet"))
    files = connection.execute("select file from f order by file").fetchall()
    for (number,) in files:
        for name, query in (("calls", _CALLS), ("waits", _WAITS)):
            place = layout / name / f"f{number:06}-000000.parquet"
            connection.sql(query, params=[number]).write_parquet(str(place))
