"""Rules on what a store keeps by age, such as `minute:2d, hour:60d, day:2y`.

This example keeps one snapshot per minute for two days, one per hour until 60 days, one per day until two years, and
then none. Counters are cumulative: the difference of two remaining snapshots is the sum over all sub-intervals between
them. Ages are measured from the target's latest snapshot, or from this machine's time if that is earlier, so that a
single wrong clock deletes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.store.folder import Snapshot

SECOND = 1_000_000_000
STEPS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
AGES = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}
_RULE = re.compile(r"\s*(all|minute|hour|day|week)\s*:\s*(\d{1,6})\s*([hdwmy])\s*")
EXAMPLE = "minute:2d, hour:60d, day:2y"


@dataclass(frozen=True, order=True)
class Rule:
    """One snapshot per `step_ns` (0: all) is kept up to the age `age_ns`."""

    age_ns: int
    step_ns: int


def rules_of(text: str) -> list[Rule]:
    """Return the rules in a text, shortest age first.

    Raises:
        SnapshotError: The text is not valid, or a coarser step ends before a finer one.
    """
    found = []
    for part in text.split(","):
        match = _RULE.fullmatch(part)
        if match is None:
            raise SnapshotError(
                f"{part.strip()!r} is not a retention rule",
                where="--keep",
                next_step=f"write STEP:AGE such as '{EXAMPLE}'; steps: all, {', '.join(STEPS)}; ages: 12h 2d 3w 6m 2y",
            )
        found.append(Rule(int(match[2]) * AGES[match[3]] * SECOND, STEPS.get(match[1], 0) * SECOND))
    found.sort()
    steps = [rule.step_ns for rule in found]
    if steps != sorted(set(steps)) or len({rule.age_ns for rule in found}) < len(found) or not found[0].age_ns:
        raise SnapshotError(
            f"the steps and ages in {text!r} contradict each other",
            where="--keep",
            next_step="give each coarser step a longer age than the finer steps",
        )
    return found


def numbers_to_keep(chain: Sequence[Snapshot], rules: Sequence[Rule], now_ns: int) -> set[int]:
    """Return the numbers of the snapshots that the rules keep: the first of each step, and the latest one."""
    now_ns = min(now_ns, chain[-1].at_ns)
    kept: dict[tuple[int, int], int] = {}
    stay = {chain[-1].number}
    for one in chain:
        rule = next((rule for rule in rules if now_ns - one.at_ns < rule.age_ns), None)
        if rule is not None and rule.step_ns:
            kept.setdefault((rule.step_ns, one.at_ns // rule.step_ns), one.number)
        elif rule is not None:
            stay.add(one.number)
    return stay | set(kept.values())


def oldest_covered(chain: Sequence[Snapshot], rules: Sequence[Rule], now_ns: int) -> int:
    """Return the first number that any rule still covers; breaks before it need not be kept."""
    now_ns = min(now_ns, chain[-1].at_ns)
    young = [one.number for one in chain if now_ns - one.at_ns < rules[-1].age_ns]
    return min(young, default=chain[-1].number)
