"""Study threads: speed of a program that compresses a file as a function of its threads.

The study creates a text that is the same everywhere, and compresses it with each of the installed programs, with 1
thread to twice the number of cores. All threads of a program work on the same bytes, in pieces of 512 KiB, so the work
of an operation is equal; its CPU is reported for each arm.

Limits: the file is read from memory (it was just written) and the output is discarded, so no disk is involved. The
start of the program is part of every time, and is reported with the run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from dbdyno.base.errors import PlanError
from dbdyno.base.processes import find_program
from dbdyno.study.plan.factors import Level, combine_levels, curve_levels, doubling_numbers, option_values, variable
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Workload
from dbdyno.study.plan.study import Factor, Study
from dbdyno.study.plan.targets import COMMANDS

PROGRAMS = {
    "zstd": "zstd -q -c -6 -B524288 -T{threads} {corpus}",
    "xz": "xz -q -c -0 --block-size=524288 -T{threads} {corpus}",
    "pigz": "pigz -c -6 -b 512 -p {threads} {corpus}",
    "pbzip2": "pbzip2 -q -c -1 -p{threads} {corpus}",
    "lbzip2": "lbzip2 -q -c -1 -n {threads} {corpus}",
}
"""Command line of each program, with its number of threads, and with 512 KiB pieces that threads can share."""


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    cores = len(os.sched_getaffinity(0))
    threads = doubling_numbers(2 * cores) if options["threads"] == "auto" else options["threads"]
    programs = [Level(name, command=PROGRAMS[name]) for name in _programs(options["programs"])]
    arms = combine_levels(curve_levels("program", programs), variable("threads", threads), within=True)
    return Plan(
        **STUDY.heading,
        kind="sweep",
        dsn=COMMANDS,
        factors=["program", "threads"],
        arms=arms,
        workload=Workload(command=arms[0].command, files={"corpus": f"text {options['size']}"}),
        schedule=Schedule(blocks=3 if quick else 12, warmup_blocks=1, turn_transactions=5, settle_ns=0),
        judge=Judge(headline="mean", threshold=0.05),
    )


def _programs(text: str) -> list[str]:
    """Return the requested programs, or the first two that are installed.

    Raises:
        PlanError: No program is installed, or one is unknown.
    """
    if text == "installed":
        found = [name for name in PROGRAMS if find_program(name)]
        if not found:
            raise PlanError(
                f"none of {', '.join(PROGRAMS)} is installed",
                where="--set programs",
                next_step="install one of the programs; on Debian: apt-get install zstd xz-utils",
            )
        return found[:2]
    for name in option_values(text, "programs"):
        if name not in PROGRAMS:
            raise PlanError(
                f"{name!r} is not a program of this study",
                where="--set programs",
                next_step=f"name one or several of {', '.join(PROGRAMS)}, or write a plan with a command for "
                f"another program",
            )
    return option_values(text, "programs")


STUDY = Study(
    name="threads",
    question="How does the speed of file compression grow with the program's threads?",
    workload="The same generated text on every machine, compressed by each program with 1 thread to twice as "
    "many as there are cores. The output goes nowhere. The CPU of a complete operation is reported for each arm.",
    targets="this host, with zstd, xz, pigz, pbzip2 or lbzip2 installed",
    source="Glenn Fawcett: pbzip2 with 1 to 32 threads on a chip with many slow threads and on one with few fast "
    "cores (E18)",
    found_there="The chip with many threads was slower with one thread, but overtook the faster core with more; "
    "the source shows it as a figure.",
    factors=(
        Factor("threads", "numbers of threads; auto: 1, 2, 4, ... to twice the cores of this process", "auto"),
        Factor("programs", "installed: the first two that are; or some of zstd,xz,pigz,pbzip2,lbzip2", "installed"),
        Factor("size", "size of the file, such as 8MiB", "4MiB", full="64MiB", quick="1MiB"),
    ),
    make=_plan,
    target=COMMANDS,
)
