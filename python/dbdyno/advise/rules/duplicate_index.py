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
    """Yield indexes whose key equals another index's key or is the beginning of it."""
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


def _worth(index: Index) -> tuple[bool, bool, bool, int, int, str]:
    return (
        not index.is_constraint,
        not index.is_unique,
        not index.is_replica_identity,
        -(index.scans or 0),
        index.bytes,
        index.name,
    )


def _begins(longer: Index, index: Index) -> bool:
    length = len(index.columns)
    return index.method == "btree" and len(longer.columns) > length and longer.columns[:length] == index.columns


def _advice(facts: Facts, index: Index, other: Index | None, *, is_same: bool) -> Advice:
    assert other is not None
    relation = "has the same key as" if is_same else "has a prefix of the key of"
    return Advice(
        f"index {index.name} on {index.table} ({', '.join(index.columns)}) {relation} {other.name}"
        + ("" if is_same else f" ({', '.join(other.columns)})"),
        (
            Evidence(f"size of {index.name}", index.bytes, "bytes", place(facts, "size", index.name)),
            Evidence(f"scans of {index.name}", index.scans, "count", place(facts, "scans", index.name)),
            Evidence(f"size of {other.name}", other.bytes, "bytes", place(facts, "size", other.name)),
            Evidence(f"scans of {other.name}", other.scans, "count", place(facts, "scans", other.name)),
        ),
        f"{size(index.bytes)} of disk and cache, and one index entry less per write"
        + ("" if is_same else "; scans that use only its columns then read the other index, which has more pages"),
        (drop_index(facts, index),),
        level="warning" if is_same else "hint",
        subject=index_name(facts, index),
        source=source(facts, "Compound Indexes"),
    )


RULE = Rule(
    name="duplicate_index",
    family="schema",
    title="Indexes that another index makes redundant",
    reads=(Index,),
    condition="another index has the same table, method, predicate and included columns, and the same key columns, "
    "operator classes, order and collation (a B-tree may only begin with them). The index is not unique and "
    "supports no constraint",
    expects="the cost of maintaining the index in every write",
    risk="a prefix that is much smaller and more often used may "
    "be worth its writes; a hint in an application may name the "
    "index",
    source="PostgreSQL documentation, Multicolumn Indexes (2025)",
    refuted="statements become slower without it on a copy",
    judge=judge,
    engines=BOTH,
)
