"""A job's staged rows beside their PostgreSQL target: verified, then published in one transaction.

The transaction's id is written to the ledger before the commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.base.core_types import MoveRecord
from dbdyno.base.errors import MoveError
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres import attach, partitions
from dbdyno.move.engines.postgres.publish import StagedRows, publish
from dbdyno.move.engines.postgres.staging import FILE, PREFIX, ROW, server_spec
from dbdyno.move.engines.postgres.target import Heads, TargetTable, match_target, table_creator
from dbdyno.move.ledger.folder import MODULUS, Ledger
from dbdyno.move.ledger.next_steps import resumable_errors
from dbdyno.move.loading.publish_order import load_requests, publish_order, truncate
from dbdyno.move.loading.rejects import Rejects
from dbdyno.move.loading.request import PARTITIONS, LoadRequest, LoadResult, MultiTableResult
from dbdyno.move.nouns import with_noun
from dbdyno.move.proof.cost import sentence
from dbdyno.move.proof.statement import total_hash
from dbdyno.move.reading.run import JobOptions, Plan, new_id

PUBLISHING = "{} staged; publishing in one transaction"


def target_description(load_request: LoadRequest, target: str) -> JsonObject:
    """Return the plan's description of the target."""
    rejects = None if load_request.rejects is None else str(load_request.rejects.absolute())
    return {**asdict(load_request), "rejects": rejects, "target": target}


def request_of(plan: Plan) -> LoadRequest:
    """Return the user's load request from a plan whose seal is valid."""
    given = dict(plan.into or {})
    for name in ("target", "server"):
        given.pop(name)
    rejects = None if given["rejects"] is None else Path(given["rejects"])
    return LoadRequest(**{**given, "key": tuple(given["key"]), "rejects": rejects})


def heads_of(conn: psycopg.Connection[Any], plan: Plan, table: int = 0) -> Heads:
    """Return a table's columns in the form used for files, with the type in which each is staged.

    Raises:
        MoveError: The target does not know a column's type.
    """
    if plan.files is not None:
        return list(plan.files["heads"])
    columns = plan.tables[table].columns
    asked = "select format_type(to_regtype(name), -1) from unnest(%s::text[]) with ordinality u(name, n) order by n"
    names = [f'pg_catalog."{one.wire or "text"}"' for one in columns]
    types = [row[0] for row in conn.execute(asked, [names])]
    lost = next((one for one, found in zip(columns, types, strict=True) if found is None), None)
    if lost is not None:
        raise MoveError(
            f"is of type {lost.pg_type}, which the target does not have",
            where=f"column {lost.name}",
            next_step="leave the column out with --columns, or move it as text in files",
        )
    return [
        {"name": one.name, "holds": found, "pg_type": one.pg_type, "came": one.pg_type, "arrow": one.pg_type}
        for one, found in zip(columns, types, strict=True)
    ]


def target_tables(conn: psycopg.Connection[Any], plan: Plan, load_request: LoadRequest) -> list[TargetTable]:
    """Return the target of each table of the plan.

    Raises:
        MoveError: A target is missing or does not fit.
    """
    each = load_requests(plan.tables, load_request)
    return [match_target(conn, one, heads_of(conn, plan, place)) for place, one in enumerate(each)]


def stage_names(plan: Plan, goal: TargetTable, table: int = 0) -> tuple[sql.Identifier, dict[int, sql.Identifier]]:
    """Return the names of a table's parent staging table and of its children, one per chunk number."""
    stem = f"{PREFIX}{plan.id}"
    parent = stem if len(plan.tables) == 1 else f"{stem}_t{table}"
    own = [chunk.number for chunk in plan.chunks if chunk.table == table]
    return sql.Identifier(goal.schema, parent), {one: sql.Identifier(goal.schema, f"{stem}_{one}") for one in own}


def publish_staged(
    target: Postgres,
    conn: psycopg.Connection[Any],
    ledger: Ledger,
    load_request: LoadRequest,
    options: JobOptions,
    level: str,
) -> LoadResult | MultiTableResult:
    """Verify the staged rows and publish them all in one transaction.

    Raises:
        MoveError: A check failed, or the server refused the rows.
    """
    options.say(PUBLISHING.format(with_noun(sum(one["rows"] for one in ledger.records().values()), "row")))
    with ledger.phase("publishing"), resumable_errors(ledger, load_request.table):
        plan = Plan.from_json(ledger.plan)
        goals = target_tables(conn, plan, load_request)
        arriving = _Arriving(target, conn, ledger, plan, load_request, goals, level)
        for place in range(len(goals)):
            arriving.look(place, options)
        loaded = arriving.publish()
        ledger.manifest.update(status="complete", proved=loaded.sentences())
    return loaded


@dataclass
class _Arriving:
    """Staged rows of a job, with their targets and the level of verification."""

    target: Postgres
    conn: psycopg.Connection[Any]
    ledger: Ledger
    plan: Plan
    into: LoadRequest
    goals: Sequence[TargetTable]
    level: str

    def _records(self, place: int) -> dict[int, MoveRecord]:
        own = {chunk.number for chunk in self.plan.chunks if chunk.table == place}
        return {number: one for number, one in self.ledger.records().items() if number in own}

    def look(self, place: int, options: JobOptions) -> None:
        """Check that a table's staged rows are complete and, if the level requires it, unchanged.

        Raises:
            MoveError: Rows are missing or differ.
        """
        goal, records = self.goals[place], self._records(place)
        parent = stage_names(self.plan, goal, place)[0]
        rows = sum(one["rows"] for one in records.values())
        refuse_emptied(self.conn, parent, rows, self.ledger)
        if self.level in ("source", "target"):
            _read_again(self.target, self.conn, parent, goal, total_hash(records), options)

    def publish(self) -> LoadResult | MultiTableResult:
        """Publish all tables.

        Raises:
            MoveError: A check failed; nothing has changed.
            psycopg.Error: The server reports an error; nothing has changed.
        """
        rejects: list[Rejects] = []
        try:
            return self._publish_all(rejects)
        except BaseException:
            for one in rejects:
                one.remove_file(self.conn)
            raise

    def _publish_all(self, rejects: list[Rejects]) -> LoadResult | MultiTableResult:
        """Publish all tables in one transaction, whose id is written to the ledger before the commit."""
        conn, several = self.conn, len(self.goals) > 1
        loaded: dict[int, LoadResult] = {}
        with conn.transaction():
            if self.level == "target" and self.into.mode == "insert":
                # Set for the whole transaction, of which `publish` is a part.
                conn.execute("set transaction isolation level repeatable read")
            if several and self.into.mode == "replace":
                truncate(conn, self.goals)
            for place in publish_order(conn, self.goals):
                loaded[place] = self._publish(place, rejects, emptied=several and self.into.mode == "replace")
                conn.execute(
                    sql.SQL("drop table if exists {} cascade").format(
                        stage_names(self.plan, self.goals[place], place)[0]
                    )
                )
            note_transaction(conn, self.ledger)
        if not several:
            return loaded[0]
        names = [f"{one.schema}.{one.name}" for one in self.goals]
        return MultiTableResult(tuple((name, loaded[place]) for place, name in enumerate(names)))

    def _publish(self, place: int, before: list[Rejects], *, emptied: bool) -> LoadResult:
        """Publish one table inside the transaction; `before` collects the rejects of the tables published so far."""
        conn, goal = self.conn, self.goals[place]
        into = load_requests(self.plan.tables, self.into)[place]
        records = self._records(place)
        parent = stage_names(self.plan, goal, place)[0]
        rejects = rejects_for(into, self.plan, [row for one in before for row in one.rows])
        before += [] if rejects is None else [rejects]
        compare = self.level == "target"
        stage = parent if rejects is None else _copy_with_places(conn, self.plan, goal, place)
        staged = goal.staged_rows(stage, sum(one["rows"] for one in records.values()))
        if into.mode == PARTITIONS:
            loaded = publish_by_partitions(conn, goal, staged, into, rejects, compare=compare)
        else:
            first = table_creator(into, heads_of(conn, self.plan, place))
            loaded = publish(conn, staged, into, rejects, compare=compare, first=first, emptied=emptied)
        told = sentence(self.ledger.manifest.get("cost", []))
        again = self.level in ("source", "target")
        return replace(loaded, files=len(records), source="source", read_again=again, cost=told)


def rejects_for(load_request: LoadRequest, plan: Plan, earlier: Sequence[TableRow] = ()) -> Rejects | None:
    """Return a collector that names rejected rows by chunk and position; None if rows are not to be rejected."""
    if load_request.rejects is None:
        return None
    chunks = [Path(f"chunk {one.number}") for one in plan.chunks]
    return Rejects(load_request.rejects, load_request.rejects_most, chunks, earlier=tuple(earlier))


def _copy_with_places(conn: psycopg.Connection[Any], plan: Plan, goal: TargetTable, table: int) -> sql.Identifier:
    """Return a copy of the staged rows with each row's position, so that bad rows can be found; needs a transaction."""
    parent, children = stage_names(plan, goal, table)
    places = {chunk.number: place for place, chunk in enumerate(plan.chunks)}
    placed = sql.Identifier(goal.schema, f"{PREFIX}{plan.id}_placed{table}")
    text = sql.SQL("create unlogged table {} as select 0 as {}, 0::bigint as {}, s.* from {} s limit 0")
    conn.execute(text.format(placed, sql.Identifier(FILE), sql.Identifier(ROW), parent))
    for number, child in children.items():
        text = sql.SQL("insert into {} select {}, row_number() over (order by s.ctid), s.* from {} s")
        conn.execute(text.format(placed, places[number], child))
    return placed


def publish_by_partitions(
    conn: psycopg.Connection[Any],
    goal: TargetTable,
    staged: StagedRows,
    load_request: LoadRequest,
    rejects: Rejects | None,
    *,
    compare: bool,
) -> LoadResult:
    """Publish the staged rows through a copy of the partition tree; must run inside a transaction."""
    names = [one.name for one in goal.columns if not one.generated]
    shadow = partitions.create_copy(conn, partitions.wanted_tree(conn, goal.oid, load_request, names), new_id())
    inside = replace(load_request, mode="replace")
    loaded = publish(conn, replace(staged, table=shadow.root), inside, rejects, compare=compare)
    replaced = attach.publish(conn, shadow, load_request, names)
    partitions.drop_copy(conn, shadow)
    return replace(loaded, mode=load_request.mode, replaced=replaced)


def _read_again(
    target: Postgres,
    conn: psycopg.Connection[Any],
    parent: sql.Identifier,
    goal: TargetTable,
    wanted: str,
    options: JobOptions,
) -> None:
    names = sql.SQL(", ").join(sql.Identifier(one.name) for one in goal.columns)
    text = sql.SQL("copy (select {} from {}) to stdout (format binary)")
    columns = [{"name": one.name, "kind": "text", "pg_type": one.staged} for one in goal.columns]
    job = _core.MoveJob(
        {
            **server_spec(target, conn, "reads again"),  # type: ignore[typeddict-item]
            "tables": [{"columns": columns}],
            "chunks": [
                {"number": 0, "table": 0, "sql": text.format(names, parent).as_string(conn), "path": None, "raw": True}
            ],
            "workers": 1,
            "memory_bytes": options.memory_bytes,
        }
    )
    found: Mapping[str, Any] | None = None
    while (event := job.next(0.2)) is not None:
        if "failed" in event:
            raise MoveError(event["failed"]["message"], where="reading the staged rows again")
        found = event.get("done", found)
    if found is None or int(found["hash"], 16) % MODULUS != int(wanted, 16):
        raise MoveError(
            "the staged rows differ from the rows of the source; the table was not changed",
            next_step="report this error, with the versions of dbdyno and of both servers",
        )


def refuse_emptied(conn: psycopg.Connection[Any], parent: sql.Identifier, rows: int, ledger: Ledger) -> None:
    """Check that the staging tables still hold all staged rows.

    Raises:
        MoveError: Rows are missing; a restart of the server empties unlogged tables.
    """
    here = conn.execute(sql.SQL("select count(*) from {}").format(parent)).fetchone()
    if here is None or here[0] != rows:
        raise MoveError(
            f"{rows:,} rows were staged, but the table contains {here[0] if here else 0:,}: a restart "
            "of the server empties unlogged tables",
            where=parent.as_string(conn),
            next_step=f"run `dbdyno move resume {ledger.folder} --restart`",
        )


def note_transaction(conn: psycopg.Connection[Any], ledger: Ledger) -> None:
    """Write the id of the publishing transaction to the ledger; called before its commit."""
    row = conn.execute("select txid_current()").fetchone()
    ledger.manifest["publishing"] = row[0] if row else None
    ledger.save()


def is_published(conn: psycopg.Connection[Any], ledger: Ledger) -> bool:
    """Return True if the server says that the publishing transaction was committed.

    Raises:
        MoveError: The transaction is still in progress.
    """
    number = ledger.manifest.get("publishing")
    if number is None:
        return False
    row = conn.execute("select txid_status(%s)", [int(number)]).fetchone()
    state = row[0] if row else None
    if state == "in progress":
        raise MoveError(
            "the job is being published",
            where=str(ledger.folder),
            next_step="wait a moment, then run `dbdyno move resume` again",
        )
    return bool(state == "committed")
