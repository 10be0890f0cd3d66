"""Outstanding commands by layer: the demand on each layer, and the number that it lets through.

```text
 jobs -- host -- stripe -- LUN queues -- HBA -- channel -- array -- disks
```

Little's law is applied downwards: a limit of N outstanding commands lets N / R commands per second through, where R is
the time that a command spends in the layers below that limit. It is applied upwards, too: to keep parts busy that
complete X commands per second together, X x R commands have to be outstanding. In this second form, a cable and disks
are limits just as queues are. R is the time in an array without queueing: the figures are upper bounds of the rate, and
lower bounds of the number of outstanding commands.

Limits: the load is assumed to be spread evenly over the LUNs; a piece that crosses a stripe boundary is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.advise.stack.keys import PENALTY
from dbdyno.advise.stack.parts import Layer, Stack


@dataclass(frozen=True, slots=True)
class Demand:
    """Demand of the jobs: simultaneous requests, and the number of pieces of `piece_kb` into which each is divided."""

    requests: float
    pieces: int
    piece_kb: float
    luns: int

    @property
    def commands(self) -> float:
        """Return the number of simultaneous pieces."""
        return self.requests * self.pieces


def demand(stack: Stack) -> Demand:
    """Return the demand of the jobs, and the maximum number of LUNs that they use."""
    requests = stack.number("demand.jobs") * stack.number("demand.ios")
    whole = stack.number("demand.io_kb")
    piece = min(whole, stack.figures["stripe.stripe_kb"] or whole, stack.figures["host.max_io_kb"] or whole)
    pieces = math.ceil(whole / piece)
    striped = (stack.figures["stripe.luns"] or 1.0) * stack.number("demand.file_systems")
    return Demand(requests, pieces, piece, int(min(striped, requests * pieces)))


def disk_commands(stack: Stack) -> float:
    """Return the disk commands per command from the host: reads that miss the cache, writes with copies or parity."""
    writes, cached = stack.number("demand.write_share"), stack.number("array.cached_share")
    return (1 - writes) * (1 - cached) + writes * PENALTY[stack.words["disk.raid"]]


def latency_s(stack: Stack) -> float | None:
    """Return the time that a command spends in the array without queueing [s], or None if no time is described."""
    if not stack.has("disk.service_ms"):
        return stack.number("array.hit_ms") / 1e3 or None
    return (stack.number("array.hit_ms") + disk_commands(stack) * stack.number("disk.service_ms")) / 1e3


def layers(stack: Stack) -> list[Layer]:
    """Return the layers in the description, from the host down."""
    asked = demand(stack)
    seconds, passing = latency_s(stack), asked.commands
    found = []
    for name, what, each, count, limit, key in _limits(stack, asked, seconds):
        passes = min(passing, limit)
        rate = limit / seconds if seconds else None
        found.append(Layer(name, what, each, count, limit, passing, passes, key, rate))
        passing = passes
    return found


_Limit = tuple[str, str, float | None, int, float, str]


def _limits(stack: Stack, demand: Demand, seconds: float | None) -> Iterator[_Limit]:
    """Yield for each layer: name, description, limit of each part, number of parts used, total limit, key."""
    yield from _queue(stack, "host", "requests of the host", 1)
    yield from _queue(stack, "lun", "LUNs in use", demand.luns)
    if stack.has("hba.queue_limit"):
        yield from _queue(stack, "hba", "host bus adapters", int(stack.number("hba.count")))
    if stack.has("channel.count"):
        ports = min(int(stack.number("channel.count")), demand.luns)
        yield from _queue(stack, "channel", "ports", ports)
        if stack.has("channel.rate_mb_s") and seconds:
            each = stack.number("channel.rate_mb_s") * 1e6 / (demand.piece_kb * 1024) * seconds
            words = f"ports of {stack.number('channel.rate_mb_s'):g} MB/s"
            yield "cable", words, None, ports, each * ports, "channel.rate_mb_s"
    yield from _queue(stack, "array", "the array's queue", 1)
    if stack.has("disk.per_lun"):
        yield from _disks(stack, demand, seconds)


def _queue(stack: Stack, name: str, what: str, parts: int) -> Iterator[_Limit]:
    """Yield the limit of a queue if the description has it."""
    if stack.has(f"{name}.queue_limit"):
        each = stack.number(f"{name}.queue_limit")
        yield name, what, each, parts, each * parts, f"{name}.queue_limit"


def _disks(stack: Stack, demand: Demand, seconds: float | None) -> Iterator[_Limit]:
    """Yield the number of commands at the array's entry that keeps all disks under the used LUNs busy."""
    disks = int(demand.luns * stack.number("disk.per_lun"))
    if stack.has("disk.count"):
        disks = min(disks, int(stack.number("disk.count")))
    each = disk_commands(stack)
    if each > 0 and seconds:
        busy = disks / (each * stack.number("disk.service_ms") / 1e3) * seconds
        yield "disk", "disks below these LUNs", None, disks, busy, "disk.per_lun"
