"""One MariaDB table written as one Arrow file, or as an Arrow stream to stdout."""

from __future__ import annotations

import contextlib
from pathlib import Path

from dbdyno.base.core_types import MoveFailure, MoveFinishedChunk
from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.move.engines.mariadb.columns import text_of
from dbdyno.move.engines.mariadb.cost import sessions_of
from dbdyno.move.engines.mariadb.job import notes_before, plan_of, start_workers
from dbdyno.move.engines.mariadb.source import connect, select_sql
from dbdyno.move.engines.postgres.source import Request
from dbdyno.move.ledger.folder import MODULUS
from dbdyno.move.proof.cost import sentence
from dbdyno.move.reading.run import LOOK_S, JobOptions, Plan, new_id, table_specs
from dbdyno.move.reading.single import FORMS, STDOUT, WrittenFile, as_text, collect, refuse_other_rows


def write(target: MariaDB, request: Request, to: str, options: JobOptions, *, read_again: bool = False) -> WrittenFile:
    """Write one table to a file or to stdout; the arguments are those of `reading.single.write`.

    Raises:
        MoveError: The format is not available, the file exists, or the server reports an error.
        BrokenPipeError: The reader of stdout closed it early.
    """
    path = None if to == STDOUT else Path(to)
    form = "stream" if path is None else FORMS[path.suffix]
    if form == "csv":
        raise MoveError("CSV can be written only from PostgreSQL", where=to, next_step="name x.arrow, or a folder")
    if path is not None and path.exists():
        raise MoveError("already exists", where=to, next_step="name a new file")
    job = new_id()
    with contextlib.closing(connect(target, job)) as conn:
        plan = plan_of(target, conn, request, job, options)
    if len(plan.tables) != 1:
        raise MoveError(
            f"the job has {len(plan.tables)} tables, but one file can hold only one",
            where="TARGET",
            next_step="name a folder",
        )
    for line in notes_before(plan):
        options.say(line)
    while True:
        done, failed, at = _run(target, plan, options, path, form)
        if failed is None:
            break
        plan = as_text(plan, failed, path, options.say, text_of, "as of a new instant")
    found = f"{sum(int(one['hash'], 16) for one in done) % MODULUS:032x}"
    count = sum(one["rows"] for one in done)
    again = read_again and refuse_other_rows(to, count, found)
    return WrittenFile(count, at, found, again, sentence(sessions_of(done)))


def _run(
    target: MariaDB, plan: Plan, options: JobOptions, path: Path | None, form: str
) -> tuple[list[MoveFinishedChunk], MoveFailure | None, str]:
    given = {
        "tables": table_specs(plan),
        "chunks": [
            {"number": one.number, "table": 0, "sql": select_sql(plan.tables, one), "path": None} for one in plan.chunks
        ],
        "single": {"path": None if path is None else str(path), "form": form, "head": ""},
    }
    with start_workers(target, plan, given, options) as running:
        found = iter(lambda: running.job.next(LOOK_S), None)
        return *collect(found, running.job, plan, options, lambda: None), running.at
