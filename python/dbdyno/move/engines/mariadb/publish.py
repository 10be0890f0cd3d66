"""Publication of staged rows in MariaDB tables, in one transaction: no table changes before its commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import rows
from dbdyno.move.engines.mariadb.checks import refuse_differing_rows
from dbdyno.move.engines.mariadb.rejects import BisectingRunner, StatementRunner, plain_runner
from dbdyno.move.engines.mariadb.sql import quote_name
from dbdyno.move.engines.mariadb.target import Field, TargetTable
from dbdyno.move.engines.postgres.merging import MergeCounts
from dbdyno.move.loading.publish_order import sort_by_references
from dbdyno.move.loading.rejects import Rejects
from dbdyno.move.loading.request import LoadRequest, RoundedColumn
from dbdyno.move.nouns import with_noun

NOT_NULL = 1048
TRIGGERS_SQL = """
select trigger_name from information_schema.triggers
where event_object_schema = %s and event_object_table = %s and action_timing = 'BEFORE' order by trigger_name
"""

REFERS_SQL = """
select distinct table_schema, table_name, referenced_table_schema, referenced_table_name
from information_schema.key_column_usage
where referenced_table_name is not null and (table_schema, table_name) in %s
"""


@dataclass(frozen=True)
class StagedTable:
    """One target table, and the staging tables that hold its rows."""

    goal: TargetTable
    numbers: Sequence[int]
    into: LoadRequest
    staged: int
    """Number of rows in the staging tables."""

    def stages(self, job: str) -> list[str]:
        """Return the names of the staging tables."""
        return [self.goal.stage_name(job, number) for number in self.numbers]


@dataclass(frozen=True)
class PublishedTable:
    """Result of publishing one table."""

    merged: MergeCounts
    differs: Sequence[RoundedColumn]
    rejected: int


def publish(
    conn: Any, job: str, parts: Sequence[StagedTable], *, rejects: Rejects | None = None, compare: bool = False
) -> list[PublishedTable]:
    """Publish all tables in one transaction, in foreign key order (referenced tables first).

    Args:
        conn: The session that publishes.
        job: The job's id.
        parts: The tables and their staging tables.
        rejects: Where rows that a table refuses are written; if None, such a row makes the load fail.
        compare: Compare each table with its staged rows before the commit.

    Returns:
        One result per part, in the order of `parts`.

    Raises:
        MoveError: A check failed; nothing has changed. Errors of the driver are passed on after the rollback.
    """
    found: dict[int, PublishedTable] = {}
    part = parts[0]
    conn.begin()
    try:
        order = _publish_order(conn, parts)
        for place in reversed(order):
            if parts[place].into.mode == "replace":
                rows(conn, f"delete from {parts[place].goal.table}")
        for place in order:
            part = parts[place]
            found[place] = _publish(conn, job, part, rejects, compare=compare)
        rows(conn, f"insert into {parts[0].goal.mark(job)} values (1)")
        if rejects is not None and rejects.rows:
            # Before the commit: if the process dies during it, rows may be rejected already, and must not be lost.
            rejects.write()
        conn.commit()
    except BaseException as error:
        conn.rollback()
        if isinstance(error, driver().err.IntegrityError) and error.args[0] == NOT_NULL:
            _refuse_nulls_of_a_trigger(conn, part.goal, part.stages(job), str(error.args[1]))
        raise
    return [found[place] for place in range(len(parts))]


def _publish_order(conn: Any, parts: Sequence[StagedTable]) -> list[int]:
    """Return the indexes of the parts in publishing order: referenced tables before those that reference them."""
    refers: dict[int, set[int]] = {place: set() for place in range(len(parts))}
    if len(parts) > 1:
        places = {(one.goal.schema, one.goal.name): place for place, one in enumerate(parts)}
        for schema, name, of_schema, of_name in rows(conn, REFERS_SQL, [tuple(places)]):
            one, other = places.get((schema, name)), places.get((of_schema, of_name))
            if one is not None and other is not None and one != other:
                refers[one].add(other)
    return sort_by_references(refers)


def _publish(conn: Any, job: str, part: StagedTable, rejects: Rejects | None, *, compare: bool) -> PublishedTable:
    """Publish one table inside the open transaction."""
    run: StatementRunner = plain_runner(conn) if rejects is None else BisectingRunner(conn, rejects)
    goal, into, before = part.goal, part.into, _count_rejects(rejects)
    stages = part.stages(job)
    write = _merge if into.mode in ("update", "merge") else _insert
    merged = write(conn, part, stages, run, rejects)
    differs = _rounded_columns(conn, goal, stages)
    if compare:
        refuse_differing_rows(conn, goal, stages, into, of_new=merged.new, adds=into.mode == "merge")
    return PublishedTable(merged, differs, _count_rejects(rejects) - before)


def _refuse_nulls_of_a_trigger(conn: Any, goal: TargetTable, stages: Sequence[str], said: str) -> None:
    """Raise `MoveError` if a table with triggers reports NULL in a column in which no staged row has NULL."""
    named = [one for one in goal.written_fields() if f"'{one.name}'" in said]
    triggers = [str(name) for (name,) in rows(conn, TRIGGERS_SQL, [goal.schema, goal.name])]
    for one in named if triggers else []:
        if any(rows(conn, f"select 1 from {stage} s where {one.value()} is null limit 1") for stage in stages):
            continue
        raise MoveError(
            f"{said}, but none of the loaded rows has NULL there: a trigger produced it: {', '.join(triggers)}",
            where=goal.table,
            next_step="load without the trigger; nothing was changed. The server may be at fault: MariaDB 11.4.5 "
            "reports this for each INSERT ... SELECT with named columns into a table with a BEFORE trigger; "
            "10.11.5 does not",
        )


def _insert(
    conn: Any, part: StagedTable, stages: Sequence[str], run: StatementRunner, rejects: Rejects | None
) -> MergeCounts:
    before, goal = _count_rejects(rejects), part.goal
    given = goal.written_fields()
    names = ", ".join(quote_name(one.name) for one in given)
    values = ", ".join(one.value() for one in given)
    added = 0
    for stage in stages:
        text = f"insert into {goal.table} ({names}) select {values} from {stage} s where "
        added += run(stage, text.__add__)
    if added + _count_rejects(rejects) - before != part.staged:
        raise MoveError(
            f"the server added {added:,} rows instead of {part.staged:,}; the table was left unchanged",
            where=part.into.table,
            next_step="check the table's triggers",
        )
    return MergeCounts(new=added)


def _count_rejects(rejects: Rejects | None) -> int:
    return 0 if rejects is None else len(rejects.rows)


def _merge(
    conn: Any, part: StagedTable, stages: Sequence[str], run: StatementRunner, rejects: Rejects | None
) -> MergeCounts:
    """Update rows that differ and, in mode `merge`, add new ones; staging tables are processed one after another.

    A key that occurs more than once across all staging tables is refused first.
    """
    goal, load_request = part.goal, part.into
    given = goal.written_fields()
    keys = [one for one in given if one.name in load_request.key]
    others = [one for one in given if one.name not in load_request.key]
    no_nulls = " and ".join(f"s.{quote_name(one.name)} is not null" for one in keys)
    _refuse_doubles(conn, stages, keys, no_nulls)
    on = " and ".join(f"t.{quote_name(one.name)} = {one.key()}" for one in keys)
    same = " and ".join(
        f"{one.bytewise(f't.{quote_name(one.name)}')} <=> {one.bytewise(one.value())}" for one in others
    )
    sets = ", ".join(f"t.{quote_name(one.name)} = {one.value()}" for one in others)
    first = quote_name(keys[0].name)
    names, values = ", ".join(quote_name(one.name) for one in given), ", ".join(one.value() for one in given)
    nulls = changed = new = added = 0
    since = _count_rejects(rejects)
    for stage in stages:
        nulls += int(rows(conn, f"select count(*) from {stage} s where not ({no_nulls})")[0][0])
        joined = f"{stage} s left join {goal.table} t on {on} where {no_nulls} and t.{first} is null"
        new += int(rows(conn, f"select count(*) from {joined}")[0][0])
        if others:
            text = f"update {goal.table} t join {stage} s on {on} set {sets} where {no_nulls} and not ({same}) and "
            changed += run(stage, text.__add__)
        if load_request.mode == "merge":
            before = _count_rejects(rejects)
            text = f"insert into {goal.table} ({names}) select {values} from {joined} and "
            added += run(stage, text.__add__)
            new -= _count_rejects(rejects) - before
    gone = _count_rejects(rejects) - since
    if load_request.mode == "merge" and added != new:
        raise MoveError(
            f"the server added {added:,} rows instead of {new:,}; the table was left unchanged",
            where=load_request.table,
            next_step="check the table's triggers",
        )
    return MergeCounts(
        added, changed, part.staged - gone - nulls - new - changed, 0 if load_request.mode == "merge" else new, nulls
    )


def _refuse_doubles(conn: Any, stages: Sequence[str], keys: Sequence[Field], no_nulls: str) -> None:
    listed = ", ".join(f"{one.key()} as {quote_name(one.name)}" for one in keys)
    union = " union all ".join(f"select {listed} from {stage} s where {no_nulls}" for stage in stages)
    grouped = ", ".join(quote_name(one.name) for one in keys)
    found = rows(conn, f"select count(*) from (select 1 from ({union}) u group by {grouped} having count(*) > 1) d")
    if found[0][0]:
        raise MoveError(
            f"the loaded rows contain {with_noun(found[0][0], 'key')} more than once, so it is not clear which row"
            " to use",
            where="--key",
            next_step="name a key that is unique in the loaded rows; nothing was changed",
        )


def _rounded_columns(conn: Any, goal: TargetTable, stages: Sequence[str]) -> list[RoundedColumn]:
    """Return, per column, how many values the table stores differently from the staged ones, with an example."""
    found = []
    for one in goal.written_fields():
        stands = one.stored_value()
        if stands is None:
            continue
        count, example = 0, ("", "")
        for stage in stages:
            where = f"{stage} s where not ({one.value()} <=> {stands})"
            here = int(rows(conn, f"select count(*) from {where}")[0][0])
            if here and not count:
                example = rows(conn, f"select left({one.value()}, 60), left({stands}, 60) from {where} limit 1")[0]
            count += here
        if count:
            found.append(RoundedColumn(one.name, one.declared, count, str(example[0]), str(example[1])))
    return found
