"""Study builds: gain of parallel builds, by threads within a build, by several builds at once, or by both.

The study creates a small C project and builds it with `make -j N`, several builds at once, each in a separate folder. A
build always compiles every file; earlier results are removed before each build, which is not timed. The headline is
builds per second, which measures both threads within a build and builds at the same time. The CPU of a whole build is
reported for each arm.

Limits: sources and results are in the file system's cache. A project of a few dozen files has little work that only one
process can do (the link step), which is what limits `-j` in large projects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from dbdyno.study.plan.factors import combine_levels, concurrency, doubling_numbers, numbers, one_number, variable
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Workload
from dbdyno.study.plan.study import Factor, Study
from dbdyno.study.plan.targets import COMMANDS

MAKE = "env -u MAKEFLAGS -u MAKELEVEL make -s -C {source} OUT=out{session}"

TURN_LEAST = 4
"""Smallest number of builds in a turn; if more builds run at the same time, each builds once."""


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    cores = len(os.sched_getaffinity(0))
    levels = {
        name: doubling_numbers(2 * cores) if options[name] == "auto" else options[name] for name in ("jobs", "builds")
    }
    sources = one_number(options["sources"], "sources")
    return Plan(
        **STUDY.heading,
        kind="sweep",
        dsn=COMMANDS,
        factors=["builds", "jobs"],
        arms=combine_levels(concurrency("builds", levels["builds"]), variable("jobs", levels["jobs"])),
        workload=Workload(
            command=MAKE + " -j{jobs}", prepare=MAKE + " clean", files={"source": f"c-project {sources}"}
        ),
        schedule=Schedule(
            blocks=2 if quick else 8,
            warmup_blocks=0 if quick else 1,
            turn_transactions=max(TURN_LEAST, *numbers(levels["builds"], "builds")),
            settle_ns=0,
        ),
        judge=Judge(headline="throughput", threshold=0.05),
    )


STUDY = Study(
    name="builds",
    question="What gains most in parallel builds: jobs within a build, several builds at once, or both?",
    workload="`make -j JOBS` of a small C project that the study makes, BUILDS of them at once, each from scratch in "
    "its own folder. The headline is builds per second.",
    targets="this host, with make and a C compiler installed",
    source="Glenn Fawcett: builds of software on a chip with 32 threads, jobs within a build and several builds at "
    "once (E19)",
    found_there="32 threads per job cut the time by 79 %, several jobs at once as well by 88 %; compared with "
    "parallel jobs one after the other that is 42 % less.",
    factors=(
        Factor("jobs", "jobs within a build (make -j); auto: 1, 2, 4, ... to twice the cores", "auto", quick="1,2"),
        Factor("builds", "builds at once; auto: likewise", "auto", quick="1,2"),
        Factor("sources", "C files of the project", "4", full="16", quick="2"),
    ),
    make=_plan,
    target=COMMANDS,
)
