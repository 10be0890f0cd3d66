"""Who blocked whom, as a forest: the roots hold what all below them wait for.

    forest = Forest(); forest.add(rows of one look); forest.roots()

A look gives pairs of waiter and blocker. A blocker that waits itself is no root: it is followed up to who waits for
nobody. Each waiter hangs under its nearest root by the shortest way; where it waits for two roots it counts for both,
since the end of one would not free it. Sessions that wait for each other in a circle have no root: that is a
deadlock which the server has not ended yet, and the circle stands for one.

Looks are merged by what sessions did, not by which they were: forty sessions in the same queue are one line.
A session-second is one session blocked for one second, from looks at most one per second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dbdyno.snapshot.model import Heading, Lack, Part, Row, Table, columns, lacking, page_only, table
from dbdyno.snapshot.model import section as section_of

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

DEEPEST = 12
"""Levels of a tree that are shown."""
LINES_MOST = 8
"""Lines below one root."""
PIDS_MOST = 3
APART_US = 200_000
"""Rows further apart are of two looks: one look's rows of older stores are some microseconds apart."""
CIRCLE = "a circle of waits"
WATCH = "dbdyno snap watch --target DSN --every 60s"

Key = tuple[str, ...]


@dataclass
class Node:
    """What one kind of session did: how many looks saw how many of them, which, and who waited for them."""

    facts: Row = field(default_factory=dict)
    seen: int = 0
    blocked: int = 0
    pids: dict[int, int] = field(default_factory=dict)
    longest_us: int | None = None
    below: dict[Key, Node] = field(default_factory=dict)


class Forest:
    """Looks, merged. `add` takes the rows of one look; each has `session`, `blocker` and what is known of both."""

    def __init__(self) -> None:
        self._roots: dict[Key, Node] = {}
        self.looks = 0

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One look."""
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
        """The roots, by how much they blocked."""
        return sorted(self._roots.values(), key=lambda one: (-one.blocked, sorted(one.pids)))

    def _grow(
        self,
        root: int,
        waits: Mapping[int, Mapping[int, Mapping[str, Any]]],
        blocks: Mapping[int, Sequence[int]],
        *,
        circle: bool = False,
    ) -> set[int]:
        """Hangs all that wait for a root below it; returns who they are."""
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
    """Rows, ordered by time, cut into looks."""
    number, last = 0, None

    def look(row: Mapping[str, Any]) -> int:
        nonlocal number, last
        if last is not None and row["at_us"] - last > APART_US:
            number += 1
        last = row["at_us"]
        return number

    for _, same in groupby(rows, key=look):
        yield list(same)


def lines(node: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """A root and what hangs below it, depth first, the most blocked first."""
    yield depth, node
    if depth < DEEPEST:
        for one in sorted(node.below.values(), key=lambda one: -one.seen):
            yield from lines(one, depth + 1)


def pids(node: Node) -> str:
    """`4711`, or `4711, 4712 and 38 more`; nobody's session is a prepared transaction."""
    first = sorted(node.pids, key=lambda pid: (-node.pids[pid], pid))
    shown = ", ".join("prepared" if pid == 0 else str(pid) for pid in first[:PIDS_MOST])
    more = len(first) - PIDS_MOST
    return f"{shown} and {more} more" if more > 0 else shown


def forest(interval: Interval) -> Forest | None:
    """The forest of an interval; None where nobody looked."""
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
    """The pairs with the name of what the lock is on."""
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
    """The roots, and the trees below the first of them."""
    made = forest(interval)
    title = "Who blocked whom"
    if made is None:
        why = "the sessions were not sampled in this interval"
        return section_of("blocking", title, not_measured=[lacking("who blocked whom", why, WATCH)])
    roots = made.roots()
    tables = tables_of(interval, roots, top)
    notes = [] if roots else ["no look found a session that waited for another"]
    lacks = [_no_last_statement(interval, roots)]
    return section_of("blocking", title, tables, about=ABOUT if roots else "", notes=notes, not_measured=lacks)


def _no_last_statement(interval: Interval, roots: Sequence[Node]) -> Lack | None:
    """MariaDB tells what a session did last only where it is asked to."""
    if interval.after.facts.get("statements_current") != 0:
        return None
    if all(one.facts.get("statement") or one.facts.get("state") == "active" for one in roots):
        return None
    step = "update performance_schema.setup_consumers set enabled = 'YES' where name = 'events_statements_current'"
    why = "the consumer events_statements_current is off"
    return lacking("the last statement of a session idle in a transaction", why, step)


ABOUT = (
    "A root blocks and waits for nobody. blocked: session-seconds, one session kept waiting for one second; a session"
    " that waits for two roots counts for both. A statement of a session idle in a transaction is its last one."
)
_ROOTS: list[Heading] = [
    *columns("pid:text blocked:ns state:text transaction:ns:transaction_open user:text application:text text:text"),
    *(page_only(one) for one in columns("each:number:waiters_each client:text statement:code")),
]
_TREE: list[Heading] = [
    *columns("tree:text:session user:text seen:ns:session_seconds lock:text object:text text:text"),
    *(page_only(one) for one in columns("statement:code")),
]


def tables_of(interval: Interval, roots: Sequence[Node], top: int) -> list[Table]:
    """Two tables: the roots, ranked; and each with who waited below it."""
    from dbdyno.snapshot.sessions.history import texts

    known = texts(interval)
    looked = sum(int(one.manifest["cost"].get("looks") or 0) for one in interval.chain[1:])
    second_ns = min(max(interval.seconds / looked, 1.0), 60.0) * 1e9 if looked else 1e9
    ranked = [_root(node, known, second_ns) for node in roots]
    trees: list[Row] = []
    for node in roots[:top]:
        shown = list(lines(node))
        trees += [_line(depth, one, known, second_ns) for depth, one in shown[: LINES_MOST + 1]]
        more = len(shown) - LINES_MOST - 1
        if more > 0:
            trees.append({"tree": f"{more} lines more" if more > 1 else "1 line more", "depth": 1})
    return [table("Root blockers", _ROOTS, ranked, top=top), table("Blocking trees", _TREE, trees)]


def _root(node: Node, known: Mapping[str, str], second_ns: float) -> Row:
    statement = node.facts.get("statement")
    return {
        "pid": pids(node),
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
        "tree": pids(node),
        "depth": depth,
        "user": node.facts.get("usename"),
        "seen": node.seen * second_ns,
        "lock": lock or node.facts.get("state"),
        "object": node.facts.get("object"),
        "statement": statement,
        "text": known.get(str(statement), statement),
    }
