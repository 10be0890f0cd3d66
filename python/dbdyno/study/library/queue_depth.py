"""Study queue-depth: which limit keeps a large array idle while the host waits.

Jobs read 1 MB at a time from a stripe over many LUNs. The stripe width determines into how many pieces a read is
divided. The host's limit per LUN determines how many pieces can be in flight, and each channel limits how many commands
it accepts. The sweep increases the number of jobs for each combination of stripe width and limit, with one curve per
combination.

Limits: on a model only; all jobs read from one file system, so each LUN serves all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.plan.factors import combine_levels, sessions, setting
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Workload
from dbdyno.study.plan.study import Factor, Study


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return Plan(
        **STUDY.heading,
        kind="sweep",
        arms=combine_levels(
            setting("stripe_kb", options["stripe_kb"]),
            setting("sd_max_throttle", options["sd_max_throttle"]),
            sessions(options["jobs"], "job"),
        ),
        workload=Workload(kind="scan-jobs", parameters={"io_bytes": 1 << 20, "bytes": 16 << 20, "shared": False}),
        schedule=Schedule(blocks=3 if quick else 6, transactions=4 if quick else 12, warmup_transactions=1),
        judge=Judge(headline="throughput"),
    )


STUDY = Study(
    name="queue-depth",
    question="Which limit keeps the disks idle: stripe width, LUN queue or channel?",
    workload="Jobs that each scan 16 MB in reads of 1 MB, one after the other, from one file "
    "system striped over the LUNs of the machine (scan-jobs); a transaction is one such scan. "
    "Arms: each stripe width with each limit per LUN, at 1 to 32 jobs.",
    targets="models with LUNs: --target model:san by default",
    source="Glenn Fawcett, 2006: a storage stack that collapsed under sd_max_throttle (E22)",
    found_there="128 LUNs, stripes of 32 KB, a throttle of 2: 10 scans of 1 MB are 320 requests "
    "outstanding, and the host starved while the array was idle. A known error: the post divides the "
    "320 by 4 channels and holds that against the throttle of 2, but the throttle is a limit per "
    "LUN. With 10 jobs on one file system each of its 32 LUNs has 10 requests, 2 of them in flight: 5 rounds "
    "instead of 1.",
    factors=(
        Factor("stripe_kb", "stripe widths in KB", "32,1024"),
        Factor("sd_max_throttle", "limits of requests in flight per LUN", "2,8,32"),
        Factor("jobs", "scans at once", "1,2,4,8,16,32"),
    ),
    make=_plan,
    target="model:san",
)
