"""N4: the tail of redo writes without and with the race."""

from __future__ import annotations

from dbdyno.model.claims.base import Claim, Part
from dbdyno.model.claims.bench import Arm, Bench
from dbdyno.model.claims.n02 import MACHINE, SYNC
from dbdyno.model.claims.n03 import EVERYWHERE

SESSIONS = 40
SLOW = 10


def measure(bench: Bench) -> list[Part]:
    """Longest sync over the median, share of slow ones, and what the race leaves of them."""
    arms = [
        Arm(name, EVERYWHERE, SESSIONS, {"cells.flash_log.enabled": value})
        for name, value in (("off", "false"), ("on", "true"))
    ]
    with bench.run(MACHINE, arms, transactions=400) as evidence:
        longest = evidence.of_arm("max(elapsed_ns) / median(elapsed_ns)", "waits", "off", SYNC)
        slow = {
            arm: evidence.values(
                f"with of_arm as (select block, elapsed_ns, median(elapsed_ns) over"  # noqa: S608
                f" (partition by block) as middle from waits where arm = '{arm}' and {SYNC})"
                f" select block, avg((elapsed_ns > {SLOW} * middle)::int) from of_arm group by block"
            )
            for arm in ("off", "on")
        }
    left = [
        on / off if off else float("nan") for off, on in zip(slow["off"], slow["on"], strict=True)
    ]
    return [
        Part("longest / median, without", longest, low=100),
        Part(f"share above {SLOW} medians, without", slow["off"], 1e-9, 1e-3),
        Part("of these left, with", left, high=0.5),
    ]


CLAIM = Claim(
    "N4",
    "Rare redo writes take over 100 medians, and the race removes most of them",
    "Harrison 2012 (E10): 291,780 us among about 1,000 us, in 8 million waits of 40 sessions",
    measure,
    (
        "Why it does not hold: nothing in the model delays a write into the controller's memory"
        " while it has room, and these loads do not fill it. The cells' parameters have a learn"
        " cycle of the battery and a common cause of delay; both are off, because no source says"
        " how often they come.",
        "What the race does to a tail that is there is tested against its closed form"
        " (crates/dyno-model/tests/cells.rs).",
    ),
)
