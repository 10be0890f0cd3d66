"""Causes behind the events of a difference: a missing index, a cold cache, a lock, a device.

Each rule examines the counters of the slower and the faster arm, and says which kinds of events it explains. The first
rule that applies to a kind explains it; an event that no rule explains is a cause by itself. The sentences name the
arms instead of saying "before" or "after", because the slower arm may be the base.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dbdyno.stats.wording import size
from dbdyno.study.analysis.explanation import work
from dbdyno.study.analysis.explanation.formatting import duration, number
from dbdyno.study.analysis.explanation.pair import Pair, Reason, Station, ratio_of
from dbdyno.study.analysis.explanation.parts import CPU, READY, Event
from dbdyno.study.analysis.explanation.work import MORE, PLAUSIBLE, READ_NS

COLDER = 1.5
LEAST_READ = 0.02
"""Smallest number of additional blocks per transaction, read from outside shared_buffers, for a cold cache."""
PAGE_BYTES = 8192
WRITTEN_BEFORE = 0.5
"""Number of additional writes per additional read above which sessions may be reading their own writes."""
STORM = 3.0
FULL_PAGES = 1.5
BUSY = 0.2
"""Share of time in checkpoint writes (with pauses) and syncs above which sessions are assumed to wait for them."""
OTHERS_LEAST = 0.3
"""Number of processors that other processes must use to be mentioned."""


_OWN_WORKERS = re.compile(
    r"MessageQueue|ExecuteGather|Parallel(Finish|BitmapScan|CreateIndexScan)|Hash(/|Build|Batch|Grow)|AppendReady"
    r"|BtreePage|Bg[Ww]orker(Startup|Shutdown)"
)


def kind_of(event: Event) -> str:
    """Return the kind of an event for the rules: its class, or "CPU", "ready" or "workers".

    "ready" is time spent waiting for a processor; "workers" is time that a session waits for its own parallel workers.
    """
    if event[0] == "other" and _OWN_WORKERS.match(event[1]):
        return "workers"
    return "ready" if event == READY else "CPU" if event == CPU else event[0]


WORK = frozenset({"CPU", "ready", "data read", "latch", "workers"})
LOG = frozenset({"commit", "log write", "data write", "latch", "CPU", "ready", "data read"})


def reasons(pair: Pair) -> list[tuple[frozenset[str], Reason]]:
    """Return the reasons that apply, the most direct first, each with the kinds of events that it explains."""
    found = []
    for kinds, rule in _RULES:
        one = rule(pair)
        if one is not None:
            found.append((kinds, one))
    return found


def _checkpoints(pair: Pair) -> Reason | None:
    if pair.counts is None:
        return None
    rates = tuple(
        (one.per_transaction("checkpoints") or 0.0) * one.count / one.seconds if one.seconds else 0.0
        for one in pair.counts
    )
    if rates[0] * pair.counts[0].seconds < 2 or ratio_of(*rates) < STORM:
        return None
    found = f"checkpoints follow each other with {pair.slow}: one every {_interval_text(rates[0])}"
    found += f" ({pair.fast}: {_interval_text(rates[1])})"
    busy = tuple(
        (one.per_transaction("checkpoint_ns") or 0.0) * one.count / one.seconds / 1e9 if one.seconds else 0.0
        for one in pair.counts
    )
    pages, wal = pair.values("full_pages"), pair.values("wal_bytes")
    if pages is None or ratio_of(*pages) < FULL_PAGES:
        if busy[0] < BUSY or ratio_of(*busy) < STORM:
            return None
        place = f"of the time a checkpoint writes or syncs {busy[0]:.0%} instead of {busy[1]:.0%}"
        return Reason(
            "checkpoint",
            "checkpoints",
            f"{found}, and their writes and syncs delay those of the sessions",
            (f"{place} (metrics: checkpoint write and sync time)",),
        )
    written = f", {size(wal[0])} of WAL instead of {size(wal[1])}" if wal else ""
    return Reason(
        "checkpoint",
        "checkpoints",
        f"{found}; after each, full pages are written to the WAL",
        (
            f"a transaction: {number(pages[0])} full-page images instead of {number(pages[1])}{written}"
            " (metrics: checkpoint counters, pg_stat_wal)",
        ),
    )


def _interval_text(rate: float) -> str:
    return f"{1 / rate:.3g} s" if rate else "none"


def _spill(pair: Pair) -> Reason | None:
    """Return a reason if sessions read files that they just wrote: sorts, hashes or cursors exceeded their memory.

    Counters of temporary files, or waits for them, prove such a spill. Without either, the reason only says that
    sessions read back what they write.
    """
    reads, writes, temp = pair.file_reads, pair.file_writes, pair.values("temp_bytes")
    if temp is None and (reads is None or writes is None):
        return None
    calls = (temp[0] - temp[1]) / PAGE_BYTES if temp else 0.0
    if reads and writes:
        again = min(reads[0] - reads[1], (writes[0] - writes[1]) / WRITTEN_BEFORE)
        calls = again if temp is None or calls >= WRITTEN_BEFORE * again else 0.0
    if calls < max(LEAST_READ, PLAUSIBLE * pair.amount_ns / READ_NS):
        return None
    said, place = [], []
    if reads and writes:
        said = [
            f"reads files {number(reads[0])} times and writes them {number(writes[0])} times, instead of"
            f" {number(reads[1])} and {number(writes[1])}"
        ]
        place = ["read and write calls of the sessions' processes"]
    if temp:
        said += [f"{'and ' if said else ''}uses {size(temp[0])} of temporary files instead of {size(temp[1])}"]
        place += ["metrics: pg_stat_database, temp_bytes"]
    if temp or pair.spills:
        words = f"sorts or hashes spill to temporary files with {pair.slow}: a transaction {', '.join(said)}"
        return Reason("spill", "temporary files", words, (", ".join(place),))
    words = f"sessions read back what they write with {pair.slow} (temporary files, or pages that a small cache pushes"
    return Reason("files", "files", f"{words} out): a transaction {', '.join(said)}", (", ".join(place),))


def _cache(pair: Pair) -> Reason | None:
    """Return a reason if the same blocks are touched, but more of them are read from outside shared_buffers.

    If the host reports the reads of the sessions' processes, these are used, because a session publishes its counters
    late. Otherwise the server's counters are used.
    """
    reads, blocks = pair.file_reads or pair.values("blocks_read"), pair.values("blocks")
    if reads is None or ratio_of(*reads) < COLDER:
        return None
    if reads[0] - reads[1] < max(LEAST_READ, PLAUSIBLE * pair.amount_ns / READ_NS):
        return None
    of = f" of {number(max(blocks[0], reads[0]))}" if blocks else ""
    place = "read calls of the sessions' processes"
    if not pair.file_reads and pair.counts is not None:
        place = pair.counts[0].sources("blocks_read", "blocks_hit")
    return Reason(
        "cache",
        "shared_buffers",
        f"the cache is colder with {pair.slow}: a transaction reads {number(reads[0])} blocks{of} from outside of it,"
        f" instead of {number(reads[1])}",
        (place,),
    )


def _slow_reads(pair: Pair) -> Reason | None:
    """Return a reason if both arms do about as many reads, but each read takes longer in the slower arm."""
    reads, spent = pair.values("blocks_read"), pair.values("read_ns")
    if reads is None or spent is None or min(*reads, *spent) <= 0 or ratio_of(*reads) >= COLDER:
        return None
    each = spent[0] / reads[0], spent[1] / reads[1]
    if ratio_of(*each) < COLDER:
        return None
    return Reason(
        "device",
        "reads",
        f"a read takes {duration(each[0])} with {pair.slow} instead of {duration(each[1])}",
        ("metrics: pg_stat_database, blk_read_time and blks_read",),
    )


def _station(pair: Pair) -> Reason | None:
    """Return a reason if requests to a model's device took longer, or if the arms use different devices."""
    slow, fast = pair.stations
    nothing = Station(0.0, 0.0)
    more = {
        name: one.requests * one.each_ns - fast.get(name, nothing).requests * fast.get(name, nothing).each_ns
        for name, one in slow.items()
    }
    name = max(more, key=lambda each: more[each], default="")
    if not name or more[name] <= 0:
        return None
    now, then = slow[name], fast.get(name)
    if then is not None and ratio_of(now.each_ns, then.each_ns) < MORE:
        return None
    gone = max((each for each in fast if each not in slow), key=lambda each: fast[each].requests, default="")
    if then is not None:
        words = f"a request to {name} takes {duration(now.each_ns)} with {pair.slow} instead of"
        words += f" {duration(then.each_ns)}"
    else:
        instead = f" instead of {gone} ({duration(fast[gone].each_ns)} a request)" if gone else ""
        words = f"{pair.slow} waits for {name} ({duration(now.each_ns)} a request){instead}"
    return Reason("device", name, words, (f"{now.requests:.3g} requests a transaction (metrics: stations, {name})",))


def _processor(pair: Pair) -> Reason | None:
    """Return a reason if sessions were ready to run while other processes used the host's CPU."""
    if pair.cpu is None or pair.counts is None:
        return None
    others = [
        max(one.busy_ns - used, 0) * one.count / one.seconds / 1e9 if one.busy_ns and one.seconds else 0.0
        for one, used in zip(pair.counts, pair.cpu, strict=True)
    ]
    if others[0] < OTHERS_LEAST:
        return None
    return Reason(
        "processor",
        "processor",
        f"sessions are ready to run and wait for a processor with {pair.slow}",
        (
            f"its own CPU per transaction: {duration(pair.cpu[0])} instead of {duration(pair.cpu[1])}; others on"
            f" this host used {others[0]:.2g} processors instead of {others[1]:.2g} (metrics: /proc/stat)",
        ),
    )


_RULES: tuple[tuple[frozenset[str], Callable[[Pair], Reason | None]], ...] = (
    (WORK, work.index_reason),
    (WORK, work.growth_reason),
    (WORK, work.plan_reason),
    (WORK, work.work_reason),
    (LOG, _checkpoints),
    (WORK - {"latch"} | {"data write"}, _spill),
    (WORK - {"latch"}, _cache),
    (frozenset({"data read", "workers"}), _slow_reads),
    (frozenset({"ready", "workers"}), _processor),
    (frozenset({"commit", "log write", "data read", "data write", "free buffer"}), _station),
)
