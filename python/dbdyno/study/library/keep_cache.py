"""Study keep-cache: effect of CELL_FLASH_CACHE KEEP on the first scan of a table and on later ones.

By default large reads bypass the flash cache of storage cells. A table with KEEP is cached: its first scan brings the
blocks into the cache, and later scans read from disk and flash in parallel. Each block of the run starts with an empty
cache and measures either the first scan, or a second scan after a first scan that does not count.

Limits: on a model only. The model assumes that a cell brings lines into its cache one at a time. How much longer the
first scan takes depends on how fast it would be otherwise, and so on the number of I/Os that a job has in flight
(`dbdyno model map N10`). The longest wait in the source is not reproduced.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.plan.factors import Level, choose_levels, combine_levels, curve_levels, one_number
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Workload
from dbdyno.study.plan.study import Factor, Study

SCANS = {"first": Level("first"), "later": Level("later", warmup_transactions=1)}
CACHING = {name: Level(name, {"storage.caching": name}) for name in ("default", "keep", "none")}


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    size = one_number(options["mb"], "mb") << 20
    ahead = one_number(options["ahead"], "ahead")
    return Plan(
        **STUDY.heading,
        kind="sweep",
        factors=["scan", "caching"],
        arms=combine_levels(
            curve_levels("scan", choose_levels(SCANS, options["scan"], "scan")),
            curve_levels("caching", choose_levels(CACHING, options["caching"], "caching")),
            within=True,
        ),
        workload=Workload(
            kind="scan-jobs",
            parameters={"bytes": size, "ahead": ahead, "cpu_us_per_io": 100.0},
        ),
        sessions=one_number(options["jobs"], "jobs"),
        schedule=Schedule(blocks=6 if quick else 20, transactions=1, warmup_transactions=0),
        judge=Judge(headline="mean"),
    )


STUDY = Study(
    name="keep-cache",
    question="What does KEEP in the flash cache do to the first scan of a table, and to later ones?",
    workload="Jobs scan a table once (scan-jobs) from an empty flash cache, or a second time, with caching by default "
    "and with KEEP.",
    targets="models with storage cells: --target model:exadata-x2 by default",
    source="Guy Harrison, 2012: CELL_FLASH_CACHE KEEP and smart scans on an Exadata X2-2 (E12)",
    found_there="The first scan after KEEP went from 9,322 waits of 7.60 s to 14,904 of 33.37 s, the longest from 0.14 "
    "to 1.21 s; later scans were faster than before. (The source's penalty of 200 to 300 % is +175 % a wait.)",
    factors=(
        Factor("caching", "default, keep, none; the first is the base", "default,keep"),
        Factor("scan", "first: from an empty cache; later: the second scan", "first,later"),
        Factor("mb", "size of the table in MiB", "2048", quick="1024", full="8192"),
        Factor("ahead", "I/Os of 1 MB in flight per job", "16"),
        Factor("jobs", "scans at once, each of different data", "1"),
    ),
    make=_plan,
    target="model:exadata-x2",
)
