"""Rule: two indexes that serve the same statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dbdyno.advise.dialect import BOTH, drop_index, index_name, place, source
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import size
from dbdyno.advise.kinds import Index
from dbdyno.advise.rule import Advice, Evidence, Rule


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield indexes whose key equals another index's key, or is the beginning of another one."""
    groups: defaultdict[tuple[str, str], list[Index]] = defaultdict(list)
    for one in facts.rows_of(Index):
        if one.is_valid:
            groups[one.table, one.rest].append(one)
    for group in groups.values():
        # The index to keep comes first: of a constraint, unique, replica identity, most scanned, smallest.
        group.sort(key=_worth)
        for at, one in enumerate(group):
            if one.is_constraint or one.is_unique or one.is_replica_identity:
                continue
            same = next((other for other in group[:at] if other.columns == one.columns), None)
            longer = next((other for other in group if _begins(other, one)), None)
            if same is not None or longer is not None:
                yield _advice(facts, one, same or longer, is_same=same is not None)


def _worth(one: Index) -> tuple[bool, bool, bool, int, int, str]:
    return (
        not one.is_constraint,
        not one.is_unique,
        not one.is_replica_identity,
        -(one.scans or 0),
        one.bytes,
        one.name,
    )


def _begins(longer: Index, one: Index) -> bool:
    length = len(one.columns)
    return one.method == "btree" and len(longer.columns) > length and longer.columns[:length] == one.columns


def _advice(facts: Facts, one: Index, other: Index | None, *, is_same: bool) -> Advice:
    assert other is not None
    relation = "has the same key as" if is_same else "has the beginning of the key of"
    return Advice(
        f"index {one.name} on {one.table} ({', '.join(one.columns)}) {relation} {other.name}"
        + ("" if is_same else f" ({', '.join(other.columns)})"),
        (
            Evidence(f"size of {one.name}", one.bytes, "bytes", place(facts, "size", one.name)),
            Evidence(f"scans of {one.name}", one.scans, "count", place(facts, "scans", one.name)),
            Evidence(f"size of {other.name}", other.bytes, "bytes", place(facts, "size", other.name)),
            Evidence(f"scans of {other.name}", other.scans, "count", place(facts, "scans", other.name)),
        ),
        f"{size(one.bytes)} of disk and cache and an entry less per write"
        + ("" if is_same else "; scans by its columns alone read the longer index instead, which has more pages"),
        (drop_index(facts, one),),
        level="warning" if is_same else "hint",
        subject=index_name(facts, one),
        source=source(facts, "Compound Indexes"),
    )


RULE = Rule(
    name="duplicate_index",
    family="schema",
    title="Indexes that another one covers",
    reads=(Index,),
    condition="another index has the same table, method, predicate and included columns, and the same key columns, "
    "operator classes, order and collation (or begins with them, for a B-tree). The index is not unique and "
    "supports no constraint",
    expects="the cost of its entries in every write",
    risk="a much smaller and more often used prefix may be worth its writes; a hint in an application may name the "
    "index",
    source="PostgreSQL documentation, Multicolumn Indexes (2025)",
    refuted="statements become slower without it on a copy",
    judge=judge,
    engines=BOTH,
)
