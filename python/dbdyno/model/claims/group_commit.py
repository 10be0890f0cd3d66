"""N12: group commit, the number of commits that share a log write."""

from __future__ import annotations

from dbdyno.model.claims.base import FITTED, Claim, ClaimQuantity
from dbdyno.model.claims.bench import Arm, Bench
from dbdyno.model.claims.flash_log_cost import CUT, MACHINE, SESSIONS
from dbdyno.model.claims.map import Map
from dbdyno.model.claims.race_winner import CPU_US

PER_WRITE = "count(*) filter (event = 'log file sync') / count(*) filter (event = 'log file parallel write')"
ONE_ROW = {"kind": "commit-loop", "redo_bytes": "512"}
# Published: commits a write, and the mean sync without a flash log [us].
PUBLISHED, PUBLISHED_US = 4.8, 508.7


def arm(cpu_us: float, members: int = 1, sessions: int = SESSIONS) -> Arm:
    """Return an arm that only commits, with this CPU time per commit and this number of log group members."""
    settings = {"cells.flash_log.enabled": "false", "storage.redo": ",".join(["RECO", "DATA"][:members])}
    return Arm(f"{cpu_us:g} us, {members}", {**ONE_ROW, "cpu_us": cpu_us}, sessions, settings)


def measure(bench: Bench) -> list[ClaimQuantity]:
    """Measure commits per log write with 20 sessions, and the log file sync time relative to the published one."""
    arms = [arm(CPU_US), arm(CPU_US, members=2), arm(100.0)]
    with bench.run(MACHINE, arms, transactions=2_000) as evidence:
        one, two, little = (evidence.arm_values(PER_WRITE, "waits", each.name) for each in arms)
        sync = evidence.arm_values(f"avg(elapsed_ns) / 1e3 / {PUBLISHED_US}", "waits", arms[0].name, CUT)
    return [
        ClaimQuantity(f"commits a write, {CPU_US:g} us of CPU", one, 3, 8),
        ClaimQuantity("the same, two log members", two, 3, 8),
        ClaimQuantity("sync there / the source's", sync, 0.8, 1.25),
        ClaimQuantity("for comparison, 100 us of CPU", little),
    ]


MAP = Map(
    quantity="commits of 20 sessions a log write",
    parameter="CPU of a transaction [us]",
    levels=(50, 100, 200, 300, 400, 600, 800, 1_200, 2_000),
    curves=("1 log member", "2 log members"),
    machine=MACHINE,
    arms=lambda curve, cpu_us: [arm(cpu_us, members=int(curve[0]))],
    value=lambda evidence, arms: evidence.arm_values(PER_WRITE, "waits", arms[0]),
    transactions=1_000,
    band=(3, 8),
    published=(("the source", PUBLISHED),),
)

CLAIM = Claim(
    "N12",
    "With 20 sessions, 3 to 8 commits share a log write",
    "Harrison 2012 (E9): 551,342 redo writes in one of three cells for 4 million commits, or 4.8",
    FITTED,
    measure,
    (
        "The number of commits per write depends on what a session does between two commits, which the source does not "
        "say. With 100 us of CPU, the workload's default, sessions are back within one write: two groups of 10 "
        "alternate. `dbdyno model map N12` draws it over the CPU and over log members.",
        "600 us were fitted to the source's 4.8 (which assumes one database and an even spread over the cells). The "
        "sync time at that CPU was not fitted: it must equal the source's 508.7 us at the same time.",
        "Also tried: 4 to 16 KB of redo per commit, and a second log member; the result was the same 10. A sync takes "
        "at most two writes, so with the source's 0.5 ms and 4.8 a session spends at least half of its "
        "time outside of the sync.",
    ),
)
