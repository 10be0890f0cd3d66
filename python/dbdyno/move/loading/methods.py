"""The methods by which files get into a PostgreSQL table, and the steps of each.

straight     one worker, in the transaction that publishes (`direct.py`)
partitions   workers fill a copy of the table's partitions, which then replace them (`attach.py`)
swap         workers fill a new table, which then takes the target's name (`swap.py`)
staged       workers fill a staging table; one transaction adds its rows (`publish.py`)
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres import attach, direct, partitions, swap
from dbdyno.move.engines.postgres.merging import MergeCounts
from dbdyno.move.engines.postgres.partitions import Node
from dbdyno.move.engines.postgres.publish import publish
from dbdyno.move.engines.postgres.source import Request, take_snapshot
from dbdyno.move.engines.postgres.staging import fill, stage_name, staging_table
from dbdyno.move.engines.postgres.target import Heads, TargetTable, table_creator
from dbdyno.move.ledger.folder import MODULUS, ChunkFile
from dbdyno.move.loading.files import add_rejects, check_against_records, refuse_unstaged
from dbdyno.move.loading.pieces import CSV
from dbdyno.move.loading.rejects import Rejects
from dbdyno.move.loading.request import PARTITIONS, LoadRequest, LoadResult
from dbdyno.move.nouns import with_noun
from dbdyno.move.reading.run import JobOptions, Reading, job_of, new_id, plan_of

START_MESSAGES = {
    "straight": "one worker: directly into the table, in one transaction; rows are {}",
    "partitions": "job {}: filling {}, whose partitions replace the table's partitions at the end",
    "swap": "job {}: filling {}, which takes the table's name at the end",
    "staged": "job {}: staging, unlogged, into {}",
}
PUBLISHING = "{} there; publishing in one transaction"
METHODS = {
    "straight": "directly into the table",
    "partitions": "into new partitions, which replace the table's partitions",
    "swap": "into a new table, which takes over the name",
    "staged": "staged, then added in one transaction",
}
"""Descriptions of the methods for a dry run."""


@dataclass
class FileLoad:
    """One load of files into a table."""

    target: Postgres
    conn: psycopg.Connection[Any]
    files: Sequence[Path]
    records: dict[str, ChunkFile] | None
    into: LoadRequest
    how: JobOptions
    goal: TargetTable
    heads: Heads
    rejects: Rejects | None
    level: str
    publishing: bool = False
    """True while losing the connection would leave the outcome of the load unknown."""

    @property
    def read_again(self) -> bool:
        """Return True if the staged rows are to be read again."""
        return self.level in ("source", "target")

    @property
    def compare(self) -> bool:
        """Return True if the table is to be compared with the staged rows."""
        return self.level == "target"

    def run(self) -> LoadResult:
        """Run the whole load.

        Raises:
            MoveError: The load was refused or failed.
            psycopg.Error: The server reports an error.
        """
        try:
            return self._run()
        except BaseException:
            if self.rejects is not None:
                self.rejects.remove_file(self.conn)
            raise

    def _run(self) -> LoadResult:
        way = self.choose_method()
        if way == "straight":
            self.how.say(START_MESSAGES[way].format(direct.wal_sentence(self.conn, self.into)))
            return self._straight()
        job, place = stage_name(self.goal.schema)
        if way == "partitions":
            nodes = partitions.partition_tree(self.conn, self.goal.oid)
            self.how.say(START_MESSAGES[way].format(job, f"{'.'.join(place)}_0"))
            return self._by_partitions(nodes, job)
        self.how.say(START_MESSAGES[way].format(job, ".".join(place)))
        with self._stage(place, swaps=way == "swap") as stage:
            rows = self._fill(stage, job)
            self.publishing = True
            loaded = self._publish(stage, rows, swaps=way == "swap")
            self.publishing = False
        return loaded

    def choose_method(self) -> str:
        """Return the method of the load, and tell the user why a faster one is not possible.

        Raises:
            MoveError: Partitions are to be replaced, but cannot be.
        """
        straight, only = self.goal.staged_rows(self._table(), 0), self.into.mode == PARTITIONS
        plain = self._is_plain()
        fresh = self.into.create or self.into.mode == "replace"
        if plain and not self.read_again and direct.can_load_directly(self.conn, straight, self.into, self.how):
            return "straight"
        columns = [one.name for one in self.goal.columns]
        if only:
            partitions.wanted_tree(self.conn, self.goal.oid, self.into, columns)
            return "partitions"
        if self.how.workers == 1 or not (plain and fresh):
            return "staged"
        if self.goal.kind == "p":
            reason = partitions.exchange_obstacle(
                self.conn, partitions.partition_tree(self.conn, self.goal.oid), columns
            )
        else:
            reason = (
                swap.visibility_obstacle(self.conn)
                if self.into.create
                else swap.swap_obstacle(self.conn, self.goal.oid)
            )
        if reason is not None:
            self.how.say(f"rows are written twice, because no new table can replace this table: {reason}")
            return "staged"
        return "partitions" if self.goal.kind == "p" else "swap"

    def _table(self) -> sql.Identifier:
        return sql.Identifier(self.goal.schema, self.goal.name)

    def _came(self) -> Mapping[str, str | None]:
        """Return each column's type at its source, if a job of this user recorded it; else an empty mapping."""
        return {one["name"]: one["pg_type"] for one in self.heads} if self.records is not None else {}

    def _straight(self) -> LoadResult:
        def before_commit() -> None:
            self.publishing = True

        return direct.load(
            self.conn,
            self.goal.staged_rows(self._table(), 0),
            self.into,
            self.files,
            self.how,
            check=lambda done: check_against_records(self.files, done, self.records),
            first=table_creator(self.into, self.heads),
            publishing=before_commit,
        )

    def _is_plain(self) -> bool:
        """Return True if no row is checked, and the files' bytes can go into the table as they are."""
        checked = self.rejects is not None or self.compare
        return not checked and direct.accepts_bytes(self.goal.staged_rows(self._table(), 0), self.files, self._came())

    def _by_partitions(self, nodes: Sequence[Node], job: str) -> LoadResult:
        """Load rows into a copy of the partition tree (directly or from a staging table), then exchange partitions."""
        names = [one.name for one in self.goal.columns if not one.generated]
        with partitions.temporary_copy(self.conn, nodes, job) as shadow:
            if self._is_plain():
                rows = self._fill(shadow.root, job)
                loaded = LoadResult(files=0, in_files=rows, mode=self.into.mode, changes=MergeCounts(new=rows))
            else:
                inside = replace(self.into, mode="replace")
                with self._stage(stage_name(self.goal.schema)[1], swaps=False) as stage:
                    rows = self._fill(stage, job)
                    staged = replace(self.goal.staged_rows(stage, rows), table=shadow.root)
                    loaded = publish(self.conn, staged, inside, self.rejects, compare=self.compare)
            self.publishing = True
            replaced = attach.publish(self.conn, shadow, self.into, names, say=self.how.say)
            self.publishing = False
        return replace(loaded, mode=self.into.mode, replaced=replaced)

    def _stage(self, place: tuple[str, str], *, swaps: bool) -> contextlib.AbstractContextManager[sql.Identifier]:
        """Create the table that workers fill, and drop it on exit unless it became the target."""
        if not swaps:
            csv, placed = self.files[0].suffix == CSV, self.rejects is not None
            return staging_table(self.conn, place, self.goal.columns, placed=placed, csv=csv)
        heads = self.heads if self.into.create else None
        return swap.replacement_table(self.conn, place, self._table(), heads)

    def _fill(self, stage: sql.Identifier, job: str) -> int:
        """Load the files into the table and return the number of rows; raise `MoveError` if a check fails."""
        placed = self.rejects is not None
        done = fill(self.target, self.conn, self.files, stage, self.goal.columns, self.how, job, placed=placed)
        check_against_records(self.files, done, self.records)
        if self.rejects is not None:
            for one in done:
                add_rejects(self.rejects, one["number"], one["refused"])
        if self.read_again and self.files[0].suffix != CSV:
            refuse_misread(self.target, self.conn, stage, self.goal, done, self.how)
        return sum(one["rows"] for one in done)

    def _publish(self, stage: sql.Identifier, rows: int, *, swaps: bool) -> LoadResult:
        """Publish the filled table: rename it to the target's name if possible, else add its rows to the target."""
        self.how.say(PUBLISHING.format(with_noun(rows, "row")))
        staged = self.goal.staged_rows(stage, rows)
        if swaps:
            loaded = swap.publish(self.conn, staged, (self.goal.schema, self.goal.name), self.into)
            if isinstance(loaded, LoadResult):
                return loaded
            self.how.say(f"the rows are added to the table, because no new table can replace it: {loaded}")
        first = table_creator(self.into, self.heads)
        return publish(self.conn, staged, self.into, self.rejects, compare=self.compare, first=first)


def refuse_misread(
    target: Postgres,
    conn: psycopg.Connection[Any],
    stage: sql.Identifier,
    goal: TargetTable,
    done: Sequence[Mapping[str, Any]],
    options: JobOptions,
) -> None:
    """Read the staged rows again through this project's reader and compare their hash with that of the files.

    Raises:
        MoveError: The hashes differ, or the rows cannot be read.
    """
    refuse_unstaged(done)
    total = sum(int(one["hash"], 16) for one in done) % MODULUS
    request = Request(tables=[stage.as_string(conn)], columns=[one.name for one in goal.columns])
    with take_snapshot(target, request, new_id()) as snapshot:
        plan = plan_of(target, snapshot, new_id(), options)
        mover = job_of(Reading(target, plan, plan.chunks, snapshot, options))
        found = 0
        while (event := mover.next(0.2)) is not None:
            if "failed" in event:
                raise MoveError(event["failed"]["message"], where="reading the staged rows again")
            found += int(event["done"]["hash"], 16) if "done" in event else 0
    if found % MODULUS != total:
        raise MoveError(
            "the staged rows differ from the rows of the files; the table was not changed",
            next_step="report this error, with the versions of dbdyno and of the server",
        )
