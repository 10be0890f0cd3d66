"""Race: the arms run block after block, and arms that are certainly worse are dropped.

After each block that counts, every arm's value goes to `stats/sequential.py`; the next block runs among the remaining
arms. The race ends if one arm remains, if the remaining arms are equal, if the time limit is reached, or after the last
planned block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from dbdyno.stats.metrics import metric_named
from dbdyno.stats.sequential import ArmRatio, Race
from dbdyno.study.analysis.measured.measures import QUANTILES, expected_of, operation_of, part_of, summaries, throughput
from dbdyno.study.run.runner import Runner

if TYPE_CHECKING:
    from dbdyno.base.core_types import Summary
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.schedule import PlannedBlock

FAILED_MOST = 0.05


class RaceRunner(Runner):
    """Runner of a race, in which arms are dropped; `seconds` limits its duration, None means no limit."""

    side_by_side = False

    def __init__(self, *around: Any, seconds: float | None = None) -> None:
        super().__init__(*around)
        self.seconds = seconds

    def run_blocks(self, todo: Sequence[PlannedBlock]) -> None:
        """Run these blocks like `Runner.run_blocks`; record in the manifest's `race` when and why arms were dropped."""
        judge = self.ready.plan.judge
        self.failed: dict[str, float] = {}
        self.race = Race(len(self.ready.plan.arms), judge.level, judge.threshold)
        super().run_blocks(todo)

    def _one_by_one(self, todo: Sequence[PlannedBlock]) -> None:
        began, end = time.monotonic(), "blocks"
        for planned in todo:
            self.stopping.check()
            if self.seconds is not None and time.monotonic() - began > self.seconds and self.race.blocks > 2:
                end = "time"
                break
            block = self.ready.blocks[planned.index]
            counts = block.kind == "measure"
            self._block(replace(block, among=tuple(self.race.alive)) if counts else block)
            if counts and (end := self._process_block(block.index)):
                break
            end = "blocks"
        self.run.save(race={**to_json(self.race, end, self.names), "failed": self.failed})

    def _process_block(self, index: int) -> str:
        """Process the values of a block, and return why the race is over; empty if it goes on."""
        rows = dict(rows_of_block(self.run, index))
        for arm, share in failing_arms(rows).items():
            if arm in self.race.alive and len(self.race.alive) > 1:
                self.race.drop_arm(arm)
                self.failed[self.names[arm]] = share
                self.progress.note(f"{self.names[arm]} is dropped: {100 * share:.3g} % of its transactions failed")
        for one in self.race.add_block(numbers(rows, self.headline())):
            self.progress.note(
                f"{self.names[one.arm]} is dropped: {self.names[one.by]} is {one.apart.ratio:.3g} times as good "
                f"({one.apart.low:.3g} to {one.apart.high:.3g})"
            )
        if len(self.race.alive) == 1:
            return "one"
        return "equal" if self.race.remaining_are_equal else ""

    def headline(self) -> str:
        """Return the metric that decides the race."""
        from dbdyno.stats.metrics import default_headline

        plan = self.ready.plan
        return plan.judge.headline or default_headline("open" if plan.is_open_loop else "closed")


def rows_of_block(run: Run, index: int) -> Iterator[tuple[int, Summary]]:
    """Yield the summary of each arm in a block."""
    block = next(block for block in run.blocks() if block.index == index)
    names = [arm["name"] for arm in run.manifest.arms]
    for row in summaries([[part_of(run, block)]], list(QUANTILES.values()), operation_of(run), expected_of(run)):
        if row["arm"] in names:
            yield names.index(row["arm"]), row


def failing_arms(rows: Mapping[int, Summary]) -> dict[int, float]:
    """Return the arms in which more than 5 % of the transactions of a block failed, with that share."""
    shares = {arm: row["failed"] / max(row["failed"] + row["transactions"], 1) for arm, row in rows.items()}
    return {arm: share for arm, share in shares.items() if share > FAILED_MOST}


def numbers(rows: Mapping[int, Summary], headline: str) -> dict[int, float]:
    """Return each arm's value in a block, inverted if smaller is better; arms without a value are left out."""
    metric = metric_named(headline)
    found: dict[int, float] = {}
    for arm, row in rows.items():
        if not row["count"]:
            continue
        value: float | None
        if headline == "throughput":
            value = throughput(row)
        elif headline == "mean":
            value = row["mean_ns"]
        else:
            value = row["quantiles_ns"][list(QUANTILES).index(headline)]
        if value and value > 0 and math.isfinite(value):
            found[arm] = value if metric.higher_is_better else 1 / value
    return found


def _json(apart: ArmRatio) -> dict[str, object]:
    """Return the values in JSON types; None replaces an infinite or unknown value."""
    return {name: value if math.isfinite(value) else None for name, value in asdict(apart).items()}


def to_json(race: Race, end: str, names: Sequence[str]) -> dict[str, object]:
    """Return a race as JSON values for a manifest."""
    leader = race.leader
    return {
        "blocks": race.blocks,
        "end": end,
        "leader": leader,
        "alive": list(race.alive),
        "dropped": [{**asdict(one), "apart": _json(one.apart)} for one in race.dropped],
        "against": [None if arm == leader else _json(race.compare(arm, leader)) for arm in range(len(names))],
        "ran": sum(len([v for v in logs if not math.isnan(v)]) for logs in race.logs),
    }
