"""Rules that find causes in the MariaDB server itself: locks, a restart, the buffer pool, the redo log, settings."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Key
from dbdyno.snapshot.causes.mariadb.reading import MariadbChange
from dbdyno.snapshot.causes.statements import slower_at_same_work
from dbdyno.snapshot.engines.mariadb.sampler import ACTIVITY
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.reading.ends import relation
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.wording import rate_change, setting_change, three_digits

_LEAST_READS = 10.0
"""Number of pages read into the buffer pool per second below which the buffer pool is not reported as a cause."""
_WAITS = "(event_type = 'lock' or event like 'Waiting for % lock')"


def lock_waits(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause if sessions wait for each other's locks: row locks from status counters, all locks from samples."""
    old, new = (ms / 1000 for ms in change.status("innodb_row_lock_time"))
    (seen_old, _), (seen, waiting) = _sampled(change.before), _sampled(change.after)
    of_rows = new >= 0.3 and new >= 3 * old
    if not of_rows and not (seen >= 0.3 and seen >= 3 * seen_old):
        return
    if of_rows:
        waits = rate_change(*change.status("innodb_row_lock_waits"))
        evidence = (
            f"sessions waiting for a row lock {three_digits(old)} → {three_digits(new)} on average; waits {waits}"
        )
    else:
        evidence = f"sessions waiting for a lock {seen_old:.2g} → {seen:.2g} on average, as sampled"
    yield Cause("sessions wait for each other's locks", evidence, waiting or slower_at_same_work(change), weight=2.8)


def _sampled(interval: Interval) -> tuple[float, frozenset[Key]]:
    """Return the average number of sessions waiting for a lock, and their statements if the server reports them."""
    source, looks = interval.samples("activity", ACTIVITY)
    if not looks:
        return 0.0, frozenset()
    rows = interval.query(
        f"select statement, count(*) as n from {source}"
        f" where state = 'active' and {_WAITS} and {interval.inside} group by 1"
    )
    return sum(row["n"] for row in rows) / looks, frozenset(row["statement"] for row in rows if row["statement"])


def restarts(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause for a restart, with the reads into the buffer pool, which was cold afterwards.

    The reads are counted from the restart, when the counters began at zero, to the first snapshot after it.
    """
    if not change.was_restarted:
        return
    first = next(
        one
        for one in (*change.before.chain, *change.after.chain)
        if change.was_started_between(change.before.before, one)
    )
    rows = change.before.query(
        f"select value from {relation(first, 'global_status')} where name = 'innodb_buffer_pool_reads'"
    )
    read = float(rows[0]["value"]) / max(float(first.facts.get("uptime_s") or 0), 1.0) if rows else 0.0
    old = change.status("innodb_buffer_pool_reads")[0]
    cold = read >= _LEAST_READS and read >= 2 * old
    words = "the server was restarted" + (", its buffer pool was cold" if cold else "")
    slow = slower_at_same_work(change) if cold else frozenset[Key]()
    when = instant_text(int(change.after.after.facts["started_us"]))
    yield Cause(words, f"pages read {three_digits(old)} → {three_digits(read)} per second", slow, when, weight=2.7)


def buffer_pool(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause if the buffer pool no longer holds the pages read: the pool shrank, or more pages are read."""
    reads = change.status("innodb_buffer_pool_reads")
    asked = change.status("innodb_buffer_pool_read_requests")
    missed = [min(read / every, 1.0) if every else 0.0 for read, every in zip(reads, asked, strict=True)]
    if reads[1] < max(_LEAST_READS, 3 * reads[0]) or missed[1] < 2 * missed[0]:
        return
    size = change.setting("innodb_buffer_pool_size")
    smaller = None not in size and float(size[1] or 0) < float(size[0] or 0)
    if change.was_restarted and not smaller:
        return
    words = "the buffer pool no longer holds the data that is read"
    if smaller:
        mib = [f"{float(one or 0) / 2**20:.3g}" for one in size]
        words = f"the buffer pool was reduced, {mib[0]} → {mib[1]} MiB, and no longer holds what is read"
    yield Cause(
        words,
        f"pages read {rate_change(*reads)}, {missed[0]:.2%} → {missed[1]:.2%} of those requested",
        slower_at_same_work(change),
        weight=2.75 if smaller else 1.7,
    )


def redo_log(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause if sessions wait for room in the redo log's buffer or for a free page in the buffer pool."""
    for name, words in (
        ("innodb_log_waits", "the buffer of the redo log is full: innodb_log_buffer_size"),
        ("innodb_buffer_pool_wait_free", "sessions wait for free pages of the buffer pool"),
    ):
        old, new = change.status(name)
        if new >= 1 and new >= 3 * old:
            yield Cause(words, f"waits {rate_change(old, new)}", slower_at_same_work(change), weight=1.6)


def settings(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause for each setting that changed."""
    for row in change.changed_settings():
        yield Cause("setting " + setting_change(row["name"], row["old"], row["new"]), weight=0.4)


RULES = (lock_waits, restarts, buffer_pool, redo_log, settings)
