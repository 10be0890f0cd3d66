"""Study redo-size: time of a commit as a function of the redo written before it.

One session commits transactions of random redo size, in steps as fine as the load allows. Because every commit has a
random size, drift of the machine affects all sizes alike. Sizes are not assumed but read from the log's position before
each commit. The workload is a typed one: PostgreSQL runs it as a script, a model runs it directly; nothing else differs
between them.

Limits: a commit waits for the redo of all sessions, so other writers on the engine blur the curve; standbys are not
supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbdyno.base.errors import PlanError
from dbdyno.study.plan.factors import combine_levels, sessions
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Watch, Workload
from dbdyno.study.plan.study import Factor, Study
from dbdyno.study.plan.typed_workloads import sizes


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    redo_bytes = options["redo_bytes"]
    levels = sizes(redo_bytes)
    if ".." not in redo_bytes and len(levels) < 3:
        raise PlanError(
            f"{redo_bytes!r} has {len(levels)} size(s); expected 3 or more for a curve",
            where="--set redo_bytes",
            next_step="write a range such as --set redo_bytes=8KiB..4MiB",
        )
    blocks = 8 if quick else 40
    arms = combine_levels(sessions(options["sessions"]))
    return Plan(
        **STUDY.heading,
        kind="curve",
        arms=[_describe_arm(arm, redo_bytes) for arm in arms],
        workload=Workload(kind="commit-loop", parameters={"redo_bytes": redo_bytes}),
        sessions=arms[0].sessions or 1,
        schedule=Schedule(
            blocks=blocks,
            warmup_blocks=1 if quick else 2,
            turn_ns=2_000_000_000,
            settle_ns=0,
            switch="turns",
            transactions=250,
            warmup_transactions=10,
        ),
        watch=Watch(overhead_blocks=1 if quick else 2),
        judge=Judge(headline="mean"),
    )


def _describe_arm(arm: Arm, redo_bytes: str) -> Arm:
    name = "commit" if arm.name == "base" else arm.name
    return replace(arm, name=name, description=f"redo per commit {redo_bytes}")


STUDY = Study(
    name="redo-size",
    question="Does the time of a commit grow with the redo before it, and is there a sawtooth?",
    workload="One session; each transaction writes a random amount of redo and commits "
    "(commit-loop). On PostgreSQL the redo is made with pg_logical_emit_message, and its amount "
    "read from the position of the write-ahead log right before the commit. The commit is timed "
    "on its own.",
    targets="postgres: embedded by default, or --target postgresql://... (not a standby); and any "
    "model with a database instance: --target model:NAME",
    source="Guy Harrison, 2012: redo size against 'log file sync' time on Oracle (E5, E8)",
    found_there="A sawtooth with a period of 1 MB: the wait rises to 1 MB of redo, then falls, "
    "because the log writer flushes on its own at each megabyte; there was never more than about "
    "1 MB left to wait for. Redo on flash and on disk cost about the same where there was little "
    "of it, and flash degraded much more steeply as it grew. PostgreSQL's WAL writer works by "
    "another rule (it wakes by time, wal_writer_delay), so the sawtooth is looked for there and "
    "not taken for granted.",
    factors=(
        Factor("redo_bytes", "range or list of redo sizes per commit", "4KiB..12MiB"),
        Factor("sessions", "concurrent sessions", "1"),
    ),
    make=_plan,
)
