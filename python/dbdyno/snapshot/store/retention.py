"""What a store keeps of its age: `minute:2d, hour:60d, day:2y`.

Read: of each minute one snapshot for two days, of each hour one until 60 days, of each day one
until two years, and then none. Counters are cumulative: the difference of two that stay is the sum
over all between them. Ages are counted from the target's latest snapshot, or from this machine's
time if that is earlier, so that one clock that is wrong deletes nothing.
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
    """Until the age `age_ns` one snapshot of each `step_ns` stays (0: all)."""

    age_ns: int
    step_ns: int


def rules_of(text: str) -> list[Rule]:
    """The rules of a text, the youngest first. Raises `SnapshotError` where it is none, or where a coarser step ends
    before a finer one."""
    found = []
    for part in text.split(","):
        match = _RULE.fullmatch(part)
        if match is None:
            raise SnapshotError(
                f"{part.strip()!r} is no rule",
                where="--keep",
                next_step=f"write STEP:AGE such as '{EXAMPLE}'; steps: all, {', '.join(STEPS)}; ages: 12h 2d 3w 6m 2y",
            )
        found.append(Rule(int(match[2]) * AGES[match[3]] * SECOND, STEPS.get(match[1], 0) * SECOND))
    found.sort()
    steps = [rule.step_ns for rule in found]
    if steps != sorted(set(steps)) or len({rule.age_ns for rule in found}) < len(found) or not found[0].age_ns:
        raise SnapshotError(
            f"{text!r} contradicts itself", where="--keep", next_step="a coarser step stays longer than a finer one"
        )
    return found


def chosen(chain: Sequence[Snapshot], rules: Sequence[Rule], now_ns: int) -> set[int]:
    """The numbers of those that stay by age: the first of each step, and the latest."""
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


def oldest(chain: Sequence[Snapshot], rules: Sequence[Rule], now_ns: int) -> int:
    """The first number that some rule still reaches; breaks before it need not be kept."""
    now_ns = min(now_ns, chain[-1].at_ns)
    young = [one.number for one in chain if now_ns - one.at_ns < rules[-1].age_ns]
    return min(young, default=chain[-1].number)
