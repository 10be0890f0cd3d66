"""Study flash-log-tail: effect of a flash log on the longest commits.

It is like flash-log, but with forty sessions that update rows of a table larger than the buffers. It reports on the
tail: how many of the 10,000 longest commits of both arms belong to each arm, and the high quantiles. No outliers are
removed.

Where the tail comes from, on the modelled cells: a controller writes its memory to disk every 4 s, with the last line
of the log among the blocks of tables. The next redo write needs this line and waits until the disk has it.

Limits: it runs only on a model. Whether the disks of the machine have a tail at all depends on their parameters: a disk
that is never busy with anything else has none to remove. If the longest commit without a flash log takes less than 100
times the median, the verdict is withheld and the exit code is 1, because the effect that the source saw (290 times)
cannot be judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbdyno.study.library.flash_log import race_plan
from dbdyno.study.plan.factors import numbers
from dbdyno.study.plan.plan import Judge, Plan, Workload
from dbdyno.study.plan.study import Factor, Study

TAIL_TIMES = 100.0
"""Smallest ratio of the longest commit to the median that permits a verdict; the source measured 290."""
QUICK = 3_000
"""Number of transactions per session in a block with `--quick`."""


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    (longest,) = numbers(options["longest"], "longest")[:1]
    longest = longest // 20 if quick else longest
    (blocks,) = numbers(options["blocks"], "blocks")[:1]
    judge = Judge(headline="p99.9", operation="commit", longest=longest, tail_times=TAIL_TIMES)
    workload = Workload(kind="update-loop", parameters={"blocks": blocks})
    plan = race_plan(STUDY, options, quick, judge, workload)
    # A block has to be as long as the controllers' interval between two flushes.
    return replace(plan, schedule=replace(plan.schedule, transactions=QUICK)) if quick else plan


STUDY = Study(
    name="flash-log-tail",
    question="Does a flash log take away the longest commits?",
    workload="Forty sessions, each with 100,000 single-row updates and a commit after each (update-loop): 4 "
    "million commits with and 4 million without a flash log. The 10,000 longest of all 8 million "
    "are analysed separately.",
    targets="models with storage cells: --target model:exadata-x2 by default",
    source="Guy Harrison, 2012: the 10,000 longest of 8 million 'log file sync' waits, 40 sessions (E10)",
    found_there="Extreme outliers, 291,780 us among waits of about 1,000 us, were gone or reduced "
    "with the flash log. The source shows a chart and gives no counts.",
    factors=(
        Factor("flash_log", "arms, base first", "off,on"),
        Factor("sessions", "concurrent sessions", "40"),
        Factor("commits", "commits of each session in each arm, over all blocks", "100000"),
        Factor("longest", "how many of the longest are analysed separately", "10000"),
        Factor("blocks", "blocks of the table; the machine has 10,000 buffers", "60000"),
    ),
    make=_plan,
    target="model:exadata-x2",
)
