"""Rules that find causes in the execution of unchanged plans: JIT, missing parallel workers, slow temporary files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dbdyno.snapshot.causes.change import Cause, Change, Key, Pair
from dbdyno.snapshot.causes.postgres.sampled_activity import average_sessions, sampled_activity
from dbdyno.snapshot.causes.statements import does_no_more_work, statement_label
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.wording import duration_text, setting_change, three_digits, time_change

LEAST_JIT_SHARE = 0.3
"""Smallest share of a call's added time that JIT compilation must have to count as the cause."""
LONGER_FACTOR = 1.15
"""Smallest growth factor of the time per call for which lost workers count as the cause.

It is low, because two workers at best halve the time of a scan.
"""
LEAST_WORKERS, LARGEST_WORKER_SHARE = 0.3, 0.5
"""Smallest earlier number of workers per session, and largest share that may be left, to count workers as lost."""
SLOWER_FILES_FACTOR, SAME_BLOCKS_FACTOR = 3.0, 1.25
"""Smallest growth factor of the time per temporary block for slower files, and largest for an unchanged block count."""
_JIT, _PARALLEL = re.compile("jit"), re.compile(r"max_parallel_workers|max_worker_processes|parallel_leader")
_TEMP = "temp_tablespaces"


def compiled_statements(change: Change) -> Iterator[Cause]:
    """Yield a cause for statements if JIT compilation is a large part of their added time (PostgreSQL 15 and later)."""
    some = {n: one for n, one in change.statements.items() if _compiled(one)}
    if some:
        first = max(some, key=lambda n: some[n].growth("ms"))
        old, new = (some[first].per_call(name) for name in ("jit", "ms"))
        compiling, call = f"{duration_text(old[0])} → {duration_text(old[1])}", duration_text(new[1])
        evidence = f"compiling takes {compiling} of {call} a call of {statement_label(some[first])}"
        words = "statements are now compiled (JIT)" if old[0] <= 0 else "compiling statements (JIT) takes longer"
        yield Cause(words, "; ".join([evidence, *describe_changed_settings(change, _JIT)]), frozenset(some), weight=2.8)


def _compiled(pair: Pair) -> bool:
    (old, new), (was, now) = pair.per_call("jit"), pair.per_call("ms")
    return (
        was > 0
        and new - old > 0
        and now - was > 0
        and new - old >= LEAST_JIT_SHARE * (now - was)
        and now >= LONGER_FACTOR * was
    )


def lost_workers(change: Change) -> Iterator[Cause]:
    """Yield a cause for statements that take longer for the same work and have fewer parallel workers.

    Workers are counted by sampling, or by statement on PostgreSQL 18 and later.
    """
    before, after = _beside(change, change.before), _beside(change, change.after)
    slow = frozenset(
        n
        for n, one in change.statements.items()
        if does_no_more_work(one)
        and one.per_call("ms")[1] >= LONGER_FACTOR * one.per_call("ms")[0] > 0
        and before.get(n, 0.0) >= LEAST_WORKERS
        and after.get(n, 0.0) <= LARGEST_WORKER_SHARE * before[n]
    )
    if slow:
        first = max(slow, key=lambda n: change.statements[n].growth("ms"))
        workers = f"{before[first]:.2g} → {after.get(first, 0.0):.2g}"
        evidence = f"workers beside {statement_label(change.statements[first])} {workers}"
        limit = change.setting("max_parallel_workers")[1]
        at_work = average_sessions(change.after, "kind = 'parallel worker'")
        said = [evidence, *describe_changed_settings(change, _PARALLEL)]
        said += (
            [f"{three_digits(at_work)} of at most {limit} workers are busy for other sessions"]
            if limit and at_work >= 1
            else []
        )
        words = "no" if after.get(first, 0.0) < LEAST_WORKERS / 2 else "fewer"
        yield Cause(f"statements get {words} parallel workers", "; ".join(said), slow, weight=2.8)


def _beside(change: Change, interval: Interval) -> dict[Key, float]:
    """Return the average number of parallel workers by statement: launched per call if counted, else active workers."""
    found: dict[Key, float] = {}
    source, looks = sampled_activity(interval)
    if looks:
        rows = interval.query(
            f"select statement, coalesce(sum(n) filter (where kind = 'parallel worker'), 0)::bigint as workers,"
            f" coalesce(sum(n) filter (where kind = 'client backend'), 0)::bigint as sessions from {source}"
            f" where state = 'active' and statement is not null group by 1 having sessions > 0"
        )
        found = {int(row["statement"]): row["workers"] / row["sessions"] for row in rows}
    side = "before" if interval is change.before else "after"
    for number, pair in change.statements.items():
        rates = getattr(pair, side)
        if rates.get("planned", 0.0) > 0:  # counted by the server, from 18 on
            found[number] = rates.get("launched", 0.0) / rates["calls"]
    return found


def slow_temporary_files(change: Change) -> Iterator[Cause]:
    """Yield a cause for slower statements that write as many temporary blocks as before, if their storage is slower.

    Either each block takes longer, or the tablespace for temporary files was changed.
    """
    moved = change.setting(_TEMP)
    slow = frozenset(
        n
        for n, one in change.statements.items()
        if one.per_call("temp")[0] >= 1
        and one.per_call("temp")[1] <= SAME_BLOCKS_FACTOR * one.per_call("temp")[0]
        and does_no_more_work(one)
        and one.is_slower()
        and (moved[0] != moved[1] or _slow_blocks(one))
    )
    if not slow:
        return
    first = change.statements[max(slow, key=lambda n: change.statements[n].growth("ms"))]
    old, new = _a_block(first)
    said = [f"a block takes {time_change(old, new)}"] if old and new else []
    said += [f"{_TEMP}: {moved[0] or '(database)'} → {moved[1] or '(database)'}"] if moved[0] != moved[1] else []
    said += [
        f"{three_digits(first.per_call('temp')[1])} temporary blocks per call of {statement_label(first)}, as before"
    ]
    yield Cause("temporary files became slow", "; ".join(said), slow, weight=2.75)


def _slow_blocks(pair: Pair) -> bool:
    old, new = _a_block(pair)
    return old > 0 and new >= SLOWER_FILES_FACTOR * old


def _a_block(pair: Pair) -> tuple[float, float]:
    """Return the milliseconds to write and read a temporary block, before and after; 0 if that is not timed."""
    found = [side.get("temp_ms", 0.0) / side["temp"] if side.get("temp") else 0.0 for side in (pair.before, pair.after)]
    return found[0], found[1]


def describe_changed_settings(change: Change, which: re.Pattern[str]) -> Iterable[str]:
    """Return in words the settings that changed and whose names match a pattern."""
    some = (row for row in change.changed_settings() if which.match(str(row["name"])))
    return [setting_change(row["name"], row["old"], row["new"]) for row in some]


RULES = (compiled_statements, lost_workers, slow_temporary_files)
