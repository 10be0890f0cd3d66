"""Study temp-device: effect of the device for temporary files, and of the memory for a sort.

Sorts that do not fit into work_mem write sorted runs to temporary files and read them again. Each place is a folder in
which the study creates a separate server, so that its temporary files are there; or, with an existing server
(--target), the name of a tablespace for temp_tablespaces. If work_mem is large enough nothing is written, and the
places are alike: that end of the curve verifies the rest.

Over modelled devices (`--target postgres+device:NAME`) a place is the device that holds the data and the temporary
files. The kernel does not cache it (`direct_io`), so that each read and write reaches the device. A model sorts on the
device `storage.temp` of its machine.

On MariaDB (`--target mariadb`) a place is a folder for `tmpdir`, with which the embedded server is restarted between
blocks, and the memory is `sort_buffer_size`.

Limits: the kernel keeps recently written data in memory as long as there is room, so a slow device is visible only with
sorts larger than free memory, or if its writers are throttled. The study reports the bytes that were written to the
storage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from dbdyno.bench.kinds import POSTGRES_ON_DEVICE
from dbdyno.study.library.data import ROW_BYTES, TABLE, WorkloadSetup, keyed_table, mariadb_table
from dbdyno.study.plan.factors import Level, combine_levels, curve_levels, one_number, option_values
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script, Server, Value, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target
from dbdyno.study.plan.typed_workloads import size_bytes

SORT = f"select max(place) from (select row_number() over (order by filler) as place from {TABLE}) sorted;\n"  # noqa: S608
PLAIN = {"max_parallel_workers_per_gather": "0", "autovacuum": "off"}
DEFAULT = ("/var/tmp", "/dev/shm")  # noqa: S108


def _place(name: str) -> Level:
    """Return the level of a place: a folder for a server, or a tablespace of the server that --target names."""
    if "/" in name:
        return Level(name, server=Server(workdir=name, settings=PLAIN))
    return Level(name, {"temp_tablespaces": name})


MARIADB = {"place": "auto", "sort_buffer_size": "64K,1M,64M", "rows": "100000", "sessions": "1"}


def _places(options: Mapping[str, str]) -> list[str]:
    here = ",".join(place for place in DEFAULT if os.access(place, os.W_OK))
    return option_values(here if options["place"] == "auto" else options["place"], "place")


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    places = [_place(name) for name in _places(options)]
    return _make_plan(options, quick, "work_mem", places, keyed_table)


def _on_mariadb(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    places = [Level(name, {"tmpdir": name}) for name in _places(options)]
    return plan_on_target(_make_plan(options, quick, "sort_buffer_size", places, mariadb_table), target)


ON_DEVICE = {"place": "disk-15000-cache,flash-2011", "work_mem": "64kB,1MB,64MB", "rows": "10000", "sessions": "1"}


def _on_device(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    server = Server(settings=PLAIN)
    names = option_values(options["place"], "place")
    places = [Level(name, server=server, device={"data": name, "data.direct_io": "on"}) for name in names]
    return plan_on_target(_make_plan(options, quick, "work_mem", places, keyed_table), target)


MODEL = {"place": "log_sas,log_flash", "work_mem": "64kB,1MB,64MB", "rows": "10000", "sessions": "1"}


def _on_model(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    """Return the plan for a model: sorts of the same number of bytes, in sort areas as large as work_mem."""
    places = [Level(name, {"storage.temp": name}) for name in option_values(options["place"], "place")]
    sorts: dict[str, Value] = {"bytes": one_number(options["rows"], "rows") * ROW_BYTES}
    plan = _make_plan(options, quick, "work_mem", places, keyed_table)
    arms = [
        replace(
            arm, settings={"storage.temp": arm.levels["place"]}, parameters={"area_kb": _kb(arm.levels["work_mem"])}
        )
        for arm in plan.arms
    ]
    schedule = replace(plan.schedule, blocks=3 if quick else 10, transactions=20, warmup_transactions=2)
    return plan_on_target(
        replace(plan, arms=arms, workload=Workload(kind="sort", parameters=sorts), schedule=schedule), target
    )


def _kb(work_mem: str) -> int:
    """Return the kilobytes of a value of work_mem such as 64kB or 1MB."""
    return max(1, size_bytes(work_mem.replace("B", "iB")) // 1024)


def _make_plan(
    options: Mapping[str, str], quick: bool, memory: str, places: list[Level], table: Callable[[int], WorkloadSetup]
) -> Plan:
    sizes = [Level(size, {memory: size}) for size in option_values(options[memory], memory)]
    return Plan(
        **STUDY.heading,
        kind="sweep",
        factors=[memory, "place"],
        arms=combine_levels(curve_levels(memory, sizes), curve_levels("place", places), within=True),
        workload=Workload(scripts=[Script("sort", SORT)], **table(one_number(options["rows"], "rows"))),
        sessions=one_number(options["sessions"], "sessions"),
        schedule=Schedule(blocks=6 if quick else 12, warmup_blocks=1, turn_ns=300_000_000 if quick else None),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean", threshold=0.05, equal_work=True),
    )


STUDY = Study(
    name="temp-device",
    question="Does it matter where temporary files lie, and how much memory a sort has?",
    workload="Sessions sort a table by a column of 64 letters, with work_mem from a few kB to more than the sort "
    "needs, on servers in folders of different devices.",
    targets="PostgreSQL: embedded servers that the study starts in the folders; or one named by --target with the "
    "names of its tablespaces: --set place=fast,slow. MariaDB: --target mariadb, embedded only. A real PostgreSQL over "
    "modelled devices: --target postgres+device:NAME, where NAME carries the log, with the factor "
    "place=disk-15000-cache,flash-2011; and models: --target model:sas-and-flash, with place=log_sas,log_flash",
    source="Guy Harrison: temporary tablespace on disk and on flash, over the sizes of the sort area (E14)",
    found_there="A gain on a PCI flash card, slightly worse on the flash of a storage cell; read times peaked at 600 "
    "to 1,000 us.",
    factors=(
        Factor("place", "folders or tablespaces; auto: /var/tmp and, where it is there, /dev/shm (memory)", "auto"),
        Factor("work_mem", "memory of a sort", "64kB,1MB,64MB", quick="64kB,32MB", full="64kB,1MB,16MB,1GB"),
        Factor("rows", "rows to sort, about 128 bytes each", "100000", full="4000000", quick="30000"),
        Factor("sessions", "concurrent sessions", "1"),
    ),
    make=_plan,
    variants={
        "mariadb": Variant(MARIADB, _on_mariadb),
        "model": Variant(MODEL, _on_model),
        POSTGRES_ON_DEVICE: Variant(ON_DEVICE, _on_device),
    },
)
