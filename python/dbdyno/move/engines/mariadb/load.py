"""Loads of files into a MariaDB table, all or nothing.

`LOAD DATA LOCAL` fills a private staging table; one transaction then moves the rows into the target.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.core_types import MoveFinishedChunk
from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.mariadb.session import rows
from dbdyno.move.engines.mariadb.publish import StagedTable, publish
from dbdyno.move.engines.mariadb.source import SESSION, failure
from dbdyno.move.engines.mariadb.target import (
    WRITING,
    Field,
    Heads,
    TargetTable,
    database_of,
    drop,
    drop_stages,
    load_sql,
    make_stages,
    match_target,
)
from dbdyno.move.engines.postgres.columns import Column
from dbdyno.move.engines.postgres.source import application_name
from dbdyno.move.ledger.folder import MODULUS
from dbdyno.move.loading.files import (
    add_rejects,
    check_against_records,
    describe_files,
    files_of,
    refuse_unstaged,
    rejects_of,
)
from dbdyno.move.loading.pieces import CSV, whole_files
from dbdyno.move.loading.request import LoadRequest, LoadResult
from dbdyno.move.loading.workers import failure_of, run_workers, wait_for
from dbdyno.move.reading.run import JobOptions, new_id

REPAIR = "repair the value, or move its column as text"
KINDS = {
    "tinyint(1)": "bool",
    "smallint": "int2",
    "int": "int4",
    "bigint": "int8",
    "int unsigned": "oid",
    "float": "float4",
    "double": "float8",
    "date": "date",
    "time(6)": "time",
    "datetime(6)": "timestamp",
    "longtext": "text",
    "longblob": "bytea",
}
"""Kind of a staged column, by its MariaDB type; used to read the staging table again."""


def load_files(
    target: MariaDB,
    folder: Path,
    load_request: LoadRequest,
    options: JobOptions,
    level: str = "counts",
) -> LoadResult:
    """Load one file or the files of a folder into a table; if the load fails, the table is unchanged.

    The arguments are those of `loading.load.load_files`.

    Raises:
        MoveError: The load was refused or failed.
    """
    files, records = files_of(folder)
    refuse_csv(files)
    heads = describe_files(files)[0][0]
    rejects = rejects_of(load_request, files)
    read_again, compare = level in ("source", "target"), level == "target"
    job = new_id()
    with open_session(target, job) as conn, make_target(conn, target, load_request, heads) as goal:
        options.say(f"job {job}: staging into {goal.stage_name(job, 0)}")
        placed = rejects is not None
        with make_staging(conn, goal, job, [0], placed=placed):
            done: list[MoveFinishedChunk] = []
            pieces = dict(enumerate(whole_files(files)))
            statements = dict.fromkeys(pieces, load_sql(goal, job, 0, placed=placed))
            server = server_spec(target, job)
            run_workers(server, pieces, statements, options, done.append, placed=placed, repair=REPAIR)
            done.sort(key=lambda one: int(one["number"]))
            check_against_records(files, done, records)
            if rejects is not None:
                for one in done:
                    add_rejects(rejects, one["number"], one["refused"])
            if read_again:
                refuse_unstaged(done)
                total = sum(int(one["hash"], 16) for one in done) % MODULUS
                read_staged(target, goal, job, [0], options, total)
            count = sum(one["rows"] for one in done)
            here = count - sum(len(one["refused"]) for one in done)
            (published,) = publish(
                conn, job, [StagedTable(goal, [0], load_request, here)], rejects=rejects, compare=compare
            )
    return LoadResult(
        len(files),
        count,
        load_request.mode,
        published.merged,
        rejected=0 if rejects is None else len(rejects.rows),
        rejects=None if rejects is None else rejects.path,
        rounded=tuple(published.differs),
        created=load_request.create,
        records=records is not None,
        read_again=read_again,
        stands=compare,
    )


def refuse_csv(files: Sequence[Path]) -> None:
    """Raise `MoveError` if the files are CSV, which cannot be loaded into MariaDB.

    Raises:
        MoveError: The first file is a CSV.
    """
    if files[0].suffix == CSV:
        raise MoveError(
            "a CSV file can be loaded only into PostgreSQL",
            where=str(files[0]),
            next_step="give Parquet or Arrow files",
        )


@contextlib.contextmanager
def open_session(target: MariaDB, job: str) -> Iterator[Any]:
    """Open a session that stages and publishes rows, and close it on exit.

    Raises:
        MoveError: The server reports an error, even inside the `with` block.
        TargetError: The user's configuration names the server as live, or it does not answer.
    """
    target.refuse_live()
    conn = target.connect(answer_s=None, name=application_name(job))
    try:
        for text in WRITING:
            rows(conn, text)
        yield conn
    except driver().Error as error:
        raise failure(error, target.safe_dsn) from None
    finally:
        conn.close()


@contextlib.contextmanager
def make_target(conn: Any, target: MariaDB, load_request: LoadRequest, heads: Heads) -> Iterator[TargetTable]:
    """Find or create the target table, and drop it again if it was created here and the load fails."""
    goal = match_target(conn, database_of(target), load_request, heads)
    try:
        yield goal
    except BaseException:
        if load_request.create:
            with contextlib.suppress(Exception):
                drop(conn, goal)
        raise


@contextlib.contextmanager
def make_staging(conn: Any, goal: TargetTable, job: str, numbers: Sequence[int], *, placed: bool) -> Iterator[None]:
    """Create the job's staging tables, and drop them on exit."""
    make_stages(conn, goal, job, numbers, placed=placed)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            drop_stages(conn, goal, job, numbers)


def server_spec(target: MariaDB, job: str) -> dict[str, object]:
    """Return the core's specification of the server that receives rows."""
    return {"connection": target.load_connection(application_name(job)), "session_sql": list(WRITING)}


def read_staged(
    target: MariaDB, goal: TargetTable, job: str, numbers: Sequence[int], options: JobOptions, total: int
) -> None:
    """Read the staged rows again through this project's reader and compare their hash with `total`.

    Raises:
        MoveError: The hashes differ.
    """
    names = ", ".join(f"`{one.name.replace('`', '``')}`" for one in goal.fields)
    mover = _core.MoveJob(
        {
            "connection": target.load_connection(application_name(job)),
            "session_sql": list(SESSION),
            "tables": [{"columns": [_staged_column(one).spec() for one in goal.fields]}],
            "chunks": [
                {
                    "number": number,
                    "table": 0,
                    "sql": f"select {names} from {goal.stage_name(job, number)}",
                    "path": None,
                }
                for number in numbers
            ],
            "workers": options.workers,
            "memory_bytes": options.memory_bytes,
        }
    )
    done: list[MoveFinishedChunk] = []
    failed = wait_for(mover, done.append)
    if failed is not None:
        raise failure_of(failed, {number: f"staging table {number}" for number in numbers}, REPAIR)
    if sum(int(one["hash"], 16) for one in done) % MODULUS != total:
        raise MoveError(
            "the staged rows differ from those received; the table was not changed",
            next_step="report this error, with the versions of dbdyno and of the server",
        )


def _staged_column(field: Field) -> Column:
    if field.staged.startswith("decimal("):
        precision, scale = field.staged[8:-1].split(",")
        return Column(field.name, "decimal", field.staged, int(precision), int(scale))
    return Column(field.name, KINDS[field.staged], field.staged)
