"""What a bench answers that changes nothing, keeps nothing open and needs no help to stop: a beginning for new kinds.

A kind that derives from this has `can`, `prepare`, `facts`, `watch` and `run` left to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.bench.protocol import Circumstances, Ready, Traits

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Arm, Plan


class QuietBench:
    """A bench without anything to put back."""

    traits = Traits(interrupted="nothing was changed")

    def __init__(self, plan: Plan, around: Circumstances) -> None:
        self.plan, self.around = plan, around

    @staticmethod
    def orders(plan: Plan, target: str | None) -> list[str]:
        """Nothing that the user is not shown anyway."""
        return []

    def describe(self) -> str:
        """The plan's title and arms."""
        arms = [f"arm {arm.name!r} {arm.description}".rstrip() for arm in self.plan.arms]
        return "\n".join([self.plan.title, self.plan.question, "", *arms, "", "nothing was run", ""])

    def retime(self, ready: Ready) -> None:
        """Slices and turns stay as they are."""

    def begin(self, run: Run, resumed: int) -> None:
        """Nothing is changed."""

    def progress(self) -> tuple[str, int]:
        """Told by the recorder."""
        return "", 0

    def stop(self) -> None:
        """Turns look whether to stop."""

    def put_back(self) -> None:
        """Nothing was changed."""


def arm_row(plan: Plan, arm: Arm, **more: Any) -> dict[str, Any]:
    """An arm as a manifest has it; `more` stands for what a kind knows better."""
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
