"""Order of sessions and blocking trees on the live screen, for what an engine read at one instant.

Sessions are dicts with `pid`, `user`, `database`, `application`, `client`, `state`, `wait`, `statement_us`,
`transaction_us`, `blockers` and `query` (with quoted text removed); values that are not known are None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Session = Mapping[str, Any]

SORTS = ("time", "transaction", "user", "wait")
"""Sort orders of the list of sessions: the running statement's time, the transaction's time, a name."""
_SEARCHED = ("pid", "user", "database", "application", "client", "state", "wait", "query")
DEEPEST = 20


def select_sessions(rows: Sequence[Session], sort: str, words: str = "") -> list[Session]:
    """Return the sessions that contain `words` in any field, ignoring case, sorted by an order in `SORTS`."""
    kept = [row for row in rows if not words or _holds(row, words.casefold())]
    if sort in ("user", "wait"):
        return sorted(kept, key=lambda row: (row[sort] is None, str(row[sort] or ""), row["pid"]))
    name = "transaction_us" if sort == "transaction" else "statement_us"
    return sorted(kept, key=lambda row: (-(row[name] or -1), row["pid"]))


def _holds(row: Session, words: str) -> bool:
    return any(words in str(row.get(name) or "").casefold() for name in _SEARCHED)


def blocking_tree(rows: Sequence[Session]) -> list[tuple[int, Session]]:
    """Return who blocks whom, depth first, as (depth, session).

    A root waits for nobody; a session in a cycle of waits is a root too.
    """
    known = {row["pid"]: row for row in rows}
    below: dict[int, list[int]] = {}
    for row in rows:
        for blocker in row["blockers"] or ():
            below.setdefault(blocker, []).append(row["pid"])
    waiting = {row["pid"] for row in rows if row["blockers"]}
    found: list[tuple[int, Session]] = []
    placed: set[int] = set()
    for root in [one for one in sorted(below) if one not in waiting] + sorted(waiting):
        if root not in placed:
            found += _grown(root, below, known, placed)
    return found


def _grown(
    root: int, below: Mapping[int, Sequence[int]], known: Mapping[int, Session], placed: set[int]
) -> Iterator[tuple[int, Session]]:
    """Yield a root and all sessions below it, each below its nearest blocker."""
    children: dict[int, list[int]] = {}
    placed.add(root)
    layer = [root]
    while layer:
        following = []
        for one in layer:
            new = [waiter for waiter in below.get(one, ()) if waiter not in placed]
            placed.update(new)
            children[one] = new
            following += new
        layer = following
    stack = [(0, root)]
    while stack:
        depth, one = stack.pop()
        yield min(depth, DEEPEST), known.get(one, invisible_blocker(one))
        stack += [(depth + 1, child) for child in reversed(children.get(one, []))]


def invisible_blocker(pid: int) -> dict[str, object]:
    """Return the entry for a blocker that is not a visible session: a prepared transaction, or one that has ended."""
    state = "prepared transaction" if pid == 0 else "not visible"
    names = (*_SEARCHED, "statement_us", "transaction_us", "blockers")
    return {**dict.fromkeys(names), "pid": pid, "state": state}
