"""N12: group commit, the number of commits that share a log write."""

from __future__ import annotations

from dbdyno.model.claims.base import MECHANISM, Claim, Part
from dbdyno.model.claims.bench import Arm, Bench
from dbdyno.model.claims.flash_log_cost import MACHINE, ONE_ROW, SESSIONS, TRANSACTIONS


def measure(bench: Bench) -> list[Part]:
    """Measure the commits of 20 sessions per write of the log writer."""
    per_write = "count(*) filter (event = 'log file sync') / count(*) filter (event = 'log file parallel write')"
    arms = [Arm("one row", ONE_ROW, SESSIONS)]
    arms += [Arm(f"{cpu_us} us", {**ONE_ROW, "cpu_us": float(cpu_us)}, SESSIONS) for cpu_us in (250, 500)]
    with bench.run(MACHINE, arms, transactions=TRANSACTIONS) as evidence:
        return [
            Part("commits a write", evidence.of_arm(per_write, "waits", "one row"), 3, 8),
            Part("for comparison, 250 us of CPU", evidence.of_arm(per_write, "waits", "250 us")),
            Part("for comparison, 500 us of CPU", evidence.of_arm(per_write, "waits", "500 us")),
        ]


CLAIM = Claim(
    "N12",
    "20 sessions share a log write by 3 to 8",
    "Harrison 2012 (E9): 551,342 redo writes in one of three cells for 4 million commits, or 4.8",
    MECHANISM,
    measure,
    (
        "With 100 us of CPU a transaction, which is assumed, sessions are back within one write:"
        " two crowds of 10 take turns, and each write carries one of them. The longer a transaction"
        " computes, the fewer wait. The source does not tell its CPU, and its 4.8 assumes one"
        " database and an even spread over the cells.",
        "Tried: redo of 4 to 16 KB a commit, with the same 10. A sync takes at most two writes, so"
        " that the source's 0.5 ms and 4.8 leave a session at least half of its time outside of the"
        " sync; doing what, the source does not say.",
    ),
)
