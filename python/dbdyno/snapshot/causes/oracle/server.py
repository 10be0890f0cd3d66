"""Rules that find causes in the Oracle instance: locks, the redo log, storage, contention, a restart, parameters."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Key, Pair
from dbdyno.snapshot.causes.oracle.reading import Event, OracleChange
from dbdyno.snapshot.causes.statements import slower_at_same_work
from dbdyno.snapshot.wording import rate_change, three_digits, time_change

_SLOW = 3.0
_LEAST_MS = 1.0
_LEAST_BUSY_MS = 50.0
_LEAST_WAITING_MS = 300.0
"""Smallest summed wait in ms per second for which an event is reported: 0.3 sessions on average."""
_ROOM = (
    (
        "log file switch (checkpoint incomplete)",
        "the log is full until a checkpoint ends: redo logs are too small or few",
    ),
    ("log file switch (archiving needed)", "the log is full until it is archived"),
    ("log buffer space", "sessions wait for room in the log buffer"),
    ("free buffer waits", "sessions wait for free buffers: the database writer cannot keep up"),
    ("write complete waits", "sessions wait for blocks that are being written"),
)
_CONTENTION = (
    ("buffer busy waits", "sessions want the same blocks", "buffer_busy"),
    ("gc buffer busy acquire", "instances want the same blocks", "buffer_busy"),
    ("enq: TX - allocate ITL entry", "blocks have no room for one more transaction (INITRANS)", "itl_waits"),
    ("enq: TX - index contention", "sessions insert into the same block of an index", "buffer_busy"),
    ("latch: cache buffers chains", "sessions read the same blocks over and over", "logical_reads"),
    ("latch: shared pool", "sessions wait for the shared pool", ""),
    ("library cache lock", "statements or objects are compiled while others use them", ""),
    ("library cache: mutex X", "many sessions use the same cursors", ""),
    ("cursor: pin S wait on X", "sessions wait until a statement is parsed", ""),
)


def slow_log(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause if commits wait longer, and say whether the storage under the log is slower."""
    old, new = change.event("log file sync")
    if not _slower(old, new):
        return
    wrote = change.event("log file parallel write")
    device = _means_slower(*wrote)
    words = "log writes became slow" if device else "commits wait longer, log writes do not: CPU or LGWR"
    said = f"log file sync {time_change(old.mean_ms, new.mean_ms)}, {three_digits(new.ms)} ms a second"
    said += f"; log file parallel write {time_change(wrote[0].mean_ms, wrote[1].mean_ms)}" if wrote[1].all_waits else ""
    yield Cause(words, said, weight=2.9)


def slow_reads(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause if each single-block read takes longer, which points to the storage and not to more reads."""
    for name in ("db file sequential read", "cell single block physical read", "direct path read"):
        old, new = change.event(name)
        if _slower(old, new):
            said = f"{name} {time_change(old.mean_ms, new.mean_ms)}, {three_digits(new.ms)} ms a second"
            yield Cause(
                "reads became slow: the storage takes longer for each read",
                said,
                change.waiting_statements("io"),
                weight=2.75,
            )
            return


def _slower(old: Event, new: Event) -> bool:
    return _means_slower(old, new) and new.ms >= _LEAST_BUSY_MS


def _means_slower(old: Event, new: Event) -> bool:
    return new.mean_ms >= max(_SLOW * old.mean_ms, _LEAST_MS) and old.all_waits > 0


def lock_waits(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause if sessions wait for each other's row or table locks."""
    for name, words in (
        ("enq: TX - row lock contention", "sessions wait for each other's row locks"),
        ("enq: TM - contention", "sessions wait for each other's table locks: foreign keys without an index, or DDL"),
    ):
        old, new = change.event(name)
        if not _waits_more(old, new):
            continue
        hot = change.hottest_segment("row_lock_waits")
        where = f"; most on {hot.name}" if hot is not None and "row" in words else ""
        said = f"sessions waiting {three_digits(old.ms / 1e3)} → {three_digits(new.ms / 1e3)} on average"
        said += f", waits {rate_change(old.waits, new.waits)}"
        yield Cause(words, said + where, change.waiting_statements("lock") or slower_at_same_work(change), weight=2.8)


def _waits_more(old: Event, new: Event) -> bool:
    return new.ms >= max(_LEAST_WAITING_MS, 3 * old.ms)


def space_waits(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause for each wait event in which sessions wait for free space in the log or the cache."""
    for name, words in _ROOM:
        old, new = change.event(name)
        if _waits_more(old, new):
            waited = f"{name} {three_digits(old.ms)} → {three_digits(new.ms)} ms a second"
            said = f"{waited}; redo {rate_change(*_redo_mb(change))} in MB"
            yield Cause(words, said, slower_at_same_work(change), weight=2.7)


def _redo_mb(change: OracleChange) -> tuple[float, float]:
    old, new = change.statistic("redo size")
    return old / 1e6, new / 1e6


def contention(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause for each wait event in which sessions compete for the same block, latch or cursor."""
    for name, words, counter in _CONTENTION:
        old, new = change.event(name)
        if _waits_more(old, new):
            hot = change.hottest_segment(counter) if counter else None
            said = f"{name} {three_digits(old.ms)} → {three_digits(new.ms)} ms a second" + (
                f"; most on {hot.name}" if hot else ""
            )
            yield Cause(words, said, slower_at_same_work(change), weight=2.4)


def busy_processors(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause if calls take longer for the same work without more CPU or waits: they waited for a processor.

    The time that is neither CPU nor a known wait also includes waits that the views do not count by statement: commits,
    and the network inside PL/SQL.
    """
    slow = frozenset(n for n in slower_at_same_work(change) if _unaccounted(change.statements[n]) >= 0.5)
    if len(slow) * 2 < sum(one.after.get("calls", 0) > 0 for one in change.statements.values()) or not slow:
        return  # calls of the other statements take as long as before
    lost = sum(_unaccounted(change.statements[n]) * change.statements[n].growth("ms") for n in slow)
    said = f"{three_digits(lost)} ms per second more that are neither CPU time nor waits of the statements"
    words = "calls take longer at the same work: processors are slower, or others use them"
    yield Cause(words, said, slow, weight=2.3)


def _unaccounted(pair: Pair) -> float:
    """Return the part of a statement's added time that is neither CPU nor a wait counted for the statement."""
    known = sum(max(pair.growth(name), 0.0) for name in ("cpu", "io", "lock", "concurrency"))
    return 1 - known / pair.growth("ms") if pair.growth("ms") > 0 else 0.0


def restarts(change: OracleChange) -> Iterator[Cause]:
    """Yield a restart as a cause, with the reads into the buffer cache, which was cold afterwards."""
    if not change.was_restarted:
        return
    colder = frozenset[Key](
        n for n, one in change.statements.items() if one.per_call("reads")[1] > one.per_call("reads")[0] + 0.1
    )
    words = "the instance was restarted" + (", its cache was cold" if colder else "")
    began = f"{change.after.after.facts.get('started')} by its own clock"
    yield Cause(words, f"physical reads {rate_change(*change.statistic('physical reads'))}", colder, began, weight=2.7)


def settings(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause for each parameter that changed."""
    for row in change.changed_settings():
        yield Cause(f"parameter {row['name']}: {row['old']} → {row['new']}", weight=0.4)


RULES = (slow_log, slow_reads, lock_waits, space_waits, contention, busy_processors, restarts, settings)
