"""Study flash-log: effect on commits of writing redo to disk and flash at once.

A cell with a flash log sends each redo write to disk and flash at once and answers as soon as the first of them is
durable. Twenty sessions update a row and commit. The study compares the times of commits, and counts how often the disk
and how often the flash was first.

On a real PostgreSQL over modelled devices the log is on the disk, or on disk and flash at once: the device `flash-log`.

Limits: on two real paths and on storage cells the study has other factors: `dbdyno.study.plan.host`,
`dbdyno.study.plan.cells`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbdyno.bench.kinds import POSTGRES_ON_DEVICE
from dbdyno.study.library.data import REDO_BYTES, timed_commits
from dbdyno.study.plan import cells, host
from dbdyno.study.plan.factors import Level, choose_levels, numbers
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target

LEVELS = {
    "off": Level("off", {"cells.flash_log.enabled": "false"}),
    "on": Level("on", {"cells.flash_log.enabled": "true"}),
}
BLOCKS = 20


def _arms(text: str) -> list[Arm]:
    """Return the arms with and without a flash log, as `--set flash_log=` names them."""
    return [
        Arm(f"flash log {level.name}", settings=level.settings) for level in choose_levels(LEVELS, text, "flash_log")
    ]


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return commits_plan(STUDY, options, quick, Judge(headline="mean", operation="commit"))


ON_DEVICE = {"flash_log": "off,on", "sessions": "20", "commits": "200000", "redo_bytes": "512"}
DEVICES = {
    "off": Level("off", device={"wal": "disk-15000-cache"}),
    "on": Level("on", device={"wal": "flash-log"}),
}


def _on_device(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    plan = _plan(options, quick)
    levels = choose_levels(DEVICES, options["flash_log"], "flash_log")
    arms = [Arm(f"flash log {level.name}", device=level.device) for level in levels]
    return plan_on_target(timed_commits(replace(plan, arms=arms)), target)


def commits_plan(study: Study, options: Mapping[str, str], quick: bool, judge: Judge) -> Plan:
    """Return the plan of commits with and without a flash log, with the study's rules for the verdict."""
    workload = Workload(kind="commit-loop", parameters={"redo_bytes": options["redo_bytes"]})
    return race_plan(study, options, quick, judge, workload)


def race_plan(study: Study, options: Mapping[str, str], quick: bool, judge: Judge, workload: Workload) -> Plan:
    """Return the plan of a workload with and without a flash log."""
    (sessions,) = numbers(options["sessions"], "sessions")[:1]
    (commits,) = numbers(options["commits"], "commits")[:1]
    return Plan(
        **study.heading,
        arms=_arms(options["flash_log"]),
        workload=workload,
        sessions=sessions,
        schedule=Schedule(
            blocks=6 if quick else BLOCKS,
            transactions=500 if quick else max(commits // BLOCKS, 1),
            warmup_transactions=100,
        ),
        judge=judge,
    )


STUDY = Study(
    name="flash-log",
    question="Does a flash log make commits faster?",
    workload="Twenty sessions, each with 200,000 single-row updates and a commit after each (commit-loop), once "
    "without a flash log and once with it; in 20 blocks of 10,000 commits per session. The "
    "commit is timed on its own: it is the wait 'log file sync' and what it costs to make it.",
    targets="models with storage cells: --target model:exadata-x2 by default; and two real paths: "
    "--target host --set paths=/disk/redo,/flash/redo, whose factors are in docs/how-to/probe.md; and "
    "storage cells under the load of their own databases: --target cells:HOST1,HOST2 --set "
    "database=NAME, whose factors are in docs/how-to/cells.md; and a real PostgreSQL with its log on a modelled disk "
    "(disk-15000-cache), and on that disk and a flash module at once (flash-log): --target postgres+device:NAME, where "
    "NAME carries the data",
    source="Guy Harrison, 2012: 'log file sync' of 4,000,000 commits with and without Exadata's "
    "smart flash log, from event 10046 (E9)",
    found_there="On against off: median 500 / 481 us, mean 542.4 / 508.7, first quartile 452 / "
    "435, third 567 / 535: slower by 4 to 7 % throughout the body of the distribution. Flash won 19,190 of 551,342 "
    "writes. Known errors: the post prints 3.8 % for that, its own formula gives 3.48 %; and "
    "both samples were cut off at 4 ms, which hides the tail that the flash log is there for (see "
    "flash-log-tail).",
    factors=(
        Factor("flash_log", "arms, base first", "off,on"),
        Factor("sessions", "concurrent sessions", "20"),
        Factor("commits", "commits per session and arm, over all blocks", "200000"),
        REDO_BYTES,
    ),
    make=_plan,
    target="model:exadata-x2",
    variants={
        "host": Variant(host.FLASH_LOG, host.flash_log),
        "cells": Variant(cells.FACTORS, cells.flash_log),
        POSTGRES_ON_DEVICE: Variant(ON_DEVICE, _on_device),
    },
)
