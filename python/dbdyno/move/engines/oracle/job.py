"""Jobs that read an Oracle table into Parquet, one file per piece, from python-oracledb's Arrow batches.

An interrupted job resumes as of its SCN and stays exact, as long as the server still has the undo for that SCN.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.errors import MoveError
from dbdyno.base.files import file_replacement, sync_folder
from dbdyno.base.json_types import JsonObject
from dbdyno.move.engines.oracle import source
from dbdyno.move.engines.oracle.types import DescribedColumn, column_of
from dbdyno.move.engines.postgres.columns import Column
from dbdyno.move.engines.postgres.source import Request, Table
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.reading.run import JobOptions, Plan, new_id
from dbdyno.move.reading.splits import PIECES_PER_WORKER, Chunk, Relation

BATCH_BYTES = 8 << 20
ROW_BYTES = 200
"""Assumed size of a row in bytes, used to choose the number of rows per batch."""
PASSWORD_VARIABLE = "ORACLE_PASSWORD"  # noqa: S105 - the name of a variable
TOO_OLD = "ORA-01555"


@contextlib.contextmanager
def session(address: source.Address) -> Iterator[Any]:
    """Open a read-only session, and close it on exit.

    The password is that of `address`, else that of the environment variable `ORACLE_PASSWORD`.

    Raises:
        MoveError: The driver is missing or the connection fails.
    """
    oracledb = source.driver()
    password = address.password or os.environ.get(PASSWORD_VARIABLE)
    try:
        conn = oracledb.connect(user=address.user, password=password, dsn=address.dsn)
    except oracledb.Error as error:
        raise failure(error, address.dsn) from None
    with contextlib.closing(conn), conn.cursor() as cursor:
        for place, text in enumerate(source.SESSION):
            with (
                contextlib.suppress(oracledb.DatabaseError)
                if place == source.OPTIONAL_STATEMENT
                else contextlib.nullcontext()
            ):
                cursor.execute(text)
        yield conn


def failure(error: Exception, where: str) -> MoveError:
    """Return a `MoveError` with the first line of the driver's error and the user's next step."""
    said = str(error).strip().splitlines()[0]
    step = (
        "move the table again: the undo data of the SCN is no longer available"
        if TOO_OLD in said
        else "look up the server's error code, correct the cause and move the table again"
    )
    return MoveError(said, where=where, next_step=step)


def begin(address: source.Address, shown: str, request: Request, folder: Path, options: JobOptions) -> Ledger:
    """Create a new job's ledger and write its SCN and its pieces to disk; nothing is read yet.

    Raises:
        MoveError: The request is not for exactly one whole table, the table or a column is missing, or the server
            reports an error.
    """
    if len(request.tables) != 1 or request.patterns or request.query or request.where or request.partition:
        raise MoveError(
            "a move from Oracle takes one table without conditions",
            where="--table",
            next_step="write --table OWNER.NAME without conditions",
        )
    owner, name = source.split_name(request.tables[0], address.user)
    with session(address) as conn, conn.cursor() as cursor:
        try:
            scn, at = cursor.execute(source.SCN_SQL).fetchone()
            described = _columns(cursor, owner, name, request)
            pieces, blocks = _pieces(cursor, owner, name, options)
        except source.driver().Error as error:
            raise failure(error, f"{owner}.{name}") from None
    if any(one.bare_type in ("CLOB", "NCLOB", "BLOB") for one in described):
        options.say("LOBs are fetched as values: each must fit into memory")
    columns = tuple(column_of(one) for one in described)
    relation = Relation(owner, name, blocks=blocks, stream=not pieces)
    parts: Sequence[source.Piece | None] = pieces or (None,)
    chunks = [
        Chunk(place, 0, 0, f"part-{place:05}.parquet", piece.bytes if piece else 0) for place, piece in enumerate(parts)
    ]
    table = Table(schema=owner, name=name, kind="table", columns=columns, relations=(relation,))
    plan = Plan(new_id(), shown, address.dsn, (table,), tuple(chunks))
    sql = [source.select_sql(owner, name, described, scn, piece) for piece in parts]
    manifest = {"status": "running", "plan": {**plan.to_json(), "sql": sql}, "snapshots": [{"id": str(scn), "at": at}]}
    ledger = Ledger.create(folder, manifest)
    ledger.begin_attempt("begun", options.workers, options.memory_bytes)
    options.say(
        f"job {plan.id}: as of SCN {scn}; the developers never tested this on an Oracle server: compare the rows"
    )
    return ledger


def _columns(cursor: Any, owner: str, name: str, request: Request) -> list[DescribedColumn]:
    found = [DescribedColumn(*row[:4]) for row in cursor.execute(source.COLUMNS_SQL, owner=owner, name=name).fetchall()]
    if not found:
        raise MoveError(
            "there is no such table",
            where=f"{owner}.{name}",
            next_step="write names in upper case, and check that this user may read the table",
        )
    known = {one.name: one for one in found}
    missing = [one for one in request.columns if one not in known]
    if missing:
        raise MoveError(
            f"has no column {missing[0]!r}",
            where=f"{owner}.{name}",
            next_step="name columns of the table in upper case",
        )
    return [known[one] for one in request.columns] or found


def _pieces(cursor: Any, owner: str, name: str, options: JobOptions) -> tuple[list[source.Piece], int]:
    """Return the table's pieces and number of blocks; without pieces it is one stream, and the reason is reported."""
    row = cursor.execute(source.TABLE_SQL, owner=owner, name=name).fetchone()
    if row is None or row[2] is not None or row[4] == "Y":
        options.say(f"{owner}.{name}: one stream: it has no blocks (a view, index-organised or temporary)")
        return [], 0
    try:
        rows = cursor.execute(source.EXTENTS_SQL, owner=owner, name=name).fetchall()
    except source.driver().DatabaseError:
        options.say(f"{owner}.{name}: one stream: dba_extents cannot be read (grant SELECT_CATALOG_ROLE)")
        return [], 0
    extents = [source.Extent(*row) for row in rows]
    return source.group_extents(extents, options.workers * PIECES_PER_WORKER), sum(one.blocks for one in extents)


def run_job(address: source.Address, ledger: Ledger, options: JobOptions) -> None:
    """Read all unfinished pieces; a job that fails can be resumed as of the same SCN.

    Raises:
        MoveError: A piece failed, or the plan was not made by this user.
    """
    ledger.refuse_foreign()
    with ledger.locked(), ledger.phase("reading"):
        ledger.sweep()
        plan = ledger.plan
        columns = [Column(**one) for one in plan["tables"][0]["columns"]]
        done = ledger.records()
        left = [chunk for chunk in plan["chunks"] if chunk["number"] not in done]
        with ThreadPoolExecutor(options.workers) as workers:
            tasks = [
                workers.submit(
                    _read, address, plan["sql"][one["number"]], ledger.folder / one["file"], columns, options
                )
                for one in left
            ]
            numbers = dict(zip(tasks, left, strict=True))
            try:
                for task in as_completed(tasks):
                    ledger.record({**task.result(), "number": numbers[task]["number"], "file": numbers[task]["file"]})
            except BaseException:
                workers.shutdown(cancel_futures=True)
                raise
        ledger.manifest["status"] = "complete"


def _read(address: source.Address, sql: str, path: Path, columns: Sequence[Column], options: JobOptions) -> JsonObject:
    """Write one piece to a temporary file, verify it by reading it again, sync it and rename it; return its record."""
    import pyarrow
    from pyarrow import parquet

    oracledb, begun = source.driver(), time.monotonic()
    fields = [pyarrow.field(one.name, _arrow(one), metadata={"dbdyno.pg_type": one.pg_type}) for one in columns]
    schema, counted = pyarrow.schema(fields), 0
    size = max(min(BATCH_BYTES, options.memory_bytes // options.workers // 4) // ROW_BYTES, 1)
    try:
        with file_replacement(path) as aside:
            with session(address) as conn, parquet.ParquetWriter(aside, schema, compression="zstd") as out:
                for frame in conn.fetch_df_batches(sql, size=size, fetch_decimals=True):
                    batch = pyarrow.table(frame)
                    # pyarrow raises an error for a cast that would lose information.
                    out.write_table(batch.rename_columns([one.name for one in columns]).cast(schema))
                    counted += batch.num_rows
            with aside.open("rb") as written:
                os.fsync(written.fileno())
            rows, found = _core.move_read_back(aside)
            if rows != counted:
                raise MoveError(
                    f"{counted:,} rows were received, but {rows:,} are in the file",
                    where=path.name,
                    next_step="check the disk, then move the table again",
                )
        sync_folder(path.parent)
    except oracledb.Error as error:
        raise failure(error, path.name) from None
    except pyarrow.ArrowInvalid as error:
        raise MoveError(
            f"a value does not fit its type: {error}", where=path.name, next_step="leave the column out with --columns"
        ) from None
    elapsed_ns = int((time.monotonic() - begun) * 1e9)
    told = {"rows": rows, "hash": found, "file_bytes": path.stat().st_size, "snapshot": 0}
    return {**told, "elapsed_ns": elapsed_ns, "ended_ns": time.time_ns()}


def _arrow(column: Column) -> Any:
    import pyarrow

    if column.kind == "decimal":
        return pyarrow.decimal128(column.precision, column.scale)
    kinds = {"float4": pyarrow.float32(), "float8": pyarrow.float64(), "timestamp": pyarrow.timestamp("us")}
    return {**kinds, "bytea": pyarrow.binary()}.get(column.kind, pyarrow.string())
