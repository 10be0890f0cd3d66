"""Study flash-log-tail: effect of a flash log on the longest commits.

It is like flash-log, but with forty sessions and with attention to the tail: the 10,000 longest commits of both arms
together, how many of them each arm has, and the high quantiles. Nothing is cut off.

Limits: on a model. Whether the disks of the machine have a tail at all depends on their parameters: a disk that is
never busy with anything else has no tail to remove. If the longest commit without a flash log takes less than 100 times
the median, the verdict is withheld, because the effect that the source saw cannot be judged (290 times there).
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.library.flash_log import commits_plan
from dbdyno.study.plan.factors import numbers
from dbdyno.study.plan.plan import Judge, Plan
from dbdyno.study.plan.study import Factor, Study

TAIL_TIMES = 100.0
"""Smallest ratio of the longest commit to the median for a verdict; it is 290 in the source."""


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    (longest,) = numbers(options["longest"], "longest")[:1]
    longest = longest // 20 if quick else longest
    return commits_plan(
        STUDY, options, quick, Judge(headline="p99.9", operation="commit", longest=longest, tail_times=TAIL_TIMES)
    )


STUDY = Study(
    name="flash-log-tail",
    question="Does a flash log take away the longest commits?",
    workload="Forty sessions, each of 100,000 updates of a row, each committed (commit-loop): 4 "
    "million commits with and 4 million without a flash log. The 10,000 longest of all 8 million "
    "are looked at apart.",
    targets="models with storage cells: --target model:exadata-x2 by default",
    source="Guy Harrison, 2012: the 10,000 longest of 8 million 'log file sync' waits, 40 sessions (E10)",
    found_there="Extreme outliers, 291,780 us among waits of about 1,000 us, were gone or reduced "
    "with the flash log. The source shows a picture and gives no counts.",
    factors=(
        Factor("flash_log", "arms, base first", "off,on"),
        Factor("sessions", "concurrent sessions", "40"),
        Factor("commits", "commits of each session in each arm, over all blocks", "100000"),
        Factor("longest", "how many of the longest are looked at apart", "10000"),
        Factor("redo_bytes", "redo of a transaction: a size, range or list", "512"),
    ),
    make=_plan,
    target="model:exadata-x2",
)
