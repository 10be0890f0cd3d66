"""Recursion tree of one execution: a call, the calls inside it, and the waits of each.

Parent and child are determined by containment (a call's parent is the first later call one level up whose time span
contains it). Inclusive time includes the children, exclusive time does not; the exclusive times of a tree add up to the
inclusive time of its root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, cast

from dbdyno.base.errors import TraceError
from dbdyno.trace.page import page
from dbdyno.trace.source import Traces

SHARE = 0.005
"""Branches below this share of the whole are folded."""


class Sums(TypedDict):
    """Figures of calls; those with the prefix `self_` are exclusive, the others include the calls inside."""

    elapsed_ns: int
    cpu_ns: int
    self_elapsed_ns: int
    self_cpu_ns: int
    self_wait_ns: int
    rows: int
    physical_reads: int
    consistent_reads: int
    current_reads: int


_SUMS = tuple(Sums.__annotations__)


class Call(Sums):
    """A call of the tree."""

    call: int
    parent: int
    kind: str
    statement: str
    depth: int
    started_ns: int
    session: int
    file: int
    line: int


WaitFigures = TypedDict("WaitFigures", {"event": str, "class": str, "count": int, "total_ns": int})
"""Number and time of the waits for one event directly inside calls."""


class Node(Sums):
    """A line of the tree: the calls of a statement, or a number (`folded`) of small branches merged into one line."""

    level: int
    folded: int
    kinds: dict[str, int]
    statement: str | None
    text: str | None
    calls: int
    line: int
    call: int
    depth: int
    share: float
    self_share: float
    waits: list[WaitFigures]


class RootCall(TypedDict):
    """The call at the root."""

    call: int
    file: str
    line: int
    started_ns: int
    session: int
    calls: int
    elapsed_ns: int


class Tree(TypedDict):
    """A tree with its nodes in reading order."""

    root: RootCall
    nodes: list[Node]
    share: float


InnerCalls = dict[int, list[Call]]
"""The calls directly inside each call."""


@dataclass(frozen=True)
class Request:
    """Which execution to show, and how.

    The execution is given by a call's number, a statement (its longest call) or a place `FILE:LINE`; by default it is
    the longest call of the client. With `calls` each call has its own line; otherwise calls of one statement under one
    parent share a line. Branches below `share` of the whole are folded.
    """

    call: int | None = None
    statement: str | None = None
    place: str | None = None
    calls: bool = False
    share: float = SHARE


def tree_page(traces: Traces, request: Request) -> dict[str, object]:
    """Return the page with one tree.

    Raises:
        TraceError: no call matches.
    """
    return page("tree", traces, tree_of(traces, _root(traces, request), calls=request.calls, share=request.share))


def tree_of(traces: Traces, root: int, *, calls: bool = False, share: float = SHARE) -> Tree:
    """Return the tree of one call: `root`, and `nodes` in tree order.

    Below each parent, the statements with less than `share` of the root's time are folded into one node.
    """
    rows = _family(traces, root)
    waits = _waits(traces)
    texts = dict(traces.connection.execute("select statement, text from statements").fetchall())
    by_parent: InnerCalls = {}
    for row in rows:
        if row["call"] != root:
            by_parent.setdefault(row["parent"], []).append(row)
    top = next(row for row in rows if row["call"] == root)
    nodes: list[Node] = []
    whole = top["elapsed_ns"]
    stack: list[tuple[int, list[Call], int]] = [(0, [top], 0)]
    while stack:
        level, group, folded = stack.pop()
        if folded:
            nodes.append(_folded_node(level, group, folded, by_parent, whole))
            continue
        nodes.append(_node(level, group, waits, texts, whole))
        inside = _groups([child for call in group for child in by_parent.get(call["call"], [])], calls)
        large = [each for each in inside if sum(call["elapsed_ns"] for call in each) >= share * whole]
        if len(inside) - len(large) < 2:
            large = inside
        small = [call for each in inside if not any(each is kept for kept in large) for call in each]
        if small:
            stack.append((level + 1, small, len(inside) - len(large)))
        stack += [(level + 1, each, 0) for each in reversed(large)]
    about: RootCall = {
        "call": root,
        "file": traces.path_of(top["file"]),
        "line": top["line"],
        "started_ns": top["started_ns"],
        "session": top["session"],
        "calls": len(rows),
        "elapsed_ns": whole,
    }
    return {"root": about, "nodes": nodes, "share": share}


def _folded_node(level: int, calls: list[Call], lines: int, by_parent: InnerCalls, whole: int) -> Node:
    """Return small branches as one node that includes everything below them.

    Its exclusive figures are sums over the branches, so that the tree still adds up.
    """
    below, stack = list(calls), list(calls)
    while stack:
        inside = by_parent.get(stack.pop()["call"], [])
        below += inside
        stack += inside
    sums = _sums_of(below)
    return {
        **_node(level, calls, {}, {}, whole),
        "folded": lines,
        "kinds": {},
        "statement": None,
        "text": None,
        "calls": len(below),
        "self_share": sums["self_elapsed_ns"] / whole if whole else 0.0,
        "self_elapsed_ns": sums["self_elapsed_ns"],
        "self_cpu_ns": sums["self_cpu_ns"],
        "self_wait_ns": sums["self_wait_ns"],
    }


def _root(traces: Traces, request: Request) -> int:
    """Return the number of the call at the root."""
    if request.place is not None:
        return _at_place(traces, request.place)
    conditions, what = ["depth = 0"], "the traces contain no client call"
    given: list[Any] = []
    if request.call is not None:
        conditions, given, what = ["call = ?"], [request.call], f"no call {request.call}"
    elif request.statement is not None:
        given, what = [request.statement], f"no call of a statement {request.statement!r}"
        conditions = ["(statement = ? or statement in (select statement from statements where sqlid = ?))"]
        given = [request.statement] * 2
    found = traces.connection.execute(
        f"select call from calls where {' and '.join(conditions)}"  # noqa: S608
        " order by elapsed_ns desc, call limit 1",
        given,
    ).fetchone()
    if found is None:
        raise TraceError(what, next_step="list the statements with `dbdyno trace sql FILES`")
    return int(found[0])


def _at_place(traces: Traces, place: str) -> int:
    """Return the first call at or after a line: a record is written when the call has ended."""
    name, _, line = place.rpartition(":")
    if not line.isdigit():
        raise TraceError(
            f"{place!r} is not FILE:LINE", where="--line", next_step="write for example --line ora_123.trc:42"
        )
    for entry in traces.manifest.files:
        if str(entry.get("path", "")).endswith(name):
            found = traces.connection.execute(
                "select call from calls where file = $1 and line >= $2 order by line limit 1",
                [entry["file"], int(line)],
            ).fetchone()
            if found is not None:
                return int(found[0])
    raise TraceError(f"there is no call at or after {place}", next_step="give a line of one of the files")


def _family(traces: Traces, root: int) -> list[Call]:
    """Return the call and all calls inside it, in order of their start."""
    traces.connection.execute(
        """
        create or replace temp table family as
        with recursive inside as (
          select call from calls where call = $1
          union all
          select c.call from calls c join inside i on c.parent = i.call)
        select call from inside
        """,
        [root],
    )
    found = traces.rows(
        """
        select call, parent, kind, statement, depth, started_ns, session, file, line,
               coalesce(rows, 0) as rows, elapsed_ns, coalesce(cpu_ns, 0) as cpu_ns,
               coalesce(self_elapsed_ns, elapsed_ns) as self_elapsed_ns,
               coalesce(self_cpu_ns, 0) as self_cpu_ns, coalesce(self_wait_ns, 0) as self_wait_ns,
               coalesce(physical_reads, 0) as physical_reads,
               coalesce(consistent_reads, 0) as consistent_reads,
               coalesce(current_reads, 0) as current_reads
        from calls semi join family using (call) order by started_ns, call
        """
    )
    return cast("list[Call]", found)


def _waits(traces: Traces) -> dict[int, list[WaitFigures]]:
    """Return the waits directly inside each call of the tree."""
    found: dict[int, list[WaitFigures]] = {}
    for row in traces.rows(
        """
        select call, event, any_value(class) as class, count(*) as count,
               sum(elapsed_ns)::bigint as total_ns
        from waits semi join family using (call) group by call, event
        """
    ):
        found.setdefault(row.pop("call"), []).append(cast("WaitFigures", row))
    return found


def _sums_of(calls: list[Call]) -> Sums:
    return cast("Sums", {name: sum(call[name] for call in calls) for name in _SUMS})  # type: ignore[literal-required]


def _groups(calls: list[Call], single: bool) -> list[list[Call]]:
    """Return calls grouped by statement, one group per line of the tree, in order of each group's first start.

    With `single`, each call is a group of its own.
    """
    groups: dict[int | str, list[Call]] = {}
    for call in calls:
        groups.setdefault(call["call"] if single else call["statement"], []).append(call)
    return list(groups.values())


def _node(
    level: int,
    calls: list[Call],
    waits: dict[int, list[WaitFigures]],
    texts: dict[str, str],
    whole: int,
) -> Node:
    first = calls[0]
    kinds: dict[str, int] = {}
    events: dict[str, WaitFigures] = {}
    for call in calls:
        kinds[call["kind"]] = kinds.get(call["kind"], 0) + 1
        for wait in waits.get(call["call"], []):
            start: WaitFigures = {"event": wait["event"], "class": wait["class"], "count": 0, "total_ns": 0}
            seen = events.setdefault(wait["event"], start)
            seen["count"] += wait["count"]
            seen["total_ns"] += wait["total_ns"]
    sums = _sums_of(calls)
    return {
        "level": level,
        "folded": 0,
        "kinds": kinds,
        "statement": first["statement"],
        "text": texts.get(first["statement"]),
        "calls": len(calls),
        "line": first["line"],
        "call": first["call"],
        "depth": first["depth"],
        "share": sums["elapsed_ns"] / whole if whole else 0.0,
        "self_share": sums["self_elapsed_ns"] / whole if whole else 0.0,
        "waits": sorted(events.values(), key=lambda event: -event["total_ns"]),
        **sums,
    }
