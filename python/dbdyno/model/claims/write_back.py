"""N8: write-back compared with write-through under free buffer waits."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.model.claims.base import LOAD_CHOSEN, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench, Evidence
from dbdyno.model.claims.map import Map

MACHINE = "exadata-x3"
MODES = ("write-through", "write-back")
# A table of ten times as many blocks as buffers, and one of fewer blocks than buffers; both fit into the flash cache.
LARGE = {"kind": "update-loop", "blocks": 20_000}
SMALL = {"kind": "update-loop", "blocks": 1_000}
SESSIONS = 60
# The controllers' memory is reduced so that it is full after seconds instead of minutes: to a hundredth of a cell's
# part of the table. The larger it is, the more neighbours go to disk together.
STEADY = {"cells.controller.capacity_kb": "1024"}
BUFFERS = {"database.buffers.buffers": "2000"}
# Block writes per second and cell, flash relative to disk: the largest possible gain of the cells.
DEVICES = 20.8


def arms(work: dict[str, object]) -> list[Arm]:
    """Return one arm per mode of the flash cache, with the same load."""
    return [Arm(mode, work, SESSIONS, {**STEADY, **BUFFERS, "cells.flash_cache.mode": mode}) for mode in MODES]


def gain(evidence: Evidence) -> list[float]:
    """Return the throughput with write-back relative to write-through.

    Every session runs the same number of transactions, so this is the inverse ratio of their mean times.
    """
    return _gain(evidence, list(MODES))


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure the throughput gain with a table larger than the buffer cache and with one that fits into it."""
    share = "sum(elapsed_ns) filter (event = 'free buffer waits') / sum(elapsed_ns)"
    with bench.run(MACHINE, arms(LARGE), transactions=400, warmup=1_200) as evidence:
        waits = evidence.arm_values(share, "waits", MODES[0], "object = 'session'")
        large = gain(evidence)
    with bench.run(MACHINE, arms(SMALL), transactions=200) as evidence:
        small = gain(evidence)
    return [
        ClaimQuantity("free buffer waits' share of waits, write-through", waits, low=0.5),
        ClaimQuantity("throughput, write-back / write-through", large, 3, DEVICES),
        ClaimQuantity("the same where the table fits", small, 0.8, 1.25),
    ]


def _memory(curve: str, blocks: float) -> list[Arm]:
    """Return the arms of both modes on a table of this many blocks; `curve` begins with a controller's memory [MB]."""
    memory = {"cells.controller.capacity_kb": str(int(curve.partition(" ")[0]) << 10)}
    work = {**LARGE, "blocks": int(blocks)}
    return [replace(one, settings={**one.settings, **memory}) for one in arms(work)]


def _gain(evidence: Evidence, arms: list[str]) -> list[float]:
    return evidence.ratio("avg(elapsed_ns)", "calls", arms[0], arms[1], "kind = 'transaction'")


MAP = Map(
    quantity="throughput, write-back / write-through",
    parameter="blocks of the table (2,000 buffers)",
    levels=(1_000, 2_500, 5_000, 10_000, 20_000, 40_000, 80_000),
    curves=("1 MB a controller", "4 MB a controller", "16 MB a controller"),
    machine=MACHINE,
    arms=_memory,
    value=_gain,
    transactions=200,
    warmup=1_200,
    band=(3, DEVICES),
    published=(("the source", 4.0),),
)

CLAIM = Claim(
    "N8",
    "A write-back cache triples throughput where free buffer waits dominate, and no more elsewhere",
    "Harrison 2013 (E11): 4 times; bounded by the devices, 75,000 / 3,600 writes a second and cell",
    LOAD_CHOSEN,
    measure,
    (
        "The load was found by trial: it must be bound by writes. With a table of 200,000 blocks"
        " reads from disk dominate and there is no gain; with four times the controllers' memory disks write"
        " more neighbours together and the gain is 1.8. `dbdyno model map N8` draws the gain over both.",
    ),
)
