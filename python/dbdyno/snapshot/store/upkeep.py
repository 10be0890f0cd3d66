"""Upkeep of a store while snapshots are taken, so that nobody waits for it later: packs, and sums of hours and days."""

from __future__ import annotations

import contextlib

from dbdyno.base.errors import Error
from dbdyno.snapshot.reading.days import cache_days
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.sums.chain import Chain
from dbdyno.snapshot.reading.sums.index import snapshots_in_range
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.pack import GROUP, pack_full

HOUR_NS = 3600 * 10**9
DAY_NS = 24 * HOUR_NS
HOURS_MOST = 3
"""Largest number of missing hourly sums computed at once, so that taking snapshots soon continues."""


def tidy_when_due(store: Store, snapshot: Snapshot) -> None:
    """Pack once per `GROUP` numbers, and cache the sums of an hour or a day when the next one has begun.

    Raises:
        SnapshotError: A pack cannot be made; the snapshot itself is safe.
    """
    before = next((one for one in store.backwards(snapshot.target) if one.number < snapshot.number), None)
    if before is None:
        return
    if before.number // GROUP != snapshot.number // GROUP:  # another target may have the exact number
        pack_full(store, snapshot.target, group=GROUP)
    if before.at_ns // HOUR_NS != snapshot.at_ns // HOUR_NS:
        with contextlib.suppress(Error, OSError):  # the first report computes what is missing
            cache_sums(store, snapshot)
            if before.at_ns // DAY_NS != snapshot.at_ns // DAY_NS:
                cache_day(store, before, snapshot)


def cache_sums(store: Store, last: Snapshot) -> int:
    """Cache the sums of the latest complete hours without cached sums, and return their number."""
    own = Store(store.folder)  # its cache of all snapshots is freed with it
    known = snapshots_in_range(own, last.target, 0, last.number)
    if len(known) < 2:
        return 0
    recent = [one for one in known if one.at_ns // HOUR_NS >= last.at_ns // HOUR_NS - HOURS_MOST]
    first = known[max(len(known) - len(recent) - 1, 0)]
    sums = Chain(own, [first, known[-1]], Interval)
    made = 0
    try:
        for chunk in sums.chunks[:-1] if sums.is_cached else ():
            if not chunk.is_cached:
                made += bool(chunk.model)
    finally:
        sums.close()
    return made


def cache_day(store: Store, before: Snapshot, last: Snapshot) -> int:
    """Cache the sums of the day that ended with the snapshot before the last one, and return the number of days."""
    own = Store(store.folder)
    known = snapshots_in_range(own, last.target, 0, last.number)
    earlier = [one for one in known if one.at_ns // DAY_NS < before.at_ns // DAY_NS]
    sums = Chain(own, [(earlier or known)[-1 if earlier else 0], known[-1]], Interval)
    try:
        return sum(1 for _ in cache_days(sums))
    finally:
        sums.close()
