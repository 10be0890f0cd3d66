"""From the staging tables into a table of MariaDB, in one transaction: until its commit the table has not changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import rows
from dbdyno.errors import MoveError
from dbdyno.move.into import Into, Rounded
from dbdyno.move.mariadb.checked import refuse_other
from dbdyno.move.mariadb.rejects import Halves, Run, whole
from dbdyno.move.mariadb.sqltext import quoted
from dbdyno.move.mariadb.target import Field, Goal
from dbdyno.move.merging import Merged
from dbdyno.move.plural import counted
from dbdyno.move.rejects import Rejects

NOT_NULL = 1048
TRIGGERS_SQL = """
select trigger_name from information_schema.triggers
where event_object_schema = %s and event_object_table = %s and action_timing = 'BEFORE' order by trigger_name
"""


def publish(
    conn: Any,
    goal: Goal,
    job: str,
    numbers: Sequence[int],
    into: Into,
    staged: int,
    *,
    rejects: Rejects | None = None,
    compare: bool = False,
) -> tuple[Merged, list[Rounded]]:
    """All in one transaction. Raises `MoveError` and the driver's errors; nothing of the table has changed then.
    `staged`: rows in the staging tables; `compare`: what stands is compared with what came before the commit."""
    run: Run = whole(conn) if rejects is None else Halves(conn, rejects)
    stages = [goal.stage(job, number) for number in numbers]
    conn.begin()
    try:
        if into.mode in ("update", "merge"):
            merged = _merge(conn, goal, stages, into, staged, run, rejects)
        else:
            merged = _insert(conn, goal, stages, into, staged, run, rejects)
        differs = _rounded(conn, goal, stages)
        if compare:
            refuse_other(conn, goal, stages, into, of_new=merged.new, adds=into.mode == "merge")
        rows(conn, f"insert into {goal.mark(job)} values (1)")
        if rejects is not None and rejects.rows:
            # Before the commit: whoever dies in it may have rejected rows and must not have lost them.
            rejects.write()
        conn.commit()
    except BaseException as error:
        conn.rollback()
        if isinstance(error, driver().err.IntegrityError) and error.args[0] == NOT_NULL:
            _refuse_nulls_of_a_trigger(conn, goal, stages, str(error.args[1]))
        raise
    return merged, differs


def _refuse_nulls_of_a_trigger(conn: Any, goal: Goal, stages: Sequence[str], said: str) -> None:
    """Raises `MoveError` where the server misses a value that every row that came has, and the table has triggers."""
    named = [one for one in goal.given() if f"'{one.name}'" in said]
    triggers = [str(name) for (name,) in rows(conn, TRIGGERS_SQL, [goal.schema, goal.name])]
    for one in named if triggers else []:
        if any(rows(conn, f"select 1 from {stage} s where {one.value()} is null limit 1") for stage in stages):
            continue
        raise MoveError(
            f"{said}, and no row that came has NULL there: a trigger made it: {', '.join(triggers)}",
            where=goal.table,
            next_step="nothing was changed; load without the trigger. It may be the server: 11.4.5 says so of each "
            "INSERT ... SELECT that names its columns, into a table with a BEFORE trigger; 10.11.5 does not",
        )


def _insert(
    conn: Any,
    goal: Goal,
    stages: Sequence[str],
    into: Into,
    staged: int,
    run: Run,
    rejects: Rejects | None,
) -> Merged:
    before = _rejected(rejects)
    if into.mode == "replace":
        rows(conn, f"delete from {goal.table}")
    given = goal.given()
    names = ", ".join(quoted(one.name) for one in given)
    values = ", ".join(one.value() for one in given)
    added = 0
    for stage in stages:
        text = f"insert into {goal.table} ({names}) select {values} from {stage} s where "
        added += run(stage, text.__add__)
    if added + _rejected(rejects) - before != staged:
        raise MoveError(f"{staged:,} rows were staged and {added:,} were added; nothing was changed", where=into.table)
    return Merged(new=added)


def _rejected(rejects: Rejects | None) -> int:
    return 0 if rejects is None else len(rejects.rows)


def _merge(
    conn: Any,
    goal: Goal,
    stages: Sequence[str],
    into: Into,
    staged: int,
    run: Run,
    rejects: Rejects | None,
) -> Merged:
    """Only rows that differ are written. One staging table after the other: a key that is twice in all is refused
    first."""
    given = goal.given()
    keys = [one for one in given if one.name in into.key]
    others = [one for one in given if one.name not in into.key]
    no_nulls = " and ".join(f"s.{quoted(one.name)} is not null" for one in keys)
    _refuse_doubles(conn, stages, keys, no_nulls)
    on = " and ".join(f"t.{quoted(one.name)} = {one.key()}" for one in keys)
    same = " and ".join(f"{one.plain(f't.{quoted(one.name)}')} <=> {one.plain(one.value())}" for one in others)
    sets = ", ".join(f"t.{quoted(one.name)} = {one.value()}" for one in others)
    first = quoted(keys[0].name)
    names, values = ", ".join(quoted(one.name) for one in given), ", ".join(one.value() for one in given)
    nulls = changed = new = added = 0
    since = _rejected(rejects)
    for stage in stages:
        nulls += int(rows(conn, f"select count(*) from {stage} s where not ({no_nulls})")[0][0])
        joined = f"{stage} s left join {goal.table} t on {on} where {no_nulls} and t.{first} is null"
        new += int(rows(conn, f"select count(*) from {joined}")[0][0])
        if others:
            text = f"update {goal.table} t join {stage} s on {on} set {sets} where {no_nulls} and not ({same}) and "
            changed += run(stage, text.__add__)
        if into.mode == "merge":
            before = _rejected(rejects)
            text = f"insert into {goal.table} ({names}) select {values} from {joined} and "
            added += run(stage, text.__add__)
            new -= _rejected(rejects) - before
    gone = _rejected(rejects) - since
    if into.mode == "merge" and added != new:
        raise MoveError(f"{new:,} rows are new and {added:,} were added; nothing was changed", where=into.table)
    return Merged(added, changed, staged - gone - nulls - new - changed, 0 if into.mode == "merge" else new, nulls)


def _refuse_doubles(conn: Any, stages: Sequence[str], keys: Sequence[Field], no_nulls: str) -> None:
    listed = ", ".join(f"{one.key()} as {quoted(one.name)}" for one in keys)
    union = " union all ".join(f"select {listed} from {stage} s where {no_nulls}" for stage in stages)
    grouped = ", ".join(quoted(one.name) for one in keys)
    found = rows(conn, f"select count(*) from (select 1 from ({union}) u group by {grouped} having count(*) > 1) d")
    if found[0][0]:
        raise MoveError(
            f"{counted(found[0][0], 'key')} came more than once: which row counts cannot be told",
            where="--key",
            next_step="nothing was changed; name a key that is unique",
        )


def _rounded(conn: Any, goal: Goal, stages: Sequence[str]) -> list[Rounded]:
    """Values that the table holds otherwise than they came."""
    found = []
    for one in goal.given():
        stands = one.narrowed()
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
            found.append(Rounded(one.name, one.declared, count, str(example[0]), str(example[1])))
    return found
