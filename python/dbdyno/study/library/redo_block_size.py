"""Study redo-block-size: effect of redo blocks as large as a flash page.

A redo write is a whole number of redo blocks. If a block is smaller than the flash page on which it is stored, the card
reads the page, changes it and programs it again; if a block is a page, the card only programs it. There are three arms:
small blocks on flash, large blocks on flash (compared with small blocks on flash), and large blocks on disk (compared
with large blocks on flash).

PostgreSQL's log block is fixed at 8 kB. Over modelled devices the page of the flash is varied instead: one page size is
eight times that of a log block, the other is equal to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.bench.kinds import POSTGRES_ON_DEVICE
from dbdyno.study.library.data import REDO_BYTES, timed_commits
from dbdyno.study.plan.factors import numbers, option_values
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Value, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    places = option_values(options["redo"], "redo")
    return _make_plan(options, quick, _arms(places, numbers(options["block_bytes"], "block_bytes")))


ON_DEVICE = {"redo": "flash-2011,disk-15000-cache", "page_bytes": "65536,8192", "sessions": "1", "redo_bytes": "512"}


def _on_device(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    first, *others = option_values(options["redo"], "redo")
    pages = [
        Arm(f"{first}, page {size} B", device={"wal": first, "wal.page_bytes": str(size)})
        for size in numbers(options["page_bytes"], "page_bytes")
    ]
    against = pages[-1].name if len(pages) > 1 else None
    arms = [*pages, *(Arm(other, device={"wal": other}, against=against) for other in others)]
    return plan_on_target(timed_commits(_make_plan(options, quick, arms)), target)


def _make_plan(options: Mapping[str, str], quick: bool, arms: list[Arm]) -> Plan:
    parameters: dict[str, Value] = {"redo_bytes": options["redo_bytes"]}
    (sessions,) = numbers(options["sessions"], "sessions")[:1]
    return Plan(
        **STUDY.heading,
        arms=arms,
        workload=Workload(kind="commit-loop", parameters=parameters),
        sessions=sessions,
        schedule=Schedule(
            blocks=6 if quick else 20,
            transactions=500 if quick else 10_000,
            warmup_transactions=100,
        ),
        judge=Judge(headline="mean"),
    )


def _arms(places: list[str], sizes: list[int]) -> list[Arm]:
    """Return arms with all sizes on the first device, then an arm with the last size on each other device.

    On the first device, arms are compared with the first size; the other devices are compared with the first device at
    the last size.
    """

    def arm(place: str, size: int, against: str | None) -> Arm:
        settings = {"storage.redo": place, "database.redo.block_bytes": str(size)}
        return Arm(_name(place, size), settings=settings, against=against)

    arms = [arm(places[0], size, None) for size in sizes]
    last = _name(places[0], sizes[-1])
    against = last if len(sizes) > 1 else None
    return arms + [arm(place, sizes[-1], against) for place in places[1:]]


def _name(place: str, size: int) -> str:
    return f"{place}, {size} B"


STUDY = Study(
    name="redo-block-size",
    question="Does a redo block as large as a flash page make redo on flash fast?",
    workload="One session changes a row (512 bytes of redo) and commits, without pause "
    "(commit-loop). Arms: redo on flash in blocks of 512 and of 4096 bytes, and on disk in blocks "
    "of 4096.",
    targets="models: --target model:sas-and-flash by default; and a real PostgreSQL with its log on modelled devices: "
    "--target postgres+device:NAME, where NAME carries the data, with the factors redo=flash-2011,disk-15000-cache and "
    "page_bytes=65536,8192, the page of the flash: the log block is 8 kB there",
    source="Guy Harrison, 2011: redo on flash with redo blocks of 512 and 4096 bytes (E7)",
    found_there="Blocks of 4096 bytes cut the elapsed time by 70 %, and flash was then slightly "
    "slower than disk. A known error: the 20 times of ten sessions (see redo-device) and these "
    "70 % belong to different loads: 4 x 0.30 = 1.2 is 'slightly slower', 20 x 0.30 = 6 is not. So "
    "this study has one session.",
    factors=(
        Factor("redo", "where the redo is: devices of the machine", "log_flash,log_sas"),
        Factor("block_bytes", "sizes of a redo block", "512,4096"),
        Factor("sessions", "concurrent sessions", "1"),
        REDO_BYTES,
    ),
    make=_plan,
    target="model:sas-and-flash",
    variants={POSTGRES_ON_DEVICE: Variant(ON_DEVICE, _on_device)},
)
