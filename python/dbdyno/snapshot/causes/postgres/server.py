"""Rules that find causes in the server itself: locks, checkpoints, a restart and its cold cache, settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median

from dbdyno.snapshot.causes.change import Cause, Change, Key, Pair
from dbdyno.snapshot.causes.postgres.sampled_activity import sampled_activity
from dbdyno.snapshot.causes.statements import does_no_more_work, slower_at_same_work, statement_label
from dbdyno.snapshot.engines.postgres.epochs import upgraded
from dbdyno.snapshot.engines.postgres.host import Processors, describe_processors, processors_of_intervals
from dbdyno.snapshot.engines.postgres.sampler import BLOCKED
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.reading.changed_settings import OWN_SETTINGS
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.wording import rate_change, setting_change, three_digits, time_change

_ACTIVE = "kind = 'client backend' and state = 'active'"
LEAST_WAIT_SHARE = 0.5
"""Smallest share of the added statement time that waits must have to count as its cause, even under little load."""
LEAST_WAITING = 0.02
OUTSIDE_WEIGHT = 4.0
"""Weight of waits that are more than twice the added statement time; the time of statements does not include them."""
_SYNCS = "event in ('WALSync', 'WalSync')"
SLOWER_FACTOR, CALLS_LEAST = 1.25, 10.0
"""Smallest slowdown and smallest number of calls of every statement that point to the processor."""
ADDED_PROCESSORS, LONGER_FACTOR = 0.3, 1.1
"""Smallest increase in processors used by other programs, and smallest slowdown per call that it can explain."""
MORE_WAL_FACTOR = 2.0
"""Smallest growth factor of WAL per call that is explained by full-page images."""
FILE_SETTINGS = ("config_file", "hba_file", "ident_file")
"""Settings that only locate files. data_directory is not among them, because it may be on another device."""
_LEAST_SYNC_MS = 1.0
"""Mean time in ms below which a sync of the WAL is not called slow."""


def slow_syncs(change: Change) -> Iterator[Cause]:
    """Yield a cause if syncs of the WAL take longer, as timed by the server (track_wal_io_timing) or as sampled.

    Commits wait for a sync of the WAL, and that wait is not part of any statement's time.
    """
    means, busy = _timed_syncs(change)
    (seen_old, _), (seen, _) = (_sampled(one, _SYNCS) for one in (change.before, change.after))
    looks = change.after.looks
    timed = means[1] >= max(3 * means[0], _LEAST_SYNC_MS) and busy[1] >= 50
    sampled = seen >= 0.3 and seen >= 3 * seen_old
    if not timed and not sampled:
        return
    said = [f"a sync took {time_change(*means)}, {three_digits(busy[1])} ms of syncs per second"] if timed else []
    said += [f"sessions waiting for a sync {seen_old:.2g} → {seen:.2g} on average"] if sampled else []
    waited_ms = 1000 * (seen - seen_old) if looks else busy[1] - busy[0]
    weight = OUTSIDE_WEIGHT if _exceeds_statement_time(change, waited_ms) else 2.9
    yield Cause("syncs of the WAL became slow", "; ".join(said), weight=weight)


def _exceeds_statement_time(change: Change, waited_ms: float) -> bool:
    """Return True if added waits [ms per second] are more than twice the added statement time."""
    return waited_ms > 2 * max(change.growth_ms, 0.0)


def _timed_syncs(change: Change) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the mean time of a sync and the time of all syncs per second, both in ms, before and after.

    The mean is the median of the sub-intervals' means, so that one slow minute does not make a good period slow.
    Returns zeros if syncs are not timed.
    """
    for view, count, time, where in (
        ("pg_stat_wal", "wal_sync", "wal_sync_time", "true"),
        ("pg_stat_io", "fsyncs", "fsync_time", "object = 'wal'"),
    ):
        sides = change.totals(view, count, time, where=where)
        if time in sides[1]:
            means = [_middle(one, view, count, time, where) for one in (change.before, change.after)]
            return (means[0], means[1]), (sides[0][time], sides[1][time])
    return (0.0, 0.0), (0.0, 0.0)


def _middle(interval: Interval, view: str, count: str, time: str, where: str) -> float:
    """Return the median of the sub-intervals' means, ignoring sub-intervals without a count; 0 if there are none."""
    source, known = interval.sums.relation(view, folded=False)
    if not {count, time} <= {c.name for c in known}:
        return 0.0
    rows = interval.query(
        f"select sum({time}) / sum({count}) as mean from {source} where {where}"
        f" and part > {interval.before.number} and part <= {interval.after.number}"
        f" group by part having sum({count}) > 0"
    )
    return float(median(row["mean"] for row in rows)) if rows else 0.0


def lock_waits(change: Change) -> Iterator[Cause]:
    """Yield a cause if sessions wait for each other's locks, according to sampled sessions."""
    (old, _), (new, waiting) = (_sampled(one, "event_type = 'Lock'") for one in (change.before, change.after))
    (busy_old, _), (busy, _) = (_sampled(one, "true") for one in (change.before, change.after))
    mostly = new >= LEAST_WAITING and 1000 * (new - old) >= max(LEAST_WAIT_SHARE * change.growth_ms, 1.0)
    if (new >= 0.3 and new >= 3 * old) or mostly:
        evidence = (
            f"sessions waiting for a lock {old:.2g} → {new:.2g} on average, of {busy_old:.2g} → {busy:.2g} active"
        )
        evidence += _holders(change.after)
        # a wait for a table lock happens while a statement is parsed, and is in no statement's time
        outside = _exceeds_statement_time(change, 1000 * (new - old))
        whose, weight = (frozenset[int](), OUTSIDE_WEIGHT) if outside else (waiting, 2.8)
        yield Cause(_what_for(change), evidence, whose, weight=weight)


def _what_for(change: Change) -> str:
    """Return in words what sessions wait for: a table's lock or a statement's row locks, if most wait for the same."""
    one = change.after
    source, _ = one.samples("blocked", BLOCKED)
    rows = one.query(
        f"select locktype, datid, relation, statement, count(*) as n from {source} where {one.inside} group by all"
    )
    whole = sum(row["n"] for row in rows)
    tables, statements = Counter[str](), Counter[Key]()
    for row in rows:
        if row["locktype"] == "relation" and row["relation"] is not None:
            table = change.tables.get((int(row["datid"] or 0), int(row["relation"])))
            tables[table.name if table else "a table"] += row["n"]
        elif row["locktype"] in ("transactionid", "tuple") and row["statement"] is not None:
            statements[int(row["statement"])] += row["n"]
    for found in tables.most_common(1):
        if found[1] >= LEAST_WAIT_SHARE * whole:
            return f"sessions wait for a lock on {found[0]}"
    for key, count in statements.most_common(1):
        if count >= LEAST_WAIT_SHARE * whole and key in change.statements:
            return f"sessions wait for row locks of each other in {statement_label(change.statements[key])}"
    return "sessions wait for each other's locks"


def _holders(interval: Interval) -> str:
    """Return a description of the root blockers if most of them are idle in a transaction; else ''.

    A blocker that waits itself, such as an ALTER TABLE in the queue, is not a root blocker.
    """
    source, _ = interval.samples("blocked", BLOCKED)
    rows = interval.query(
        f"with seen as (select * from {source} where {interval.inside})"
        f" select count(*) as n, count(*) filter (where blocker_state like 'idle in transaction%') as idle,"
        f" mode(blocker_usename || coalesce(' of ' || nullif(blocker_application, ''), ''))"
        f" filter (where blocker_state like 'idle in transaction%') as who"
        f" from seen where (at_us, blocker) not in (select (at_us, session) from seen)"
    )
    count, idle, who = rows[0]["n"], rows[0]["idle"], rows[0]["who"]
    return f"; the holder was idle in a transaction ({who})" if count and idle >= LEAST_WAIT_SHARE * count else ""


def _sampled(interval: Interval, waits: str) -> tuple[float, frozenset[int]]:
    """Return the average number of active sessions that meet an SQL condition on waits, and their statements."""
    source, looks = sampled_activity(interval)
    if not looks:
        return 0.0, frozenset()
    rows = interval.query(f"select statement, sum(n)::bigint as n from {source} where {_ACTIVE} and {waits} group by 1")
    return sum(r["n"] for r in rows) / looks, frozenset(int(r["statement"]) for r in rows if r["statement"] is not None)


def busy_processors(change: Change) -> Iterator[Cause]:
    """Yield a cause if calls take longer for the same work and cache hits, without waits that the server knows of.

    The remaining explanation is a processor that other programs use, or one that became slower. If the collector runs
    on the server's host, the kernel reports how much other programs use: then a smaller slowdown is enough, and a
    larger one is not attributed to other programs if they used no more than before.
    """
    known = processors_of_intervals(change.before, change.after)
    if known is not None and known[1].others - known[0].others >= ADDED_PROCESSORS:
        yield from _taken_by_others(change, *known)
        return
    slow = frozenset(n for n in slower_at_same_work(change) if not _waits_more(change.statements[n]))
    slow -= _mostly_locked(change.after)
    slow = slow or _all_alike(change)
    (old, _), (new, _) = (_sampled(one, "coalesce(event_type, '') = ''") for one in (change.before, change.after))
    (waited_old, _), (waited, _) = (_sampled(one, "event_type <> ''") for one in (change.before, change.after))
    looked = old or new or waited_old or waited
    if len(slow) == 0 or not looked or (waited > 0.3 and waited >= 2 * waited_old and waited > new):
        return
    if len(slow) * 2 < sum(one.after.get("calls", 0) > 0 for one in change.statements.values()):
        return  # calls of the other statements take as long as before
    evidence = f"active sessions that wait for nothing {old:.2g} → {new:.2g} on average, as sampled"
    words = "processors are slower, or others use them"
    if known is not None:
        words, evidence = "processors are slower", f"{evidence}; {describe_processors(*known)}"
    yield Cause(f"calls take longer at the same work: {words}", evidence, slow, weight=2.3)


def _mostly_locked(interval: Interval) -> frozenset[Key]:
    """Return the statements mostly seen waiting for a lock, whose duration the processor does not explain."""
    source, looks = sampled_activity(interval)
    if not looks:
        return frozenset()
    rows = interval.query(
        f"select statement from {source} where {_ACTIVE} and statement is not null group by 1"
        f" having coalesce(sum(n) filter (where event_type = 'Lock'), 0) >= {LEAST_WAIT_SHARE} * sum(n)"
    )
    return frozenset(int(row["statement"]) for row in rows)


def _taken_by_others(change: Change, old: Processors, new: Processors) -> Iterator[Cause]:
    """Yield a cause if other programs use more processors and calls take longer in total for the same work.

    The statements are those that take longer for the same work. Waits for locks must not explain the added time.
    """
    same = [n for n, one in change.statements.items() if min(_calls(one)) > 0 and does_no_more_work(one)]
    same = [n for n in same if not _waits_more(change.statements[n])]
    times_ms = [change.statements[n].per_call("ms") for n in same]
    calls = [_calls(change.statements[n])[1] for n in same]
    before, after = (sum(c * t[end] for c, t in zip(calls, times_ms, strict=True)) for end in (0, 1))
    (locked_old, _), (locked, _) = (_sampled(one, "event_type = 'Lock'") for one in (change.before, change.after))
    if (
        before <= 0
        or after < LONGER_FACTOR * before
        or (locked >= LEAST_WAITING and 1000 * (locked - locked_old) > after)
    ):
        return
    slow = frozenset(n for n, (was, now) in zip(same, times_ms, strict=True) if now >= LONGER_FACTOR * was)
    evidence = f"{describe_processors(old, new)}; for the same work, calls take {after / before:.2g} times as long"
    yield Cause("calls take longer at the same work: others use the processors", evidence, slow, weight=2.3)


def _all_alike(change: Change) -> frozenset[Key]:
    """Return all statements called in both periods if every one takes longer for the same work; else an empty set.

    The threshold is lower than for a single statement, because only the processor is common to all.
    """
    both = {n: one for n, one in change.statements.items() if min(_calls(one)) * change.after.seconds >= CALLS_LEAST}
    alike = all(
        does_no_more_work(one)
        and not _waits_more(one)
        and one.per_call("ms")[1] >= SLOWER_FACTOR * one.per_call("ms")[0]
        for one in both.values()
    )
    return frozenset(both) if alike else frozenset()


def _calls(pair: Pair) -> tuple[float, float]:
    return pair.before.get("calls", 0.0), pair.after.get("calls", 0.0)


def _waits_more(pair: Pair) -> bool:
    """Return True if a call reads more blocks from outside the cache, or writes more temporary blocks, than before."""
    return any(pair.per_call(name)[1] > pair.per_call(name)[0] + 1 for name in ("reads", "temp"))


def checkpoints(change: Change) -> Iterator[Cause]:
    """Yield a cause if the amount of WAL, rather than the timeout, requests checkpoints more often."""
    for view, name in (("pg_stat_bgwriter", "checkpoints_req"), ("pg_stat_checkpointer", "num_requested")):
        old, new = (side.get(name, 0.0) for side in change.totals(view, name))
        if new * change.after.seconds >= 2 and new >= 3 * old:
            old_wal, new_wal = (side.get("wal_bytes", 0.0) for side in change.totals("pg_stat_wal", "wal_bytes"))
            evidence = f"{rate_change(old, new)}; WAL {old_wal / 1e6:.3g} → {new_wal / 1e6:.3g} MB a second"
            slow = frozenset(n for n, one in change.statements.items() if one.is_slower() or _writes_pages(one))
            yield Cause("checkpoints follow each other because of the WAL volume", evidence, slow, weight=2.5)


def _writes_pages(pair: Pair) -> bool:
    """Return True if a call takes longer and writes much more WAL for the same work: full pages after a checkpoint."""
    (old, new), (was, now) = pair.per_call("wal"), pair.per_call("ms")
    return does_no_more_work(pair) and old > 0 and new >= MORE_WAL_FACTOR * old and now >= LONGER_FACTOR * was > 0


def restarts(change: Change) -> Iterator[Cause]:
    """Yield a cause for a restart or upgrade, with the reads into the cache, which was cold afterwards."""
    if not change.was_restarted:
        return
    colder = frozenset(
        n for n, one in change.statements.items() if one.per_call("reads")[1] > one.per_call("reads")[0] + 0.1
    )
    reads = rate_change(*(side.get("blks_read", 0.0) for side in change.totals("pg_stat_database", "blks_read")))
    started = int(change.after.after.facts["started_us"])
    how = upgraded(change.before.before.facts, change.after.after.facts) or "restarted"
    words = f"the server was {how}" + (", its cache was cold" if colder else "")
    yield Cause(words, f"blocks read {reads}", colder, instant_text(started), weight=2.7)


def settings(change: Change) -> Iterator[Cause]:
    """Yield a cause for each setting that changed, except dbdyno's own settings and those that only locate files."""
    for row in change.changed_settings((*OWN_SETTINGS, *FILE_SETTINGS)):
        yield Cause("setting " + setting_change(row["name"], row["old"], row["new"]), weight=0.4)


RULES = (slow_syncs, lock_waits, busy_processors, checkpoints, restarts, settings)
