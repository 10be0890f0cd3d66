"""What the holder of a lock did while others waited for it: the causes behind lock waits.

A recording times every wait of every session on the same clock, but a lock wait does not name the holder. Its end
reveals it: PostgreSQL wakes the first session in the queue when the holder's transaction ends, after the flush of its
commit. So the holder is the session whose transaction ended last before the waiter woke, among those whose transaction
began before the wait. If no transaction ended, it is the session of a call that ran during the whole wait and ended
just then. What that session did between the begin and the end of the wait is read from its own waits.

- `Lock:tuple` is held by the session that waits for the row's transaction (`Lock:transactionid`).
- `LWLock:WALWrite` is held by the one session that writes or syncs the log: no holder has to be determined.
- If the holder itself waited for a lock, that time is distributed to the causes of that lock, in their proportions:
  with P the shares that lead from lock to lock and R those that end elsewhere, the result is (I - P)^-1 R, as in an
  absorbing Markov chain.

The holders found in this way were checked against `pg_blocking_pids` (docs/explanation/method.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import JsonObject
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Shares = NDArray[np.float64]

FORMAT = "postgresql waits"
THINK, WORK = "think time", "CPU"
"""Activities of a holder that is not waiting: its client is thinking, or it is working (or waits for a processor)."""
_DID = {
    THINK: "while the server waited for the holder's client, with its transaction open",
    WORK: "while the holder was working",
}
LISTED_LEAST, LISTED_MOST = 0.15, 3
"""Minimum share of the waited time for an activity to be mentioned, and maximum number of activities mentioned."""
KNOWN_LEAST = 0.8
"""Minimum share of the waited time with a known holder; below it nothing is reported."""
WAKE_NS, WAKE_SHARE, WAKE_MOST_NS = 10_000_000, 0.5, 1_000_000_000
"""A waiter wakes at most this long after its holder's end: the first value, or the share of its wait if that is longer,
but at most the last value. On an idle machine it takes .02 to .4 ms; on a busy one the waiter waits for a processor.
The longer the wait, the fewer transactions span its start."""
FLUSHES = ("io:walsync", "io:walwrite", "lwlock:walwrite", "ipc:syncrep")
"""Events of a commit's flush in lower case, because PostgreSQL 17 spells them differently."""
TUPLE, ROW, LOG = "lock:tuple", "lock:transactionid", "lwlock:walwrite"
TRANSACTION_LOCKS = (ROW, "lock:relation", "lock:virtualxid", "lock:object")
"""Locks released when the transaction ends; relation extension locks and advisory locks are released earlier."""
CLIENT = "client:clientread"
ENDS = r"^\s*(commit|end|rollback|abort|prepare\s+transaction)\b"


@dataclass(frozen=True)
class LockWaits:
    """Waits for one lock and what its holders did meanwhile.

    `count` and `time_ns` are the number and total time of the waits; `known_ns` is the time of those whose holder was
    found. `meanwhile` divides that time by the holder's activity (the name of an event, `THINK` or `WORK`), largest
    first.
    """

    event: str
    count: int
    time_ns: int
    known_ns: float
    meanwhile: dict[str, float] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Return True if the holder is known for enough of the time to be reported."""
        return self.time_ns > 0 and self.known_ns >= KNOWN_LEAST * self.time_ns

    def shares(self) -> dict[str, float]:
        """Return the shares of the time by the holder's activity; empty if not enough is known.

        If the shares add up to less than 1, the rest is time without a known holder, which is attributed to the lock
        itself.
        """
        return {name: ns / self.time_ns for name, ns in self.meanwhile.items()} if self.is_known else {}

    def as_dict(self) -> JsonObject:
        """Return the object as it is stored in models."""
        rows = [{"name": name, "time_ns": ns} for name, ns in self.meanwhile.items()]
        return {"event": self.event, "count": self.count, "time_ns": self.time_ns, "known_ns": self.known_ns} | {
            "meanwhile": rows if self.is_known else []
        }


def describe_holders(lock_waits: LockWaits) -> str:
    """Return what the holders did in words (`80 % of it while the holder was in IO:WALSync`), or "" if not known."""
    told = [
        f"{100 * share:.0f} % {'of it ' if at == 0 else ''}{_DID.get(name, f'while the holder was in {name}')}"
        for at, (name, share) in enumerate(lock_waits.shares().items())
        if share >= LISTED_LEAST
    ]
    return ", ".join(told[:LISTED_MOST])


def holders(traces: Traces) -> dict[str, LockWaits]:
    """Return the lock waits of a recording by event, those with most time first.

    The result is empty for other traces, because their sessions have no common clock.
    """
    if traces.manifest.to_json().get("format") != FORMAT:
        return {}
    waits = _Waits(traces)
    return waits.held() if waits.asked else {}


def _sums(traces: Traces, view: str) -> dict[str, tuple[int, int]]:
    """Return the number and the total time of the waits of a view, by event."""
    rows = traces.rows(f"select event, count(*) as n, sum(elapsed_ns)::bigint as ns from {view} group by event")  # noqa: S608
    return {row["event"]: (row["n"], row["ns"]) for row in rows}


class _Waits:
    """The waits of all sessions as arrays, sorted by session and begin.

    `asked` has, by event, the number and total time of the lock waits to explain: those in the view `waits`, to which
    `trace.conditions` may have applied a filter.
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        every = _sums(traces, "memory.main.waits")
        self.names = list(every)
        self.small = [name.lower() for name in self.names]
        self.locks = [at for at, name in enumerate(self.small) if name.startswith("lock:") or name == LOG]
        narrowed = _sums(traces, "waits")
        self.asked = {at: narrowed[self.names[at]] for at in self.locks if self.names[at] in narrowed}
        self.is_narrowed = [at for at, sums in self.asked.items() if sums != every[self.names[at]]]
        if not self.asked:
            return
        traces.connection.execute("create or replace temp table codes (event varchar, code integer)")
        traces.connection.executemany("insert into codes values (?, ?)", [[n, at] for at, n in enumerate(self.names)])
        self.session, self.code, self.begun, self.ended = self._arrays(
            "select session::integer as session, code, started_ns as begun, started_ns + elapsed_ns as ended"
            " from memory.main.waits join codes using (event) order by session, started_ns"
        )

    def _arrays(self, query: str, *values: object) -> list[Any]:
        import numpy as np

        return [np.asarray(column) for column in self.traces.connection.execute(query, values).fetchnumpy().values()]

    def held(self) -> dict[str, LockWaits]:
        """Return, for each lock, the waits for it and what its holders did meanwhile."""
        import numpy as np

        states = len(self.names) + 2  # the events, work, and unknown
        direct = np.zeros((len(self.names), states))
        for lock in self.locks:
            direct[lock] = self._direct(lock, states, "memory.main.waits")
        behind = _final_shares(direct, self.locks)
        shares = {lock: behind[lock] for lock in self.asked}
        for lock in self.is_narrowed:
            own = self._direct(lock, states, "waits")
            chained = own[self.locks] @ behind[self.locks]
            own[self.locks] = 0.0
            shares[lock] = own + chained
        ranked = sorted(self.asked, key=lambda lock: -self.asked[lock][1])
        return {self.names[lock]: self._held_lock(lock, shares[lock]) for lock in ranked}

    def _held_lock(self, lock: int, shares: Shares) -> LockWaits:
        count, time_ns = self.asked[lock]
        named: dict[str, float] = {}
        for name, share in zip([*self.names, WORK], shares[:-1], strict=True):
            if share > 0:
                did = THINK if name.lower() == CLIENT else name
                named[did] = named.get(did, 0.0) + float(share) * time_ns
        ordered = dict(sorted(named.items(), key=lambda one: -one[1]))
        return LockWaits(self.names[lock], count, time_ns, sum(named.values()), ordered)

    def _direct(self, lock: int, states: int, view: str) -> Shares:
        """Return the shares of a lock's time by its holder's activity, including waits for other locks."""
        import numpy as np

        found = np.zeros(states)
        name = self.small[lock]
        if name == TUPLE and ROW in self.small:
            found[self.small.index(ROW)] = 1.0
            return found
        session, begun, ended = self._arrays(
            "select session::integer as session, started_ns as begun, started_ns + elapsed_ns as ended"  # noqa: S608
            f" from {view} where event = ? order by session, started_ns",
            self.names[lock],
        )
        whole = float((ended - begun).sum())
        if name == LOG:
            for event in (at for at, other in enumerate(self.small) if other in ("io:walsync", "io:walwrite")):
                one = np.flatnonzero(self.code == event)
                one = one[np.argsort(self.begun[one], kind="stable")]
                found[event] = _covered_time(self.begun[one], self.ended[one], begun, ended).sum()
            found[-2] = max(whole - found.sum(), 0.0)
        elif name in TRANSACTION_LOCKS:
            self._by_holder(begun, ended, self.ends.of(session, begun, ended), found)
        found[-1] = whole - found.sum()
        return found / found.sum() if found.sum() > 0 else found

    def _by_holder(self, since: Ints, until: Ints, holder: Ints, shares: Shares) -> None:
        """Add up what the holders did between the start and the end of these waits."""
        import numpy as np

        for session in np.unique(holder[holder >= 0]):
            waiting = holder == session
            low, high = np.searchsorted(self.session, [session, session + 1])
            begun, ended, code = self.begun[low:high], self.ended[low:high], self.code[low:high]
            spent = 0.0
            for event in np.unique(code):
                one = code == event
                time = _covered_time(begun[one], ended[one], since[waiting], until[waiting]).sum()
                shares[event] += time
                spent += time
            shares[-2] += float((until[waiting] - since[waiting]).sum()) - spent

    @property
    def ends(self) -> _Ends:
        """Return the ends of transactions, which are read once."""
        if not hasattr(self, "_ends"):
            self._ends = _Ends(self.traces)
        return self._ends


class _Ends:
    """The ends of transactions of all sessions in order, and the calls in order of their ends."""

    def __init__(self, traces: Traces) -> None:
        import numpy as np

        found = traces.connection.execute(
            f"""
            with flushed as (
              select call, max(started_ns + elapsed_ns) as at from memory.main.waits
              where call is not null and lower(event) in (select unnest($1::varchar[])) group by call),
            ends as (
              select c.session, c.call, c.started_ns + c.elapsed_ns as over,
                     coalesce(f.at, c.started_ns) as freed, lead(c.started_ns) over mine as following,
                     min(c.started_ns) over mine as earliest,
                     f.at is not null or regexp_matches(coalesce(s.text, ''), '{ENDS}', 'i')
                       or c.call in (select call from errors where call is not null) as is_end
              from memory.main.calls c left join flushed f using (call)
              left join (select statement, any_value(text) as text from statements group by statement) s
                using (statement)
              where c.kind not in ('background', 'connect') and coalesce(c.depth, 0) = 0
              window mine as (partition by c.session order by c.started_ns))
            select session::bigint as session, freed, over,
                   coalesce(lag(freed) over mine, 0) as before, coalesce(lag(following) over mine, earliest) as first
            from ends where is_end window mine as (partition by session order by freed) order by freed
            """,  # noqa: S608
            [list(FLUSHES)],
        ).fetchnumpy()
        names = ("session", "freed", "over", "before", "first")
        self.session, self.freed, self.over, self.before, self.first = (
            np.asarray(found[name], dtype=np.int64) for name in names
        )
        calls = traces.connection.execute(
            "select session::bigint as session, started_ns as begun, started_ns + elapsed_ns as over"
            " from memory.main.calls"
            " where kind not in ('background', 'worker') and coalesce(depth, 0) = 0 order by over"
        ).fetchnumpy()
        self.calls = tuple(np.asarray(calls[name], dtype=np.int64) for name in ("session", "begun", "over"))

    def of(self, session: Ints, begun: Ints, ended: Ints) -> Ints:
        """Return for each of these waits the session that held the lock, or -1 if it is not known."""
        import numpy as np

        holder = np.full(session.shape, -1, dtype=np.int64)
        earliest = ended - np.clip((WAKE_SHARE * (ended - begun)).astype(np.int64), WAKE_NS, WAKE_MOST_NS)
        place = np.searchsorted(self.freed, ended, side="right") - 1
        is_open = place >= 0
        while is_open.any():
            at = place[is_open]
            is_near = self.freed[at] > earliest[is_open]
            fits = (
                is_near
                & (self.session[at] != session[is_open])
                & (self.over[at] > earliest[is_open])
                & (self.before[at] < begun[is_open])
                & (self.first[at] <= begun[is_open])
            )
            numbers = np.flatnonzero(is_open)
            holder[numbers[fits]] = self.session[at[fits]]
            place[numbers] -= 1
            is_open[numbers] = is_near & ~fits & (place[numbers] >= 0)
        self._by_call(session, begun, ended, earliest, holder)
        return holder

    def _by_call(self, session: Ints, begun: Ints, ended: Ints, earliest: Ints, holder: Ints) -> None:
        """Set unknown holders to the session whose call spanned the wait and ended closest to the wake-up."""
        import numpy as np

        whose, since, over = self.calls
        nearest = np.full(session.shape, WAKE_MOST_NS + 1, dtype=np.int64)
        place = np.searchsorted(over, ended + WAKE_NS, side="right") - 1
        is_open = (holder < 0) & (place >= 0)
        while is_open.any():
            numbers = np.flatnonzero(is_open)
            at = place[numbers]
            apart = np.abs(over[at] - ended[numbers])
            is_near = over[at] >= earliest[numbers]
            fits = is_near & (whose[at] != session[numbers]) & (since[at] <= begun[numbers])
            fits &= apart < nearest[numbers]
            holder[numbers[fits]] = whose[at[fits]]
            nearest[numbers[fits]] = apart[fits]
            place[numbers] -= 1
            is_open[numbers] = is_near & (place[numbers] >= 0)


def _covered_time(begun: Ints, ended: Ints, since: Ints, until: Ints) -> Ints:
    """Return how much of each period `since` to `until` is covered by non-overlapping intervals sorted by begin."""
    import numpy as np

    before = np.concatenate(([0], np.cumsum(ended - begun)))

    def up_to(when: Ints) -> Ints:
        at = np.searchsorted(begun, when, side="right")
        last = np.maximum(at - 1, 0)
        cut = np.maximum(ended[last] - when, 0) if begun.size else np.zeros_like(when)
        return before[at] - np.where(at > 0, cut, 0)

    return up_to(until) - up_to(since)


def _final_shares(direct: Shares, locks: list[int]) -> Shares:
    """Return the shares of the final causes of each lock, given the shares of its direct causes."""
    import numpy as np

    ends = np.array(direct)
    ends[:, locks] = 0.0
    chain = np.eye(len(locks)) - direct[np.ix_(locks, locks)]
    try:
        solved = np.linalg.solve(chain, ends[locks])
    except np.linalg.LinAlgError:  # locks that only wait for each other: nothing is known
        return np.zeros_like(direct)
    found = np.zeros_like(direct)
    found[locks] = np.clip(solved, 0.0, 1.0)
    return found
