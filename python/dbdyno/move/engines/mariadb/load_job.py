"""Loads of files into a MariaDB table as a resumable job, with one staging table per piece, as for PostgreSQL.

Pieces that were interrupted are loaded again from the start; no finished piece is read twice. MariaDB keeps the staging
tables across a restart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno.base.core_types import MoveFinishedChunk
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.move.engines.mariadb.load import load_pieces, make_target, open_session
from dbdyno.move.engines.mariadb.staged_rows import drop_all, heads_of, publish_staged
from dbdyno.move.engines.mariadb.target import TargetTable, make_stages
from dbdyno.move.engines.mariadb.transfer import resumed_session
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.ledger.next_steps import with_full_command
from dbdyno.move.loading.files import check_against_records, files_of, rejects_of
from dbdyno.move.loading.load_job import files_in, new_ledger, piece_of, plan_of, refuse_changed, resumed_plan
from dbdyno.move.loading.pieces import records_by_file
from dbdyno.move.loading.request import LoadRequest, LoadResult
from dbdyno.move.loading.staged_rows import request_of
from dbdyno.move.nouns import with_noun
from dbdyno.move.reading.resume import refuse_ended
from dbdyno.move.reading.run import JobOptions, Plan, new_id

START_MESSAGE = "job {}: staging {}, each in a table beside the target; KILL of one of its sessions ends it"


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
            ledger.save()
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
    into, paths = request_of(plan), [Path(one["path"]) for one in files_in(plan)["each"]]
    placed = into.rejects is not None
    with ledger.locked():
        with ledger.phase("loading"), with_full_command(ledger):
            left = {one.number: piece_of(one, paths) for one in plan.unfinished(ledger.records())}

            def record(chunk: MoveFinishedChunk) -> None:
                ledger.record({**chunk, "file": "", "snapshot": 0})

            if left:
                make_stages(conn, goals[0], plan.id, list(left), placed=placed)
                stages = {number: number for number in left}
                load_pieces(target, goals[0], left, stages, options, plan.id, record, placed=placed)
            refuse_changed(plan)
        known = files_of(Path(files_in(plan)["folder"]))[1] if files_in(plan)["of_a_job"] else None
        files = {chunk.number: chunk.relation for chunk in plan.chunks}
        done = records_by_file(len(paths), ((files[number], one) for number, one in sorted(ledger.records().items())))
        check_against_records(paths, done, known)
        loaded = publish_staged(target, conn, ledger, goals, into, options, level)
        assert isinstance(loaded, LoadResult)
        loaded = replace(loaded, files=len(paths), source="files", records=known is not None)
        ledger.manifest["proved"] = loaded.sentences()
        ledger.save()
    return loaded
