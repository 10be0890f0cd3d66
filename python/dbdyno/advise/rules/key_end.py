"""Rule: sequences, and the columns they fill, that are near their end."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.dialect import BOTH, is_mariadb, place, source
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, share
from dbdyno.advise.kinds import Key
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST, MOST = 0.75, 0.9


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield sequences near the lower of the sequence's maximum and the column's maximum."""
    for one in facts.rows_of(Key):
        end = min(one.sequence_most, one.column_most)
        if one.last is None or one.cycles or one.last < LEAST * end:
            continue
        used = one.last / end
        short = one.column_most <= one.sequence_most
        table, _, column = one.column.rpartition(".")
        fix: tuple[str, ...] = (
            f"-- alter table {table} alter column {column} type bigint rewrites the table under an exclusive lock; with"
            " writers: a new bigint column, filled in portions, and switched",
            f"alter sequence {one.sequence} as bigint",
        )
        if is_mariadb(facts):
            fix = (f"alter table {table} modify column {column} bigint unsigned not null auto_increment  -- copies it",)
        yield Advice(
            f"{one.sequence} is at {count(one.last)}, {share(used)} of what"
            f" {f'column {one.column}' if short else 'the sequence'} can hold; {count(end - one.last)} are left",
            (
                Evidence("last value", one.last, "count", place(facts, "key", one.sequence)),
                Evidence("end of the sequence", one.sequence_most, "count", place(facts, "key", one.sequence)),
                Evidence("end of the column's type", one.column_most, "count", place(facts, "column", one.column)),
            ),
            "no time: when it reaches the end, every insert fails",
            fix if short else fix[-1:],
            level="critical" if used >= MOST else "warning",
            subject=one.sequence,
            source=source(facts, "AUTO_INCREMENT"),
        )


RULE = Rule(
    name="key_end",
    family="schema",
    title="Sequences and integer keys near their end",
    reads=(Key,),
    condition="the sequence has used 75 % of its range or of its column's type, "
    "and does not cycle (critical from 90 %)",
    expects="availability",
    risk="a change of the type rewrites the table, and foreign keys to it need the same change",
    source="PostgreSQL documentation, Numeric Types (2025)",
    refuted="no more rows are inserted into the table",
    judge=judge,
    engines=BOTH,
)
