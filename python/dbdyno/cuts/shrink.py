"""Shrinking of a failing cut: the smallest plan that still fails, and how to reproduce it.

A step makes the plan simpler in one way: one cut of a fresh database, no second cut in the recovery, one session, a
device without one of its faults, the default of one setting, whole sectors, an earlier cut. A step is kept if the cut
still fails. SQLite and dbdyno's own stores replay exactly; on a server with several sessions the order of changes
differs each time, so each step is tried several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dbdyno.cuts.campaign import run_campaign
from dbdyno.cuts.model import CutRow, ShrunkModel, is_survived
from dbdyno.cuts.plan import SECTORS, CutPlan

TRIES_MOST = 60
"""Maximum number of cuts that shrinking may take."""
EXACT = ("sqlite", "evidence")
"""Engines whose cuts can be reproduced exactly."""
REPEATS = 3
"""Number of tries per step for other engines."""


@dataclass(frozen=True)
class SmallestPlan:
    """The smallest plan found: `plan` fails at cut `number` with the campaign's seed.

    Attributes:
        plan: The plan.
        number: Number of the cut, from which its random choices follow.
        row: Findings after the cut.
        tries: Number of cuts that shrinking took.
        failures: How many of `repeats` further tries of the smallest plan failed.
        repeats: Number of these tries.
    """

    plan: CutPlan
    number: int
    row: CutRow
    tries: int
    failures: int
    repeats: int


class Shrinker:
    """Search for the smallest plan that fails at a cut."""

    def __init__(self, seed: int, number: int, note: Callable[[str], None] = lambda text: None) -> None:
        self._seed, self._number, self._note = seed, number, note
        self.tries = 0

    def failing_row(self, plan: CutPlan) -> CutRow | None:
        """Return the row of the cut if the plan fails there; None if it passes, or no tries are left."""
        for _ in range(1 if plan.engine in EXACT else REPEATS):
            if self.tries >= TRIES_MOST:
                return None
            if (row := self.try_cut(plan)) is not None:
                return row
        return None

    def try_cut(self, plan: CutPlan) -> CutRow | None:
        """Try the cut once; return its row if it fails."""
        self.tries += 1
        rows = run_campaign(plan, self._number, self._seed, only=self._number).rows
        last = rows[-1] if rows else None
        return last if last is not None and last["cut"] == self._number and not is_survived(last) else None

    def smallest_plan(self, plan: CutPlan, row: CutRow) -> tuple[CutPlan, CutRow]:
        """Return the smallest plan and its row; `plan` fails with `row`."""
        for words, simpler in _steps(plan):
            candidate = simpler(plan)
            if candidate != plan and (found := self.failing_row(candidate)) is not None:
                self._note(f"still fails with {words}")
                plan, row = candidate, found
        return self._earlier(plan, row)

    def _earlier(self, plan: CutPlan, row: CutRow) -> tuple[CutPlan, CutRow]:
        """Move the cut earlier: halve the number of changes while it still fails, then reduce it in smaller steps."""
        after = row["after_changes"]
        step = max(1, after // 2)
        while step and after > 1 and self.tries < TRIES_MOST:
            candidate = replace(plan, after_changes=max(1, after - step))
            found = self.failing_row(candidate) if candidate.after_changes != after else None
            if found is None:
                step //= 2
                continue
            plan, row, after = candidate, found, found["after_changes"]
            step = min(step, max(1, after // 2))
            self._note(f"still fails after {after} changes")
        return plan, row


def shrink(plan: CutPlan, seed: int, row: CutRow, note: Callable[[str], None] = lambda text: None) -> SmallestPlan:
    """Return the smallest plan that fails in the same way as a campaign's cut.

    Raises:
        DeviceError: Folders cannot be mounted here.
        TargetError: The engine cannot be created.
    """
    search = Shrinker(seed, row["cut"], note)
    least, last = search.smallest_plan(plan, row)
    tries, repeats = search.tries, 1 if plan.engine in EXACT else REPEATS
    failures = sum(search.try_cut(least) is not None for _ in range(repeats))
    return SmallestPlan(least, row["cut"], last, tries, failures, repeats)


def shrunk_model(shrunk: SmallestPlan) -> ShrunkModel:
    """Return the smallest plan of a failing cut, as shown on the page."""
    return {
        "cut": shrunk.number,
        "plan": shrunk.plan.to_toml(),
        "after_changes": shrunk.row["after_changes"],
        "tries": shrunk.tries,
        "failures": shrunk.failures,
        "repeats": shrunk.repeats,
    }


def _steps(plan: CutPlan) -> Iterator[tuple[str, Callable[[CutPlan], CutPlan]]]:
    """Yield simplifications of a plan, each with a description."""
    yield "one cut of a fresh database", lambda one: replace(one, cuts_of_a_database=1)
    yield "no cut in the recovery", lambda one: replace(one, recovery_percent=0)
    yield "one session", lambda one: replace(one, sessions=1)
    for fault in plan.fail:
        yield f"no {fault}", lambda one, out=fault: replace(one, fail=tuple(f for f in one.fail if f != out))  # type: ignore[misc]
    for name in plan.settings if plan.engine != "evidence" else ():
        yield f"the default of {name}", lambda one, out=name: _without_setting(one, out)  # type: ignore[misc]
    yield "whole pages", lambda one: replace(one, sector_bytes=max(SECTORS))
    yield "folders that become durable with any sync", lambda one: replace(one, names="with-files")


def _without_setting(plan: CutPlan, setting: str) -> CutPlan:
    return replace(plan, settings={name: value for name, value in plan.settings.items() if name != setting})
