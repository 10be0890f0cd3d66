"""Who blocked whom, as a forest: all sessions below a root wait for a lock that it holds.

    forest = Forest(); forest.add(rows of one look); forest.roots()

A look gives pairs of waiter and blocker. A blocker that waits itself is not a root: it is followed up to a session that
waits for nobody. Each waiter is placed below its nearest root by the shortest path; if it waits for two roots it counts
for both, since the end of one would not free it. Sessions that wait for each other in a cycle have no root: that is a
deadlock which the server has not resolved yet, and the cycle counts as a root.

Looks are merged by what sessions did, not by which sessions they were: forty sessions in the same queue are one line. A
session-second is one session blocked for one second, from at most one look per second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dbdyno.base.sections import (
    Heading,
    MissingMeasurement,
    Part,
    Row,
    Table,
    columns,
    missing_measurement,
    page_only_column,
    table,
)
from dbdyno.base.sections import section as section_of

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

DEEPEST = 12
"""Number of levels of a tree that are shown."""
LINES_MOST = 8
"""Number of lines shown below one root."""
PIDS_MOST = 3
APART_US = 200_000
"""Minimum distance between two looks in microseconds; in older stores, rows of one look are a few µs apart."""
CIRCLE = "a circle of waits"
WATCH = "dbdyno snap watch --target DSN --every 60s"

Key = tuple[str, ...]


@dataclass
class Node:
    """Sessions of one kind in the tree, and what they did.

    Attributes:
        facts: User, statement, state and others that sessions of this kind share.
        seen: How often a session of this kind was seen.
        blocked: How often a session was seen waiting for it, directly or indirectly; counted only for a root.
        pids: Number of looks by pid.
        longest_us: The longest transaction (root) or statement (waiter) in microseconds, if known.
        below: The kinds of session that wait for it.
    """

    facts: Row = field(default_factory=dict)
    seen: int = 0
    blocked: int = 0
    pids: dict[int, int] = field(default_factory=dict)
    longest_us: int | None = None
    below: dict[Key, Node] = field(default_factory=dict)


class Forest:
    """A forest merged from many looks; each row has `session`, `blocker` and what is known about both."""

    def __init__(self) -> None:
        self._roots: dict[Key, Node] = {}
        self.looks = 0

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add the rows of one look."""
        waits: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
        blocks: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            if row["blocker"] not in waits[row["session"]]:
                waits[row["session"]][row["blocker"]] = row
                blocks[row["blocker"]].append(row["session"])
        self.looks += 1
        reached: set[int] = set()
        for root in [one for one in blocks if one not in waits]:
            reached |= self._grow(root, waits, blocks)
        for one in sorted(waits):
            if one not in reached:
                reached |= self._grow(one, waits, blocks, circle=True) | {one}

    def roots(self) -> list[Node]:
        """Return the roots, sorted by how much they blocked, the largest first."""
        return sorted(self._roots.values(), key=lambda one: (-one.blocked, sorted(one.pids)))

    def _grow(
        self,
        root: int,
        waits: Mapping[int, Mapping[int, Mapping[str, Any]]],
        blocks: Mapping[int, Sequence[int]],
        *,
        circle: bool = False,
    ) -> set[int]:
        """Place all sessions that wait for a root below it, and return them."""
        first = waits[blocks[root][0]][root] if blocks.get(root) else None
        if first is None:
            return set()
        facts = _blocker(first) | ({"state": CIRCLE} if circle else {})
        top = self._roots.setdefault(_key(facts), Node(facts))
        _count(top, root, first.get("blocker_transaction_us"))
        places = {root: top}
        layer, below = [root], 0
        while layer:
            following = []
            for blocker in layer:
                for waiter in sorted(blocks.get(blocker, ())):
                    if waiter in places:
                        continue
                    row = waits[waiter][blocker]
                    made = _waiter(row)
                    node = places[blocker].below.setdefault(_key(made), Node(made))
                    _count(node, waiter, row.get("statement_us"))
                    places[waiter] = node
                    following.append(waiter)
            below += len(following)
            layer = following
        top.blocked += below
        return set(places) - {root}


def _blocker(row: Mapping[str, Any]) -> Row:
    names = ("usename", "application", "client", "statement", "state")
    return {name: row.get(f"blocker_{name}") for name in names}


def _waiter(row: Mapping[str, Any]) -> Row:
    names = ("usename", "statement", "application", "client", "locktype", "mode", "object")
    return {name: row.get(name) for name in names}


def _key(facts: Row) -> Key:
    names = ("usename", "application", "statement", "state", "locktype", "mode", "object")
    return tuple(str(facts.get(name)) for name in names)


def _count(node: Node, pid: int, us: Any) -> None:
    node.seen += 1
    node.pids[pid] = node.pids.get(pid, 0) + 1
    if isinstance(us, int):
        node.longest_us = max(us, node.longest_us or 0)


def looks(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the rows of each look as a group; `rows` are ordered by time."""
    number, last = 0, None

    def look(row: Mapping[str, Any]) -> int:
        nonlocal number, last
        if last is not None and row["at_us"] - last > APART_US:
            number += 1
        last = row["at_us"]
        return number

    for _, same in groupby(rows, key=look):
        yield list(same)


def tree_lines(node: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """Yield a root and the nodes below it with their depth, depth first, most frequently seen first."""
    yield depth, node
    if depth < DEEPEST:
        for one in sorted(node.below.values(), key=lambda one: -one.seen):
            yield from tree_lines(one, depth + 1)


def pids_text(node: Node) -> str:
    """Return a short list of process ids: `4711`, or `4711, 4712 and 38 more`; pid 0 is a prepared transaction."""
    first = sorted(node.pids, key=lambda pid: (-node.pids[pid], pid))
    shown = ", ".join("prepared" if pid == 0 else str(pid) for pid in first[:PIDS_MOST])
    more = len(first) - PIDS_MOST
    return f"{shown} and {more} more" if more > 0 else shown


def forest(interval: Interval) -> Forest | None:
    """Return the forest of an interval, or None if the sessions were not sampled."""
    from dbdyno.snapshot.engines.registry import blocked_columns

    source, count = interval.samples("blocked", blocked_columns(interval.before.engine))
    if not count:
        return None
    found = Forest()
    named = _named(interval, source)
    rows = interval.query(f"select * from {named} where {interval.inside} order by at_us, session, blocker")
    for look in looks(rows):
        found.add(look)
    return found


def _named(interval: Interval, source: str) -> str:
    """Return the forest of blocked sessions in an interval, or None if the sessions were not sampled."""
    if interval.before.engine != "postgres":
        return f"(select *, relation as object from {source})"
    if not interval.has("pg_stat_user_tables"):
        return f"(select *, relation::varchar as object from {source})"
    names = interval.ends("pg_stat_user_tables")[1]
    return (
        "(select b.*, coalesce(n.schemaname || '.' || n.relname, b.relation::varchar) as object"
        f" from {source} b left join {names} n on n.datid = b.datid and n.relid = b.relation)"
    )


def section(interval: Interval, top: int) -> Part:
    """Return the section with the roots, and the trees below the first few of them."""
    made = forest(interval)
    title = "Who blocked whom"
    if made is None:
        why = "the sessions were not sampled in this interval"
        return section_of("blocking", title, not_measured=[missing_measurement("who blocked whom", why, WATCH)])
    roots = made.roots()
    tables = tables_of(interval, roots, top)
    notes = [] if roots else ["no sample has a session that waits for another"]
    lacks = [_no_last_statement(interval, roots)]
    return section_of("blocking", title, tables, about=ABOUT if roots else "", notes=notes, not_measured=lacks)


def _no_last_statement(interval: Interval, roots: Sequence[Node]) -> MissingMeasurement | None:
    """Return a note if MariaDB is not configured to report a session's last statement and one is missing; else None."""
    if interval.after.facts.get("statements_current") != 0:
        return None
    if all(one.facts.get("statement") or one.facts.get("state") == "active" for one in roots):
        return None
    step = "update performance_schema.setup_consumers set enabled = 'YES' where name = 'events_statements_current'"
    why = "the consumer events_statements_current is off"
    return missing_measurement("the last statement of a session idle in a transaction", why, step)


ABOUT = (
    "A root blocks others and waits for nobody. blocked is the total time that other sessions waited for it; a "
    "session that waits for two roots counts for both. The statement of a session that is idle in a transaction is "
    "its last one."
)
_ROOTS: list[Heading] = [
    *columns("pid:text blocked:ns state:text transaction:ns:transaction_open user:text application:text text:text"),
    *(page_only_column(one) for one in columns("each:number:waiters_each client:text statement:code")),
]
_TREE: list[Heading] = [
    *columns("tree:text:session user:text seen:ns:session_seconds lock:text object:text text:text"),
    *(page_only_column(one) for one in columns("statement:code")),
]


def tables_of(interval: Interval, roots: Sequence[Node], top: int) -> list[Table]:
    """Return two tables: the roots by rank, and each root with the sessions that waited below it."""
    from dbdyno.snapshot.reading.statement_texts import statement_texts

    known = statement_texts(interval)
    looked = interval.looks
    second_ns = min(max(interval.seconds / looked, 1.0), 60.0) * 1e9 if looked else 1e9
    ranked = [_root(node, known, second_ns) for node in roots]
    trees: list[Row] = []
    for node in roots[:top]:
        shown = list(tree_lines(node))
        trees += [_line(depth, one, known, second_ns) for depth, one in shown[: LINES_MOST + 1]]
        more = len(shown) - LINES_MOST - 1
        if more > 0:
            trees.append({"tree": f"{more} lines more" if more > 1 else "1 line more", "depth": 1})
    return [table("Root blockers", _ROOTS, ranked, top=top), table("Blocking trees", _TREE, trees)]


def _root(node: Node, known: Mapping[str, str], second_ns: float) -> Row:
    statement = node.facts.get("statement")
    return {
        "pid": pids_text(node),
        "blocked": node.blocked * second_ns,
        "each": node.blocked / node.seen,
        "state": node.facts.get("state"),
        "transaction": None if node.longest_us is None else node.longest_us * 1000,
        "user": node.facts.get("usename"),
        "application": node.facts.get("application"),
        "client": node.facts.get("client"),
        "statement": statement,
        "text": known.get(str(statement), statement),
    }


def _line(depth: int, node: Node, known: Mapping[str, str], second_ns: float) -> Row:
    statement = node.facts.get("statement")
    lock = " ".join(str(node.facts[name]) for name in ("locktype", "mode") if node.facts.get(name))
    return {
        "tree": pids_text(node),
        "depth": depth,
        "user": node.facts.get("usename"),
        "seen": node.seen * second_ns,
        "lock": lock or node.facts.get("state"),
        "object": node.facts.get("object"),
        "statement": statement,
        "text": known.get(str(statement), statement),
    }
