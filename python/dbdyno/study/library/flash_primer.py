"""Study flash-primer: cost of a flash card that is full of modified pages.

A page of flash is read in 25 us and programmed in 250 us, but only after its whole block was erased, which takes 2,000
us. A new card has erased blocks ready. A card that was written at random for a long time must first move the valid
pages out of a block, program them elsewhere, and erase the block: each write of the host becomes several. How many
depends on the spare flash that the host does not see.

So many sessions change pages at random that the database writer keeps the card busy; the throughput of the sessions is
then limited by the card. The buffer cache is small, so that changes reach the card and do not stay in memory.

Limits: on a model only, whose card is scaled down (1 GB) and starts fresh or in the steady state; the transition from
one to the other is not modelled here.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.plan.factors import Level, choose_levels, combine_levels, numbers, option_values
from dbdyno.study.plan.plan import Plan, Schedule, Workload
from dbdyno.study.plan.study import Factor, Study

STATES = {"fresh": "fresh", "used": "steady"}
SCALED = {"database.buffers.buffers": "2000"}


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    (sessions,) = numbers(options["sessions"], "sessions")[:1]
    (device,) = option_values(options["device"], "device")[:1]
    card = f"devices.{device}"
    times = {"read_us": "25", "program_us": "250", "erase_us": "2000", "dies": "16"}
    primer = Level("", SCALED | {f"{card}.{name}": value for name, value in times.items()})
    spare = [
        Level(f"{share} spare", {f"{card}.over_provisioning_ratio": share})
        for share in option_values(options["spare"], "spare")
    ]
    states = {name: Level(name, {f"{card}.start": start}) for name, start in STATES.items()}
    return Plan(
        **STUDY.heading,
        arms=combine_levels([primer], spare, choose_levels(states, options["card"], "card"), within=True),
        workload=Workload(kind="update-loop", parameters={"blocks": 100_000, "cpu_us": 20}),
        sessions=sessions,
        schedule=Schedule(blocks=3 if quick else 8, transactions=400 if quick else 1_500, warmup_transactions=300),
    )


STUDY = Study(
    name="flash-primer",
    question="How much slower does a flash card write once it is full of modified pages?",
    workload="Sessions change pages at random and commit (update-loop); a small buffer cache passes the changes on to "
    "the card, which reads in 25, programs in 250 and erases in 2,000 us. Arms: a fresh card and one that was written "
    "at random for a long time, each with 7 and with 28 % of spare flash.",
    targets="models with a flash device: --target model:nvme-server by default",
    source="Guy Harrison's primer on solid state disks: read, program and erase; what sustained writes do (E15)",
    found_there="25 us for a read, 250 for a write, 2,000 for an erase; a disk full of modified blocks slows down "
    "dramatically. The source gives no other figures.",
    factors=(
        Factor("card", "states of the card, base first", "fresh,used"),
        Factor("spare", "spare flash as a share of the size that the host sees", "0.07,0.28"),
        Factor("device", "the flash device of the machine", "nvme"),
        Factor("sessions", "concurrent sessions", "32"),
    ),
    make=_plan,
    target="model:nvme-server",
)
