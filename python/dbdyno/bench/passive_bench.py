"""Base class for benches that change nothing, keep nothing open and need no special stop.

A kind that derives from it only has to implement `refusal`, `prepare`, `facts`, `watch` and `run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.protocol import BenchContext, RunLayout, Traits

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Arm, Plan


class PassiveBench:
    """Base class of a bench that has nothing to undo."""

    traits = Traits(interrupted="nothing was changed")

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        self.plan, self.around = plan, around

    @staticmethod
    def side_effects(plan: Plan, target: str | None) -> list[str]:
        """Return an empty list: whatever the bench does outside of dbdyno is shown to the user anyway."""
        return []

    def describe(self) -> str:
        """Return the plan's title, question and arms as text."""
        arms = [f"arm {arm.name!r} {arm.description}".rstrip() for arm in self.plan.arms]
        return "\n".join([self.plan.title, self.plan.question, "", *arms, "", "nothing was run", ""])

    def retime(self, ready: RunLayout) -> None:
        """Do nothing: slices and turns keep their lengths."""

    def begin(self, run: Run, resumed: int) -> None:
        """Do nothing: nothing is changed for the run."""

    def progress(self) -> tuple[str, int]:
        """Return an empty progress; the recorder reports it instead."""
        return "", 0

    def stop(self) -> None:
        """Do nothing: running turns check for a stop request themselves."""

    def restore(self) -> None:
        """Do nothing: nothing was changed."""


def arm_row(plan: Plan, arm: Arm, **more: Any) -> JsonObject:
    """Return an arm as a row of the manifest; `more` overrides fields or adds those specific to the bench."""
    return {
        "name": arm.name,
        "description": arm.description,
        "sessions": plan.sessions_of(arm),
        "rate_per_s": plan.rate_of(arm),
        "target": plan.dsn,
        "changes": {**arm.settings, **{key: str(value) for key, value in arm.parameters.items()}},
        "how": {},
        "was": {},
        "against": arm.against,
        **more,
    }
