"""Rule: transaction ids and multixacts that are not frozen soon enough."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, setting_number
from dbdyno.advise.kinds import Database, Setting, Table
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

LIMIT = 2**31 - 3_000_000
FAILSAFE = 1_600_000_000
LATE = 1_200_000_000
TIMES = 2


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield databases whose oldest id is twice as old as autovacuum permits, or near the failsafe."""
    if all(one.frozen_age is None for one in facts.rows_of(Database)):
        yield InsufficientEvidence(
            "the ages of the databases are not known", "run it on the server itself: dbdyno advise postgresql://..."
        )
        return
    kinds = (
        ("autovacuum_freeze_max_age", 200_000_000, "transaction ids", "frozen_age", "age(datfrozenxid)"),
        ("autovacuum_multixact_freeze_max_age", 400_000_000, "multixacts", "multixact_age", "mxid_age(datminmxid)"),
    )
    for setting, default, what, name, place in kinds:
        most = setting_number(facts, setting, default)
        ages = [(getattr(one, name) or 0, one.is_current, one) for one in facts.rows_of(Database)]
        late = sorted((one for one in ages if one[0] >= min(TIMES * most, LATE)), key=lambda one: one[:2], reverse=True)
        if late:
            others = [Evidence(f"age in {one.name}", age, "count", f"pg_database, {place}") for age, _, one in late[1:]]
            limit = Evidence(setting, most, "count", "pg_settings")
            yield _advice(facts, late[0][2], late[0][0], what, (limit, *others), place)


def _advice(facts: Facts, database: Database, age: int, what: str, more: tuple[Evidence, ...], place: str) -> Advice:
    tables = facts.rows.get(Table, ()) if database.is_current else ()
    oldest = sorted(tables, key=lambda one: -(one.frozen_age or 0))[:3]
    return Advice(
        f"the oldest {what} of database {database.name} are {count(age)} behind, although autovacuum starts at "
        f"{count(float(more[0].value or 0))}: it does not keep up; {count(LIMIT - age)} are left until the server "
        f"refuses to assign new ids",
        (
            Evidence("age", age, "count", f"pg_database, {database.name}, {place}"),
            *more,
            *(
                Evidence(f"age of {one.name}", one.frozen_age, "count", "pg_class, age(relfrozenxid)")
                for one in oldest
                if one.frozen_age is not None
            ),
        ),
        "no time: the server rejects writes when no ids are left, and from an age of 1.6 billion on, vacuum runs "
        "without its cost limits",
        (
            "-- first end whatever holds the xmin horizon: old transactions, prepared transactions, replication slots",
            *(f"vacuum (freeze, verbose) {one.name}" for one in oldest if (one.frozen_age or 0) >= age / 2),
        ),
        level="critical" if age >= FAILSAFE else "warning",
        subject=database.name,
    )


RULE = Rule(
    name="wraparound",
    family="vacuum",
    title="Transaction ids close to wraparound",
    reads=(Setting, Database),
    condition="the age of the oldest transaction id is at least twice autovacuum_freeze_max_age (multixacts:"
    " autovacuum_multixact_freeze_max_age), or at least 1.2 billion; reaching the maximum only starts a freeze",
    expects="availability",
    risk="freezing reads and writes whole tables",
    source="PostgreSQL documentation, Preventing Transaction ID Wraparound Failures (2025); source, varsup.c",
    refuted="the age falls within a day without a change",
    judge=judge,
)
