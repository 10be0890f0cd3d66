"""Study write-back-cache: when does a flash cache that keeps writes help?

A write-through cache sends each write to disk before it answers; a write-back cache answers from
flash and writes to disk later. A database writer waits for neither directly: sessions do, when no
clean buffer is left (`free buffer waits`). So the study has two loads: one whose blocks do not fit
into the buffer cache, so that every change must wait until another block is written, and one whose
blocks do, so that commits are what sessions wait for.

Limits: on a model only; no reads beside the updates' own.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.factors import Level, chosen, combined, numbers
from dbdyno.study.plan import Plan, Schedule, Workload
from dbdyno.study.study import Factor, Study

BUFFERS = "20000"
TABLES = {
    "large": Level("large table", parameters={"blocks": 1_000_000}),
    "small": Level("small table", parameters={"blocks": 10_000}),
}
MODES = {
    mode: Level(mode, {"cells.flash_cache.mode": mode}) for mode in ("write-through", "write-back")
}


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    (sessions,) = numbers(options["sessions"], "sessions")[:1]
    tables = chosen(TABLES, options["table"], "table")
    modes = chosen(MODES, options["cache"], "cache")
    arms = combined([Level("", {"database.buffers.buffers": options["buffers"]})], tables, modes,
                    within=True)  # fmt: skip
    return Plan(
        title="write-back-cache",
        question=STUDY.question,
        study="write-back-cache",
        arms=arms,
        workload=Workload(kind="update-loop", parameters={"blocks_per_commit": 4}),
        sessions=sessions,
        schedule=Schedule(
            blocks=5 if quick else 12,
            transactions=200 if quick else 1_000,
            warmup_transactions=200 if quick else 500,
        ),
    )


STUDY = Study(
    name="write-back-cache",
    question="Does a write-back flash cache make updates faster, and when?",
    workload="Sessions change blocks at random and commit (update-loop). Arms: a write-through and "
    "a write-back cache, with a table far larger than the buffer cache, where free buffer waits "
    "dominate, and with one that fits into it, where they do not come up.",
    targets="models with storage cells: --target model:exadata-x2 by default",
    source="Guy Harrison, 2013: a load of updates under free buffer waits, with the flash cache in "
    "write-through and in write-back mode (E11)",
    found_there="Free buffer waits were gone with write-back, and throughput was 4 times as high; "
    "where other waits dominated, it was about the same.",
    factors=(
        Factor("cache", "modes of the flash cache, base first", "write-through,write-back"),
        Factor("table", "large: does not fit into the buffer cache; small: does", "large,small"),
        Factor("sessions", "concurrent sessions", "40"),
        Factor("buffers", "buffers of the database", BUFFERS),
    ),
    make=_plan,
    target="model:exadata-x2",
)
