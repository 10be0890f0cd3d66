"""Rule: indexes that are maintained and cannot be used."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import size
from dbdyno.advise.kinds import Index
from dbdyno.advise.rule import Advice, Evidence, Rule


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield invalid indexes that a failed CREATE or REINDEX CONCURRENTLY left behind."""
    for one in facts.rows_of(Index):
        if one.is_valid or one.is_building:
            continue
        yield Advice(
            f"index {one.name} on {one.table} is invalid: writes maintain it, but no statement uses it",
            (
                Evidence("indisvalid", "false", "text", f"pg_index, {one.name}"),
                Evidence("being built now", "no", "text", "pg_stat_progress_create_index"),
                Evidence("size", one.bytes, "bytes", f"pg_class, {one.name}, relpages"),
            ),
            f"{size(one.bytes)}, and one entry less per write; or faster statements, if it is rebuilt",
            (f"reindex index concurrently {one.name}", f"-- or: drop index concurrently {one.name}"),
            subject=one.name,
        )


RULE = Rule(
    name="invalid_index",
    family="schema",
    title="Invalid indexes",
    reads=(Index,),
    condition="indisvalid is false and nobody is building the index",
    expects="either no more cost of maintaining it, or an index that statements can use",
    risk="a unique index failed because of duplicates, and reindexing fails until they are removed",
    source="PostgreSQL documentation, CREATE INDEX, Building Indexes Concurrently (2025)",
    refuted="a server version that does not report progress is still building it",
    judge=judge,
)
