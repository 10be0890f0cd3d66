"""The recursion tree of one execution: a call, the calls inside it, and what each waited for.

Parent and child are known by containment (a call's parent is the first later call one level up
whose span holds it). Inclusive time holds the children, exclusive time does not; the exclusive
times of a tree add up to the inclusive time of its root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbdyno.errors import TraceError
from dbdyno.trace.page import page
from dbdyno.trace.source import Traces

_SUMS = (
    "elapsed_ns",
    "cpu_ns",
    "self_elapsed_ns",
    "self_cpu_ns",
    "self_wait_ns",
    "rows",
    "physical_reads",
    "consistent_reads",
    "current_reads",
)

SHARE = 0.005
"""Below this share of the whole, branches are folded."""


@dataclass(frozen=True)
class Request:
    """Which execution: a call's number, a statement (its longest call), a place `FILE:LINE`, or
    the longest call of the client. `calls` shows each call by itself; without it the calls of one
    statement under one parent are one line. Branches below `share` of the whole are folded."""

    call: int | None = None
    statement: str | None = None
    place: str | None = None
    calls: bool = False
    share: float = SHARE


def tree_page(traces: Traces, request: Request) -> dict[str, object]:
    """The page of one tree; raises `TraceError` when no call fits."""
    return page("tree", traces, tree_of(traces, _root(traces, request), calls=request.calls, share=request.share))


def tree_of(traces: Traces, root: int, *, calls: bool = False, share: float = SHARE) -> dict[str, Any]:
    """The tree of one call: `root` and `nodes` in the order of the tree. Below each parent, the
    statements with less than `share` of the root's time are folded into one node."""
    rows = _family(traces, root)
    waits = _waits(traces)
    texts = dict(traces.connection.execute("select statement, text from statements").fetchall())
    by_parent: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        if row["call"] != root:
            by_parent.setdefault(row["parent"], []).append(row)
    top = next(row for row in rows if row["call"] == root)
    nodes: list[dict[str, Any]] = []
    whole = top["elapsed_ns"]
    stack: list[tuple[int, list[dict[str, Any]], int]] = [(0, [top], 0)]
    while stack:
        level, group, folded = stack.pop()
        if folded:
            nodes.append(_folded(level, group, folded, by_parent, whole))
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
    about = {
        "call": root,
        "file": traces.path_of(top["file"]),
        "line": top["line"],
        "started_ns": top["started_ns"],
        "session": top["session"],
        "calls": len(rows),
        "elapsed_ns": whole,
    }
    return {"root": about, "nodes": nodes, "share": share}


def _folded(
    level: int, calls: list[dict[str, Any]], lines: int, by_parent: dict[int, list[dict[str, Any]]], whole: int
) -> dict[str, Any]:
    """Small branches as one node, which holds all that lies below: its exclusive figures are those
    of the branches together, so that the tree still adds up."""
    below, stack = list(calls), list(calls)
    while stack:
        inside = by_parent.get(stack.pop()["call"], [])
        below += inside
        stack += inside
    own = {name: sum(call[name] for call in below) for name in _SUMS if name.startswith("self_")}
    sums = {name: sum(call[name] for call in calls) for name in _SUMS} | own
    first = calls[0]
    return {
        "level": level,
        "folded": lines,
        "kinds": {},
        "statement": None,
        "text": None,
        "calls": len(below),
        "line": first["line"],
        "call": first["call"],
        "depth": first["depth"],
        "share": sums["elapsed_ns"] / whole if whole else 0.0,
        "self_share": sums["self_elapsed_ns"] / whole if whole else 0.0,
        "waits": [],
        **sums,
    }


def _root(traces: Traces, request: Request) -> int:
    """The number of the call at the top."""
    if request.place is not None:
        return _at_place(traces, request.place)
    conditions, what = ["depth = 0"], "the traces hold no call of the client"
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
        raise TraceError(what, next_step="`dbdyno trace sql FILES` lists the statements")
    return int(found[0])


def _at_place(traces: Traces, place: str) -> int:
    """The first call at or after a line: a record is written when the call has ended."""
    name, _, line = place.rpartition(":")
    if not line.isdigit():
        raise TraceError(f"{place!r} is no FILE:LINE", where="--line")
    for entry in traces.manifest.files:
        if str(entry.get("path", "")).endswith(name):
            found = traces.connection.execute(
                "select call from calls where file = $1 and line >= $2 order by line limit 1",
                [entry["file"], int(line)],
            ).fetchone()
            if found is not None:
                return int(found[0])
    raise TraceError(f"no call at or after {place}", next_step="give a line of one of the files")


def _family(traces: Traces, root: int) -> list[dict[str, Any]]:
    """The call and all calls inside it, by start."""
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
    return traces.rows(
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


def _waits(traces: Traces) -> dict[int, list[dict[str, Any]]]:
    """The waits directly inside each call of the family."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in traces.rows(
        """
        select call, event, any_value(class) as class, count(*) as count,
               sum(elapsed_ns)::bigint as total_ns
        from waits semi join family using (call) group by call, event
        """
    ):
        found.setdefault(row["call"], []).append(row)
    return found


def _groups(calls: list[dict[str, Any]], single: bool) -> list[list[dict[str, Any]]]:
    """Calls that become one line each: by statement, the one that began first at the top."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for call in calls:
        groups.setdefault(call["call"] if single else call["statement"], []).append(call)
    return list(groups.values())


def _node(
    level: int,
    calls: list[dict[str, Any]],
    waits: dict[int, list[dict[str, Any]]],
    texts: dict[str, str],
    whole: int,
) -> dict[str, Any]:
    first = calls[0]
    kinds: dict[str, int] = {}
    events: dict[str, dict[str, Any]] = {}
    for call in calls:
        kinds[call["kind"]] = kinds.get(call["kind"], 0) + 1
        for wait in waits.get(call["call"], []):
            start = {"event": wait["event"], "class": wait["class"], "count": 0, "total_ns": 0}
            seen = events.setdefault(wait["event"], start)
            seen["count"] += wait["count"]
            seen["total_ns"] += wait["total_ns"]
    sums = {name: sum(call[name] for call in calls) for name in _SUMS}
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
