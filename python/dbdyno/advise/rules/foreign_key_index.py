"""Rule: foreign keys whose child table is scanned as a whole for every delete in the parent."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count
from dbdyno.advise.kinds import ForeignKey
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST_PAGES = 10_000


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per foreign key, the one whose scans read the most pages first."""
    found = [one for one in facts.rows_of(ForeignKey) if not one.is_indexed and _pages(one) >= LEAST_PAGES]
    for one in sorted(found, key=lambda key: -_pages(key)):
        columns = ", ".join(one.columns)
        yield Advice(
            f"{count(one.parent_deleted)} deletes from {one.parent} each scanned {one.child}"
            f" ({count(one.child_pages)} pages): foreign key {one.name} has no index on ({columns})",
            (
                Evidence("rows deleted", one.parent_deleted, "count", f"pg_stat_user_tables, {one.parent}, n_tup_del"),
                Evidence("pages of the child", one.child_pages, "count", f"pg_class, {one.child}, relpages"),
                Evidence("pages scanned", _pages(one), "count", "deletes × pages"),
            ),
            "each delete looks up a few pages instead of a scan, and holds its locks for less time",
            (f"create index concurrently on {one.child} ({columns})",),
            subject=one.name,
        )


def _pages(foreign_key: ForeignKey) -> int:
    return foreign_key.parent_deleted * foreign_key.child_pages


RULE = Rule(
    name="foreign_key_index",
    family="schema",
    title="Foreign keys without an index",
    reads=(ForeignKey,),
    condition="no valid index of the child table begins with the key's columns, and deletes from the parent × pages of "
    "the child are 10,000 or more",
    expects="page reads: deletes × pages of the child table; nothing if no parent row is ever deleted",
    risk="every write of the child maintains one more index",
    source="PostgreSQL documentation, Constraints (2025)",
    refuted="deletes from the parent take as long with the index",
    judge=judge,
)
