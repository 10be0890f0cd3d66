"""Study write-back-cache: when a flash cache that also holds writes helps.

A write-through cache sends each write to disk before it answers; a write-back cache answers from flash and writes to
disk later. Sessions wait for a database writer only indirectly, if no clean buffer is left (`free buffer waits`). The
study therefore has two loads: one whose blocks do not fit into the buffer cache, so that every change must wait until
another block is written, and one whose blocks fit, so that sessions wait for commits.

Everything is scaled down by the same factor, so that a cache is warm within seconds: 2,000 buffers, 16 MB of memory in
each cell's controller, a table of 40,000 blocks. The ratios matter: a table far larger than both, which the flash cache
holds completely.

Limits: on a model only; the only reads are those of the updates.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.plan.factors import Level, choose_levels, combine_levels, numbers
from dbdyno.study.plan.plan import Plan, Schedule, Workload
from dbdyno.study.plan.study import Factor, Study

SCALED = {"database.buffers.buffers": "2000", "cells.controller.capacity_kb": "16384"}
TABLES = {
    "large": Level("large table", parameters={"blocks": 40_000}),
    "small": Level("small table", parameters={"blocks": 1_000}),
}
MODES = {mode: Level(mode, {"cells.flash_cache.mode": mode}) for mode in ("write-through", "write-back")}


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    (sessions,) = numbers(options["sessions"], "sessions")[:1]
    tables = choose_levels(TABLES, options["table"], "table")
    modes = choose_levels(MODES, options["cache"], "cache")
    arms = combine_levels([Level("", SCALED)], tables, modes, within=True)
    return Plan(
        **STUDY.heading,
        arms=arms,
        workload=Workload(kind="update-loop", parameters={"blocks_per_commit": 4}),
        sessions=sessions,
        schedule=Schedule(blocks=3 if quick else 10, transactions=100 if quick else 150, warmup_transactions=500),
    )


STUDY = Study(
    name="write-back-cache",
    question="Does a write-back flash cache make updates faster, and when?",
    workload="Sessions change blocks at random and commit (update-loop). Arms: a write-through and "
    "a write-back cache, with a table far larger than the buffer cache, where free buffer waits "
    "dominate, and with one that fits into it, where they do not come up. Table, buffer cache and "
    "the memory of the cells' controllers are scaled down alike.",
    targets="models with storage cells: --target model:exadata-x2 by default",
    source="Guy Harrison, 2013: an update load with free buffer waits, with the flash cache in "
    "write-through and in write-back mode (E11)",
    found_there="Free buffer waits were gone with write-back, and throughput was 4 times as high; "
    "where other waits dominated, it was about the same.",
    factors=(
        Factor("cache", "modes of the flash cache, base first", "write-through,write-back"),
        Factor("table", "large: does not fit in the buffer cache; small: fits", "large,small"),
        Factor("sessions", "concurrent sessions", "80"),
    ),
    make=_plan,
    target="model:exadata-x2",
)
