"""Loads of files into a MariaDB table as a resumable job, with one staging table per piece, as for PostgreSQL.

Pieces that were interrupted are loaded again from the start; no finished piece is read twice. MariaDB keeps the staging
tables across a restart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.move.engines.mariadb.load import REPAIR, make_target, open_session, server_spec
from dbdyno.move.engines.mariadb.staged_rows import drop_all, heads_of, publish_staged
from dbdyno.move.engines.mariadb.target import TargetTable, load_sql, make_stages
from dbdyno.move.engines.mariadb.transfer import resumed_session
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.loading.files import rejects_of
from dbdyno.move.loading.load_job import new_ledger, plan_of, resumed_plan, stage_unfinished, staged_files
from dbdyno.move.loading.pieces import Piece
from dbdyno.move.loading.request import LoadRequest, LoadResult
from dbdyno.move.loading.staged_rows import request_of
from dbdyno.move.loading.workers import Record, run_workers
from dbdyno.move.nouns import with_noun
from dbdyno.move.reading.resume import refuse_ended
from dbdyno.move.reading.run import JobOptions, Plan, new_id

START_MESSAGE = "job {}: staging {}, each in a table beside the target; KILL one of its sessions to end it"


def load(
    target: MariaDB, source: Path, load_request: LoadRequest, folder: Path, options: JobOptions, level: str
) -> LoadResult:
    """Start a new job and run it from the files to the commit; see `loading.load_job.load`."""
    plan = plan_of(source, load_request, target.safe_dsn, new_id(), options.workers)
    rejects_of(load_request, [])
    with contextlib.ExitStack() as stack:
        conn = stack.enter_context(open_session(target, plan.id))
        plan = replace(plan, into={**(plan.into or {}), "server": target.identity(conn)})
        ledger = new_ledger(plan, folder, options)
        try:
            goal = stack.enter_context(make_target(conn, target, load_request, heads_of(plan, 0)))
        except BaseException:
            ledger.discard()
            raise
        options.say(START_MESSAGE.format(plan.id, with_noun(len(plan.chunks), "piece")))
        return _work(target, conn, ledger, plan, [goal], options, level)


def resume_load(
    target: MariaDB, ledger: Ledger, options: JobOptions, level: str, *, restart: bool
) -> LoadResult | None:
    """Resume a job, or return None; see `loading.load_job.resume_load`."""
    ledger.refuse_foreign()
    refuse_ended(ledger)
    plan = Plan.from_json(ledger.plan)
    with resumed_session(target, ledger, plan) as (conn, goals):
        if goals is None:
            return None
        before, plan = plan, resumed_plan(plan, request_of(plan), options, restart=restart)
        with ledger.locked():
            if restart:
                ledger.forget()
                # There may be fewer pieces now.
                drop_all(conn, before, goals)
                ledger.manifest["plan"] = plan.to_json()
            ledger.begin_attempt("restarted" if restart else "resumed", options.workers, options.memory_bytes)
        return _work(target, conn, ledger, plan, goals, options, level)


def _work(
    target: MariaDB,
    conn: Any,
    ledger: Ledger,
    plan: Plan,
    goals: Sequence[TargetTable],
    options: JobOptions,
    level: str,
) -> LoadResult:
    """Load the pieces that are not staged yet, then publish all; after a `MoveError` the job can be resumed."""
    into, (goal, *_) = request_of(plan), goals
    placed = into.rejects is not None

    def stage(left: Mapping[int, Piece], record: Record) -> None:
        make_stages(conn, goal, plan.id, list(left), placed=placed)
        statements = {number: load_sql(goal, plan.id, number, placed=placed) for number in left}
        run_workers(server_spec(target, plan.id), left, statements, options, record, placed=placed, repair=REPAIR)

    with ledger.locked():
        stage_unfinished(ledger, plan, stage)
        done, of_a_job = staged_files(ledger, plan)
        loaded = publish_staged(target, conn, ledger, goals, into, options, level)
        assert isinstance(loaded, LoadResult)
        loaded = replace(loaded, files=len(done), source="files", records=of_a_job)
        ledger.manifest["proved"] = loaded.sentences()
        ledger.save()
    return loaded
