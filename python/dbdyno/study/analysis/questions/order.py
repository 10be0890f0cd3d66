"""Comparison of orders of a data flow's steps: the cost of the order as written, and the effect of the optimizer.

For each engine and size there are four ratios of mean times, each with an interval over blocks. All intervals of a run
hold jointly at the confidence level (Bonferroni, as in `stats.levels`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbdyno.base.decisions import PROVISIONAL
from dbdyno.base.errors import StatsError
from dbdyno.evidence.run import Run
from dbdyno.stats.gates import enough_blocks
from dbdyno.stats.means import Estimate, mean_interval
from dbdyno.stats.wording import change_of, percent
from dbdyno.study.analysis.contract.rows import Model, OrderRow, RatioRow
from dbdyno.study.analysis.measured.measures import Measures

if TYPE_CHECKING:
    from dbdyno.stats.decide import WithheldVerdict

QUESTIONS = {
    "written": (("bad", "off"), ("good", "off")),
    "given back": (("bad", "on"), ("bad", "off")),
    "left": (("bad", "on"), ("good", "on")),
    "done": (("good", "on"), ("good", "off")),
}
"""Comparisons made for each engine: which two arms are compared, by order and optimizer."""
START_SHARE = 0.5
"""Share of the fastest arm's time above which the start-up of a flow is reported with the effect of the order."""
Key = tuple[str, str]


@dataclass(frozen=True)
class Ratio(Estimate):
    """Ratio of two times with its interval; a difference of less than `matters` (a share) counts as no difference."""

    matters: float

    @property
    def slower(self) -> bool:
        """Return True if the numerator is certainly slower, by more than `matters`."""
        return self.low > 1 + self.matters

    @property
    def faster(self) -> bool:
        """Return True if the numerator is certainly faster, by more than `matters`."""
        return self.high < 1 / (1 + self.matters)

    @property
    def alike(self) -> bool:
        """Return True if there is certainly no difference that matters."""
        return self.low >= 1 / (1 + self.matters) and self.high <= 1 + self.matters

    def choose(self, alike: str, slower: str, faster: str, unknown: str) -> str:
        """Return the argument that describes the ratio: `alike`, `slower`, `faster`, or else `unknown`."""
        return alike if self.alike else slower if self.slower else faster if self.faster else unknown

    def row(self) -> RatioRow:
        """Return the ratio as a row of the model."""
        return {"ratio": self.value, "low": self.low, "high": self.high}

    def as_text(self) -> str:
        """Return the change in words, with its interval."""
        return change_of(self.value, self.low, self.high, higher_is_better=False)


TITLES = {"pig": "Pig", "spark": "Spark", "duckdb": "DuckDB", "postgres": "PostgreSQL"}


def add(model: Model, measures: Measures, run: Run, without: Mapping[str, WithheldVerdict]) -> None:
    """Add `order` to the model, and put the answer for each engine first in the verdict.

    `without` has the arms that get no verdict; an engine with such an arm gets no answer.
    """
    judge, floors = run.manifest.plan["judge"], run.manifest.flows["floor_ns"]
    groups = list(_groups(run))
    alpha = (1 - judge["level"]) / max(1, len(groups) * len(QUESTIONS))
    rows: list[OrderRow] = []
    for engine, lines, arms in groups:
        held = next((without[own] for at in arms.values() if (own := measures.arms[at].label) in without), None)
        row: OrderRow = {"engine": engine, "lines": lines, "floor_ns": float(floors[engine])}
        try:
            found = {} if held else _ratios(measures, arms, 1 - alpha, judge["threshold"])
        except StatsError as error:
            found, row["sentence"] = {}, f"no answer: {error.message}"
        if held:
            row["sentence"] = f"no answer: {held.reason}"
        if found:
            best = min(float(np.nanmean(measures.arms[at].values["mean"])) for at in arms.values())
            row |= {"written": found["written"].row(), "given_back": found["given back"].row()}
            row |= {"left": found["left"].row(), "done": found["done"].row()}
            row["sentence"] = _sentence(found, row["floor_ns"] / best)
        rows.append(row)
    sized = len({lines for _, lines, _ in groups}) > 1
    model["order"] = rows
    verdict = model["verdict"]
    if any("written" in row for row in rows):
        verdict["headline"] = _headline(rows, sized, judge["threshold"])
        enough = enough_blocks(len(measures.arms[0].blocks), judge["level"])
        verdict["decision"] = PROVISIONAL if enough.ok is False else "found"
    verdict["sentences"] = [f"{_row_name(row, sized)}: {row['sentence']}" for row in rows]


def _groups(run: Run) -> Iterator[tuple[str, int, dict[Key, int]]]:
    """Yield each engine and number of rows, with the indexes of its arms by order and optimizer."""
    found: dict[tuple[str, int], dict[Key, int]] = {}
    for at, arm in enumerate(run.manifest.plan["arms"]):
        own = arm["levels"]
        found.setdefault((own["engine"], int(own["lines"])), {})[own["order"], own["optimizer"]] = at
    for (engine, lines), arms in found.items():
        yield engine, lines, arms


def _ratios(measures: Measures, arms: Mapping[Key, int], level: float, matters: float) -> dict[str, Ratio]:
    """Return the ratio that answers each question in `QUESTIONS`.

    Raises:
        StatsError: Two arms have fewer than two blocks in common.
    """
    found = {}
    for name, (one, base) in QUESTIONS.items():
        logs = [np.log(measures.arms[arms[key]].values["mean"]) for key in (one, base)]
        ends = mean_interval(logs[0] - logs[1], level)
        if not all(map(math.isfinite, ends)):
            raise StatsError("two arms have fewer than two blocks in common", next_step="run more blocks")
        value, low, high = (math.exp(end) for end in ends)
        found[name] = Ratio(value, low, high, matters)
    return found


def _sentence(found: Mapping[str, Ratio], start: float) -> str:
    """Return the sentence on one engine: cost of the order as written, cost left after optimization, and any harm.

    Harm means that the optimizer makes the good order slower. `start` is the time of a flow over almost no rows as a
    share of the fastest arm's time.
    """
    written, left, done = found["written"], found["left"], found["done"]
    matters = f"{100 * written.matters:g} %"
    costs = written.choose(
        f"as written, the order makes no difference larger than {matters}",
        f"as written, the bad order is {written.as_text()}",
        f"as written, the supposedly bad order is {written.as_text()}",
        f"as written, the cost of the bad order is not known: {written.as_text()}",
    )
    rest = left.choose(
        f"optimized, the order you write makes no difference larger than {matters}",
        f"optimized, the bad order is still {left.as_text()}",
        f"optimized, the bad order is even {left.as_text()} than the good one",
        f"optimized, the bad order is probably {left.as_text()}",
    )
    made = f"the optimizer makes a good order {done.as_text()}"
    harm = done.choose("", made, f"{made} still", "")
    told = [costs, rest, *([harm] if harm else [])]
    if start >= START_SHARE:
        share = percent(min(start, 1.0))
        told.append(f"{share} % of the fastest arm's time is planning and startup, which even very few rows need")
    return "; ".join(told)


def _row_name(row: OrderRow, sized: bool) -> str:
    title = TITLES.get(row["engine"], row["engine"])
    return f"{title}, {row['lines']:,} lines" if sized else title


def _headline(rows: list[OrderRow], sized: bool, matters: float) -> str:
    """Return the answer over all engines: where the order costs most, and which optimizers make up for it."""
    known = [row for row in rows if "written" in row]
    worst = max(known, key=lambda row: row["written"]["ratio"])
    w = worst["written"]
    if w["low"] > 1 + matters:
        change = change_of(w["ratio"], w["low"], w["high"], higher_is_better=False)
        cost = f"Without an optimizer, a bad order is up to {change} ({_row_name(worst, sized)})."
    else:
        cost = f"In no engine does a bad order surely cost more than {100 * matters:g} %."
    gives = [_row_name(row, sized) for row in known if row["given_back"]["high"] < 1 / (1 + matters)]
    leaves = [_row_name(row, sized) for row in known if row["left"]["low"] > 1 + matters]
    harms = [_row_name(row, sized) for row in known if row["done"]["low"] > 1 + matters]
    told = [cost]
    if gives:
        told.append(f"The optimizer makes it faster in {', '.join(gives)}.")
    if leaves:
        told.append(f"With it a cost is left in {', '.join(leaves)}.")
    if harms:
        told.append(f"A good order it makes slower in {', '.join(harms)}.")
    return " ".join(told)
