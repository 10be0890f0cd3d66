"""A job's staged rows in MariaDB, one staging table per chunk: verified, then published in one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.base.core_types import MoveRecord
from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.address import driver, error_text
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.move.engines.mariadb.load import read_staged
from dbdyno.move.engines.mariadb.publish import PublishedTable, StagedTable, publish
from dbdyno.move.engines.mariadb.sql import quote_name
from dbdyno.move.engines.mariadb.target import Heads, TargetTable, drop_stages, make_stages, match_target, staged_rows
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.ledger.next_steps import refusal_step
from dbdyno.move.loading.files import add_rejects, refuse_unstaged, rejects_of
from dbdyno.move.loading.publish_order import load_requests
from dbdyno.move.loading.rejects import Rejects
from dbdyno.move.loading.request import LoadRequest, LoadResult, MultiTableResult
from dbdyno.move.loading.staged_rows import PUBLISHING, rejects_for
from dbdyno.move.nouns import with_noun
from dbdyno.move.proof.cost import sentence
from dbdyno.move.proof.statement import total_hash
from dbdyno.move.reading.run import JobOptions, Plan
from dbdyno.move.reading.splits import Chunk

STAGED = {
    "bool": "tinyint(1)",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "oid": "int unsigned",
    "float4": "float",
    "float8": "double",
    "date": "date",
    "time": "time(6)",
    "timestamp": "datetime(6)",
    "timestamptz": "datetime(6)",
    "bytea": "longblob",
}
"""MariaDB type in which a column of each kind is staged; `longtext` for other kinds."""
CONNECTION = (2006, 2013, 2055, 1053, 1927)
"""Error codes of a lost connection."""


def heads_of(plan: Plan, table: int) -> Heads:
    """Return the columns of one of the plan's tables in the form in which they arrive."""
    if plan.files is not None:
        heads: Heads = plan.files["heads"]
        return heads
    return [
        {
            "name": one.name,
            "staged": f"decimal({one.precision},{one.scale})"
            if one.kind == "decimal"
            else STAGED.get(one.kind, "longtext"),
            "mariadb_type": one.mariadb_type,
            "pg_type": one.pg_type,
            "arrow": one.kind,
        }
        for one in plan.tables[table].columns
    ]


def requests_of_plan(plan: Plan, load_request: LoadRequest) -> list[LoadRequest]:
    """Return the target of each table of the plan.

    Raises:
        MoveError: Two tables would go into the same target.
    """
    return load_requests(plan.tables, load_request, quote_name)


def target_tables(conn: Any, database: str, plan: Plan, load_request: LoadRequest) -> list[TargetTable]:
    """Return the existing target table of each table of the plan.

    Raises:
        MoveError: A target table is missing, or does not fit.
    """
    each = [replace(one, create=False) for one in requests_of_plan(plan, load_request)]
    return [match_target(conn, database, one, heads_of(plan, place)) for place, one in enumerate(each)]


def numbers_of(plan: Plan, table: int) -> list[int]:
    """Return the numbers of a table's chunks, which are part of its staging tables' names."""
    return [chunk.number for chunk in plan.chunks if chunk.table == table]


def recreate_staging(
    conn: Any, database: str, plan: Plan, load_request: LoadRequest, chunks: Sequence[Chunk]
) -> list[TargetTable]:
    """Create empty staging tables for the chunks, dropping what an interrupted worker left in them."""
    goals = target_tables(conn, database, plan, load_request)
    for place, goal in enumerate(goals):
        own = [chunk.number for chunk in chunks if chunk.table == place]
        make_stages(conn, goal, plan.id, own, placed=load_request.rejects is not None)
    return goals


def place_of(load_request: LoadRequest, plan: Plan, number: int) -> int | None:
    """Return the chunk's index in the plan, which is staged with each row; None if rows are not rejected."""
    return None if load_request.rejects is None else [one.number for one in plan.chunks].index(number)


def drop_all(conn: Any, plan: Plan, goals: Sequence[TargetTable]) -> None:
    """Drop all staging tables of the job."""
    for place, goal in enumerate(goals):
        drop_stages(conn, goal, plan.id, numbers_of(plan, place))


def mark_complete(ledger: Ledger) -> None:
    """Mark the job complete in its manifest."""
    ledger.manifest["status"] = "complete"
    ledger.save()


def publish_staged(
    target: MariaDB,
    conn: Any,
    ledger: Ledger,
    goals: Sequence[TargetTable],
    load_request: LoadRequest,
    options: JobOptions,
    level: str,
) -> LoadResult | MultiTableResult:
    """Verify the staged rows and publish them all in one transaction; see `loading.staged_rows.publish_staged`."""
    options.say(PUBLISHING.format(with_noun(sum(one["rows"] for one in ledger.records().values()), "row")))
    with ledger.phase("publishing"), _server_errors(ledger, load_request.table):
        plan = Plan.from_json(ledger.plan)
        # A column may have become text meanwhile.
        there = [
            match_target(conn, "", replace(load_request, create=False, table=one.table), heads_of(plan, place))
            for place, one in enumerate(goals)
        ]
        arriving = _Arriving(target, conn, ledger, plan, load_request, there, level)
        loaded = arriving.publish(options)
        mark_complete(ledger)
        drop_all(conn, plan, there)
        ledger.manifest["proved"] = loaded.sentences()
    return loaded


@contextlib.contextmanager
def _server_errors(ledger: Ledger, where: str) -> Iterator[None]:
    """Turn errors of the server into a `MoveError` that says how the job can be resumed."""
    try:
        yield
    except driver().Error as error:
        is_lost = bool(error.args) and error.args[0] in CONNECTION
        raise MoveError(error_text(error), where=where, next_step=refusal_step(ledger, is_lost=is_lost)) from None


@dataclass
class _Arriving:
    """Staged rows of a job, with their targets and the level of verification."""

    target: MariaDB
    conn: Any
    ledger: Ledger
    plan: Plan
    into: LoadRequest
    goals: Sequence[TargetTable]
    level: str

    def publish(self, options: JobOptions) -> LoadResult | MultiTableResult:
        """Publish all tables."""
        rejects = self._rejects()
        parts = [self._part(place, options) for place in range(len(self.goals))]
        compare = self.level == "target"
        done = publish(self.conn, self.plan.id, parts, rejects=rejects, compare=compare)
        loaded = [self._loaded_of(place, one) for place, one in enumerate(done)]
        if len(loaded) == 1:
            return loaded[0]
        names = [f"{one.schema}.{one.name}" for one in self.goals]
        return MultiTableResult(tuple(zip(names, loaded, strict=True)))

    def _records(self, place: int) -> Mapping[int, MoveRecord]:
        own = set(numbers_of(self.plan, place))
        return {number: one for number, one in self.ledger.records().items() if number in own}

    def _rejects(self) -> Rejects | None:
        """Return the rejects, including the rows that could not be staged, or None if rows are not rejected."""
        plan, files = self.plan, self.plan.files
        paths = [Path(one["path"]) for one in files["each"]] if files is not None else []
        rejects = rejects_for(self.into, plan) if files is None else rejects_of(self.into, paths)
        if rejects is not None:
            records = self.ledger.records()
            for place, chunk in enumerate(plan.chunks):
                add_rejects(rejects, place if files is None else chunk.relation, records[chunk.number]["refused"])
        return rejects

    def _part(self, place: int, options: JobOptions) -> StagedTable:
        """Verify one table's staged rows and return them as a part to publish; raise `MoveError` if they differ."""
        goal, records, numbers = self.goals[place], self._records(place), numbers_of(self.plan, place)
        here = staged_rows(self.conn, goal, self.plan.id, numbers)
        kept = sum(one["rows"] - len(one["refused"]) for one in records.values())
        if here != kept:
            raise MoveError(
                f"{kept:,} rows were staged, but the table contains {here:,}",
                where=goal.stage_name(self.plan.id, numbers[0]),
                next_step=f"run `dbdyno move resume {self.ledger.folder} --restart`",
            )
        if self.level in ("source", "target"):
            refuse_unstaged(list(records.values()))
            read_staged(self.target, goal, self.plan.id, numbers, options, int(total_hash(records), 16))
        return StagedTable(goal, numbers, requests_of_plan(self.plan, self.into)[place], here)

    def _loaded_of(self, place: int, published_table: PublishedTable) -> LoadResult:
        records, into = self._records(place), self.into
        refused_before = sum(len(record["refused"]) for record in records.values())
        return LoadResult(
            len(records),
            sum(record["rows"] for record in records.values()),
            into.mode,
            published_table.merged,
            rejected=published_table.rejected + refused_before,
            rejects=into.rejects,
            rounded=tuple(published_table.differs),
            created=into.create,
            source="source",
            read_again=self.level in ("source", "target"),
            stands=self.level == "target",
            cost=sentence(self.ledger.manifest.get("cost", [])),
        )
