"""Study key-lookup: cost of a lookup by key, depending on where the row is.

On PostgreSQL each place is a separate server: one whose shared_buffers hold the table; one with very small
shared_buffers, so that pages come from the file system's cache; and the same server started cold, so that pages come
from the storage. A cold turn has so few lookups that hardly any lookup finds a page that an earlier one read. The study
reports how much the sessions really read from the storage. Over modelled devices (`--target postgres+device:NAME`) the
places are disk and flash: cold servers with their data on one of them. On a model with storage cells the places are the
disks, the flash cache, and flash itself.

Limits: one table, together with its index; a cache below the file system (of a controller, or of the host of a virtual
machine) makes the storage look faster than its devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbdyno.bench.kinds import POSTGRES_ON_DEVICE
from dbdyno.study.library.data import TABLE, keyed_table, lookup_of, table_read_statements
from dbdyno.study.plan.factors import Level, choose_levels, combine_levels, curve_levels, one_number
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script, Server, Value, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target

SECOND = 1_000_000_000
"""Duration of lookups before a hot turn counts [ns]; by then its process has mapped the pages of shared memory."""
LARGE, SMALL = "large", "small"


def _places(options: Mapping[str, str]) -> dict[str, Level]:
    def server(size: str, name: str) -> Server:
        return Server(settings={"shared_buffers": options[size], "cluster_name": name, "autovacuum": "off"})

    return {
        "database": Level("database", server=server(LARGE, "database")),
        "filesystem": Level("filesystem", server=server(SMALL, "filesystem")),
        "storage": Level("storage", server=server(SMALL, "storage"), cold=True),
    }


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    rows = one_number(options["rows"], "rows")
    table = keyed_table(rows)
    places = choose_levels(_places(options), options["place"], "place")
    return Plan(
        **STUDY.heading,
        kind="sweep",
        factors=["place"],
        arms=combine_levels(curve_levels("place", places)),
        workload=Workload(
            scripts=[Script("lookup", lookup_of(TABLE))],
            variables={"rows": str(rows)},
            setup=[*table["setup"], *table_read_statements(TABLE)],
            teardown=table["teardown"],
        ),
        sessions=one_number(options["sessions"], "sessions"),
        schedule=Schedule(
            blocks=6 if quick else 15,
            warmup_blocks=1,
            turn_transactions=one_number(options["lookups"], "lookups"),
            settle_ns=300_000_000 if quick else SECOND,
        ),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="p50", threshold=0.05, equal_work=True),
    )


FEW = {"database.buffers.buffers": "200"}
"""Setting with too few buffers for lookups to find their blocks in the buffer cache."""
MODELLED = {
    "disk": Level("disk", {**FEW, "cells.flash_cache.mode": "none"}),
    "flash-cache": Level("flash-cache", FEW),
    "flash": Level("flash", {**FEW, "cells.groups.DATA.on": "flash"}),
}
MODEL = {"place": "disk,flash-cache,flash", "keys": "100000", "sessions": "1"}


def _on_model(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    keys: dict[str, Value] = {"keys": one_number(options["keys"], "keys")}
    plan = Plan(
        **STUDY.heading,
        kind="sweep",
        factors=["place"],
        arms=combine_levels(curve_levels("place", choose_levels(MODELLED, options["place"], "place"))),
        workload=Workload(kind="key-lookup", parameters=keys),
        sessions=one_number(options["sessions"], "sessions"),
        # Enough warm-up transactions that the flash cache holds most blocks before the measurement.
        schedule=Schedule(
            blocks=3 if quick else 10, transactions=1_000 if quick else 3_000, warmup_transactions=20_000
        ),
        judge=Judge(headline="mean"),
    )
    return plan_on_target(plan, target)


ON_PLACES = {"disk": "disk-15000", "flash": "flash-2011"}
"""Modelled device for the data, for each place of the model that such a device can represent."""
ON_DEVICE = {"place": "disk,flash", "rows": "50000", "lookups": "300", "sessions": "1", SMALL: "1MB"}


def _on_device(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    cold = _places({**options, LARGE: "32MB"})["storage"]
    levels = {name: replace(cold, name=name, device={"data": device}) for name, device in ON_PLACES.items()}
    plan = _plan({**options, LARGE: "32MB", "place": "storage"}, quick)
    arms = combine_levels(curve_levels("place", choose_levels(levels, options["place"], "place")))
    return plan_on_target(replace(plan, arms=arms, judge=replace(plan.judge, headline="mean")), target)


STUDY = Study(
    name="key-lookup",
    question="What does a lookup by key cost, depending on where the row is?",
    workload="Sessions look up rows of a table by random keys. On PostgreSQL the row is in shared_buffers, in the file "
    "system's cache, or on the storage; on a model on disk, in the cells' flash cache, or on flash.",
    targets="PostgreSQL: embedded servers that the study starts, on this host; and models with storage cells: "
    "--target model:exadata-x2, with the factors place=disk,flash-cache,flash, keys=100000 and sessions=1; and a real "
    "PostgreSQL over modelled devices: --target postgres+device:NAME, where NAME has the log, with place=disk,flash",
    source="Guy Harrison, 2011: 200,000 of 1,000,000 keys looked up on disk, with the flash cache, and on flash (E13)",
    found_there="Flash was faster than the flash cache, which was faster than disk.",
    factors=(
        Factor("place", "database, filesystem, storage", "database,filesystem,storage"),
        Factor("rows", "rows of the table, about 128 bytes each", "400000", full="1600000", quick="50000"),
        Factor("lookups", "lookups per turn; far fewer than the table's pages, so a cold turn stays cold", "300"),
        Factor("sessions", "concurrent sessions", "1"),
        Factor(LARGE, "shared_buffers four times as large as the table, or more", "256MB", full="1GB", quick="32MB"),
        Factor(SMALL, "shared_buffers that hold hardly any of the table", "1MB"),
    ),
    make=_plan,
    variants={"model": Variant(MODEL, _on_model), POSTGRES_ON_DEVICE: Variant(ON_DEVICE, _on_device)},
)
