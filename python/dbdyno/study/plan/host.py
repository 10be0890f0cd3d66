"""Plans for this host: log writers as arms, and the studies that run on them.

    dbdyno run flash-log --target host --set paths=/disk/redo,/flash/redo

The arms of a study differ only in the race. The arm without it also passes its writes to a thread, as the other arm
does for each copy, so that both arms include the cost of passing writes to threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dbdyno.base.errors import PlanError
from dbdyno.bench.host.bench import WORKLOAD
from dbdyno.bench.host.probe import LogArm
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Watch, Workload

FLASH_LOG = {
    "paths": "",
    "sessions": "20",
    "redo_bytes": "512",
    "think_ms": "1",
    "sync": "direct+dsync",
    "block_size": "4096",
    "file_mb": "64",
    "outlier_ms": "500",
}
"""Factors of flash-log on this host, with their defaults."""
HOST = "host"


def log_plan(
    title: str,
    arms: list[LogArm],
    *,
    question: str = "",
    study: str | None = None,
    kind: str = "experiment",
    schedule: Schedule | None = None,
    judge: Judge | None = None,
) -> Plan:
    """Return a plan for this host whose arms are log writers; the first is the base."""
    return Plan(
        title=title,
        question=question,
        study=study,
        kind=kind,
        dsn=HOST,
        arms=[
            Arm(a.name, description(a), sessions=a.sessions, rate_per_s=a.rate_per_s, parameters=a.parameters())
            for a in arms
        ],
        workload=Workload(kind=WORKLOAD),
        schedule=schedule or Schedule(),
        watch=Watch(activity_hz=0, counters=False, overhead_blocks=0),
        judge=judge or Judge(),
    )


def description(arm: LogArm) -> str:
    """Return a description of an arm."""
    from dbdyno.stats.wording import duration, size

    paths = " and ".join(str(path) for path in arm.paths)
    both = {"first": ", continues when the first copy is durable", "all": ", continues when both copies are durable"}
    rule = both[arm.rule] if len(arm.paths) > 1 else ""
    think = f", think time {duration(arm.think_ns)}" if arm.think_ns else ""
    return f"redo of {arm.size} per commit, blocks of {size(arm.block_bytes)}, {arm.sync}{think}; to {paths}{rule}"


def flash_log(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    """Return the plan of the study flash-log on this host.

    Raises:
        PlanError: There are not exactly two paths, or an option is not a number in range.
    """
    chosen = {**FLASH_LOG, **options}
    paths = [Path(part) for part in chosen["paths"].split(",") if part.strip()]
    if len(paths) != 2:
        raise PlanError(
            f"a race needs two paths, found {len(paths)}",
            where="--set paths",
            next_step="name two folders or new files, such as --set paths=/disk/redo,/flash/redo",
        )
    base = LogArm(
        name="flash log off",
        paths=(paths[0],),
        sync=chosen["sync"],
        size=chosen["redo_bytes"],
        block_bytes=_number(chosen, "block_size"),
        file_bytes=_number(chosen, "file_mb") << 20,
        sessions=_number(chosen, "sessions"),
        think_ns=_number(chosen, "think_ms", 10**6),
        outlier_ns=_number(chosen, "outlier_ms", 10**6),
        hand_over=True,
    )
    race = replace(base, name="flash log on", paths=tuple(paths), rule="first", hand_over=False)
    return log_plan(
        "flash-log",
        [base.with_files("-off"), race.with_files("-on")],
        question="Does a race of two copies make commits faster?",
        study="flash-log",
        schedule=Schedule(blocks=8 if quick else 20, warmup_blocks=1 if quick else 2),
        judge=Judge(headline="mean"),
    )


def _number(options: Mapping[str, str], name: str, unit: int = 1) -> int:
    try:
        value = float(options[name])
    except ValueError as error:
        raise PlanError(
            f"{options[name]!r} is not a number", where=f"--set {name}", next_step="write a number"
        ) from error
    if not 0 <= value * unit < 2**62:
        raise PlanError(
            f"{options[name]!r} is out of range",
            where=f"--set {name}",
            next_step="choose a smaller number, 0 or more",
        )
    return round(value * unit)
