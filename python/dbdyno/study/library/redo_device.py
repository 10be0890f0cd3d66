"""Study redo-device: cost of a commit with redo on a disk, and on flash.

Sessions update a row and commit, repeatedly. The redo of one such transaction is a fraction of a page: a disk behind a
controller's memory takes it unchanged, whereas flash has to read a page, change it and program it again if the write is
smaller than its page.

On a model the location of redo is a parameter of the machine, `storage.redo`; the names of the devices differ from
machine to machine. On a real engine over modelled devices it is the device of the log; each arm has a server.

Limits: PostgreSQL writes its log in blocks of 8 kB, so a commit there never changes a part of a flash page of 4 kB: the
effect that makes the model's flash slow does not occur there.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.bench.kinds import POSTGRES_ON_DEVICE
from dbdyno.study.library.data import REDO_BYTES, timed_commits
from dbdyno.study.plan.factors import Level, combine_levels, option_values, sessions
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Value, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return _make_plan(
        options, quick, [Level(place, {"storage.redo": place}) for place in option_values(options["redo"], "redo")]
    )


ON_DEVICE = {"redo": "disk-15000-cache,flash-2011", "sessions": "1,10", "redo_bytes": "512"}


def _on_device(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    places = [Level(place, device={"wal": place}) for place in option_values(options["redo"], "redo")]
    return plan_on_target(timed_commits(_make_plan(options, quick, places)), target)


def _make_plan(options: Mapping[str, str], quick: bool, places: list[Level]) -> Plan:
    parameters: dict[str, Value] = {"redo_bytes": options["redo_bytes"]}
    return Plan(
        **STUDY.heading,
        arms=combine_levels(sessions(options["sessions"]), places, within=True),
        workload=Workload(kind="commit-loop", parameters=parameters),
        schedule=Schedule(
            blocks=6 if quick else 20,
            transactions=500 if quick else 5_000,
            warmup_transactions=100,
        ),
        judge=Judge(headline="mean"),
    )


STUDY = Study(
    name="redo-device",
    question="Is redo faster on flash than on disk?",
    workload="Each session changes a row (512 bytes of redo) and commits, without pause "
    "(commit-loop). Arms: redo on the disk and on the flash of the machine, at 1 and 10 sessions.",
    targets="models: --target model:sas-and-flash by default; and a real PostgreSQL with its log on modelled devices: "
    "--target postgres+device:NAME, where NAME carries the data, with the factor redo=disk-15000-cache,flash-2011",
    source="Guy Harrison, 2011: redo on flash and on SAS disks, updates and commits at 1 and 10 sessions (E6)",
    found_there="With redo blocks of 512 bytes flash was about 4 times slower at 1 session and "
    "almost 20 times at 10. The source has no other figures.",
    factors=(
        Factor("redo", "where redo is stored: devices of the machine, base first", "log_sas,log_flash"),
        Factor("sessions", "concurrent sessions", "1,10"),
        REDO_BYTES,
    ),
    make=_plan,
    target="model:sas-and-flash",
    variants={POSTGRES_ON_DEVICE: Variant(ON_DEVICE, _on_device)},
)
