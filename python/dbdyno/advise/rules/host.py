"""Rules on a Linux host: full device queues, dirty pages that take long to write, swapping, write barriers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import GIB, count, duration, size
from dbdyno.advise.host.parts import Device, Kernel, Mount
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

FULL = 0.8
FLUSH_S = 10.0
LEAST_DIRTY = 64 * 1024**2
"""Smallest limit of dirty pages that is advised [bytes]; with less, writes would no longer be merged."""
_VM = "/proc/sys/vm/"


def _queue(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield devices whose outstanding requests while busy reach the smaller of nr_requests and queue_depth."""
    for one in facts.rows_of(Device):
        limit, under_way = one.limit, one.under_way
        if limit is None or under_way is None or under_way < FULL * limit or one.reads + one.writes < 10_000:
            continue
        narrow = "queue/nr_requests" if limit == one.nr_requests else "device/queue_depth"
        mean_s = one.weighted_ms / 1e3 / (one.reads + one.writes)
        yield Advice(
            f"{one.name} had {count(under_way)} requests in progress or waiting while it was busy; its limit is "
            f"{limit}",
            (
                Evidence(
                    "under way or waiting", under_way, "number4", f"/sys/block/{one.name}/stat: field 11 / field 10"
                ),
                Evidence("limit", limit, "count", f"/sys/block/{one.name}/{narrow}"),
                Evidence("time of a request", mean_s * 1e9, "ns", f"/sys/block/{one.name}/stat: field 11 / requests"),
            ),
            f"a limit of {limit} and {duration(mean_s)} per request allow at most {count(limit / mean_s)} a second"
            " (Little's"
            " law); a higher limit helps only if parts of the device are idle",
            (f"echo {2 * limit} > /sys/block/{one.name}/{narrow}",),
            level="hint",
            subject=one.name,
        )


def _dirty(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if writing the allowed dirty pages takes long at the rate of the busiest device."""
    kernel = facts.row_of(Kernel)
    written = [one for one in facts.rows_of(Device) if one.written_bytes >= GIB and one.busy_ms]
    limit = kernel.values.get(_VM + "dirty_bytes", 0)
    ratio, free = kernel.values.get(_VM + "dirty_ratio"), kernel.values.get("/proc/meminfo:MemAvailable")
    place = _VM + "dirty_bytes"
    if not limit:
        if ratio is None or free is None:
            yield InsufficientEvidence("the limit of dirty pages cannot be read")
            return
        limit, place = free * ratio // 100, f"{_VM}dirty_ratio ({ratio}) of MemAvailable"
    if not written:
        yield InsufficientEvidence("less than 1 GB was written since the boot", "run the command again under load")
        return
    one = max(written, key=lambda each: each.written_bytes)
    rate = one.written_bytes / (one.busy_ms / 1e3)
    if limit <= LEAST_DIRTY or limit / rate < FLUSH_S:
        return
    yield Advice(
        f"{size(limit)} of dirty pages may be in memory; {one.name} wrote {size(rate)}/s while busy and needs "
        f"{duration(limit / rate)} for them",
        (
            Evidence("dirty pages at most", limit, "bytes", place),
            Evidence("written while busy", rate, "bytes_per_s", f"/sys/block/{one.name}/stat: field 7 / field 10"),
        ),
        f"a sync of a file may wait up to {duration(limit / rate)} behind pages of other files; the rate is the "
        "average since boot, and the device can do "
        f"at least that; PostgreSQL flushes its own pages early (checkpoint_flush_after)",
        (
            f"sysctl vm.dirty_bytes={max(int(rate * 2), LEAST_DIRTY)}",
            f"sysctl vm.dirty_background_bytes={max(int(rate / 2), LEAST_DIRTY // 4)}",
        ),
        level="hint",
        subject="dirty_bytes",
    )


def _find_swapping(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if pages were swapped in at a rate of one per second or more since boot."""
    kernel = facts.row_of(Kernel)
    pages = kernel.values.get("/proc/vmstat:pswpin")
    if pages is None or not kernel.uptime_s:
        yield InsufficientEvidence("pages swapped in cannot be read")
        return
    if pages / kernel.uptime_s < 1:
        return
    yield Advice(
        f"{count(pages / kernel.uptime_s)} pages a second were swapped in since the boot",
        (
            Evidence("pages swapped in", pages, "count", "/proc/vmstat: pswpin"),
            Evidence("swappiness", kernel.values.get(_VM + "swappiness"), "count", _VM + "swappiness"),
        ),
        "the time of that many reads from the swap device, each of which delays a process",
        ("first reduce the memory for caches or sessions", "sysctl vm.swappiness=1"),
        subject="swap",
    )


def _compaction(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding about stalls of processes that had to compact memory for huge pages."""
    kernel = facts.row_of(Kernel)
    stalls, word = kernel.values.get("/proc/vmstat:compact_stall"), next(iter(kernel.words.values()))
    if stalls is None or not kernel.uptime_s or not word:
        yield InsufficientEvidence("transparent huge pages or their stalls cannot be read")
        return
    if word != "always" or stalls / kernel.uptime_s < 1:
        return
    yield Advice(
        f"transparent huge pages are on for all memory, and processes stalled {count(stalls / kernel.uptime_s)} times a"
        " second to compact it",
        (
            Evidence("transparent huge pages", word, "text", "/sys/kernel/mm/transparent_hugepage/enabled"),
            Evidence("stalls since the boot", stalls, "count", "/proc/vmstat: compact_stall"),
        ),
        "no such stalls; the counter does not say how long they lasted; the setting huge_pages is independent of this",
        ("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",),
        subject="transparent_hugepage",
    )


def _zone_reclaim(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if memory of the local NUMA node is reclaimed although another node may have free memory."""
    kernel = facts.row_of(Kernel)
    done = sum(kernel.values.get(f"/proc/vmstat:zone_reclaim_{one}", 0) for one in ("success", "failed"))
    if kernel.nodes < 2 or not kernel.values.get(_VM + "zone_reclaim_mode") or not done:
        return
    yield Advice(
        f"caches of a NUMA node were dropped {count(done)} times, although others of the {kernel.nodes} "
        f"nodes may have had free memory",
        (
            Evidence("zone_reclaim_mode", kernel.values[_VM + "zone_reclaim_mode"], "count", _VM + "zone_reclaim_mode"),
            Evidence("reclaims since the boot", done, "count", "/proc/vmstat: zone_reclaim_*"),
            Evidence("NUMA nodes", kernel.nodes, "count", "/sys/devices/system/node"),
        ),
        "repeated reads of pages that would have stayed in the page cache",
        ("sysctl vm.zone_reclaim_mode=0",),
        subject="zone_reclaim_mode",
    )


def _barriers(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield file systems mounted without barriers on a device with a volatile write cache."""
    caches = {one.name: one.write_cache for one in facts.rows_of(Device)}
    for one in facts.rows_of(Mount):
        off = next((each for each in one.options if each in ("nobarrier", "barrier=0")), None)
        if off is None or caches.get(one.device) != "write back":
            continue
        yield Advice(
            f"{one.folder} is mounted with {off} on {one.device}, whose write cache is volatile",
            (
                Evidence("mount option", off, "text", f"/proc/mounts: {one.folder}"),
                Evidence("write cache", "write back", "text", f"/sys/block/{one.device}/queue/write_cache"),
            ),
            "no time: after a power loss, acknowledged commits can be missing and the file system can be corrupt",
            (f"mount -o remount,barrier {one.folder}",),
            level="critical",
            subject=one.folder,
        )


def _rule(
    name: str, reads: tuple[type, ...], judge: Callable[[Facts], Iterator[Advice | InsufficientEvidence]], *words: str
) -> Rule:
    title, condition, expects, risk, refuted = words
    source = "kernel documentation: queue-sysfs, block stat, sysctl vm, transhuge (2025)"
    return Rule(name, "host", title, reads, condition, expects, risk, source, refuted, judge)


RULES = (
    _rule(
        "device_queue",
        (Device,),
        _queue,
        "A device queue that is full while the device is busy",
        "while the device was busy, the mean number of requests in progress or waiting was 80 % or more of the smaller "
        "of nr_requests and queue_depth",
        "more requests a second if parts of the device are idle; otherwise only longer queues in the device",
        "a deeper queue makes single reads and syncs wait longer",
        "iostat shows the same rate with the deeper queue",
    ),
    _rule(
        "dirty_pages",
        (Kernel, Device),
        _dirty,
        "Dirty pages that take long to write",
        "the limit for dirty pages is over 64 MB, and writing them takes 10 s or longer at the rate of the busiest "
        "device",
        "shorter sync stalls at checkpoints and copies; the number of writes stays the same or grows",
        "fewer writes to the same page are merged",
        "the longest sync under load is as long with the lower limit",
    ),
    _rule(
        "swapping",
        (Kernel,),
        _find_swapping,
        "Pages that are swapped in",
        "one page a second or more was swapped in since the boot",
        "the time of these reads",
        "without swap, the kernel kills processes when memory is exhausted",
        "pswpin does not rise under load, so swapping has ended",
    ),
    _rule(
        "compaction",
        (Kernel,),
        _compaction,
        "Stalls caused by transparent huge pages",
        "transparent huge pages are always on, and there was one stall a second or more since the boot",
        "the time of the stalls",
        "programs that gain from huge pages but do not request them become slower",
        "compact_stall rises as fast with madvise",
    ),
    _rule(
        "zone_reclaim",
        (Kernel,),
        _zone_reclaim,
        "Discarded caches of a NUMA node",
        "zone_reclaim_mode is not 0, there are two or more NUMA nodes, and reclaims were counted",
        "reads from devices",
        "more accesses to the memory of the other NUMA node",
        "the reclaim counters do not rise under load",
    ),
    _rule(
        "barriers",
        (Mount, Device),
        _barriers,
        "No barriers on a volatile write cache",
        "a file system is mounted with nobarrier or barrier=0 on a device whose write_cache is write back",
        "safety, not time",
        "commits wait for a flush of the device",
        "the cache has a battery although the device reports write back",
    ),
)
