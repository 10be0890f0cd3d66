"""Changes of the statements of two sets of traces: plan, executions, rows, gets, reads.

Amounts are totals of the sets if both did the same work (the same executions, rows or transactions, within
`SAME_WORK`). Otherwise amounts and effects are per transaction or per execution of the client, whichever unit makes
more statements equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dbdyno.base.json_types import TableRow
from dbdyno.stats.comparison import ComparisonRow
from dbdyno.study.analysis.traces.account import Account, Statement
from dbdyno.study.analysis.traces.statement_matching import MatchedStatement
from dbdyno.study.analysis.traces.turns import COMMIT, HARD

Basis = Literal["run", "execution", "transaction"]
SAME_WORK = 1.02
TRANSACTIONS_LEAST = 20
"""Smallest number of transactions that can serve as a measure of the work done."""
NOTABLE = 1.1
"""Ratio above which an amount counts as changed."""
NOTABLE_GETS = 1.25
"""Ratio above which buffer gets count as changed; it is larger because read consistency makes gets vary."""
PLAN_SHARE = 0.1
"""Smallest share of a statement's time in plans that only one set has, to count as a change of plan."""
MOST = 30


@dataclass(frozen=True)
class Change:
    """A statement of either set: its sums in each set (None if it is missing there), and what changed.

    Changes are `new`, `gone`, `plan`, `executions`, `rows`, `fetches`, `gets`, `reads`, `hard parses`.
    """

    known: MatchedStatement
    sides: tuple[Statement | None, Statement | None]
    scales: tuple[float, float]
    what: tuple[str, ...]

    def per_execution(self, name: str) -> tuple[float, float]:
        """Return a value of the statement per execution, in both sets."""
        found = [getattr(s, name) / max(s.executions, 1) if s else 0.0 for s in self.sides]
        return found[0], found[1]

    def executions(self) -> tuple[float, float]:
        """Return the number of the statement's executions in both sets, on the scale of the comparison."""
        found = [s.executions * scale if s else 0.0 for s, scale in zip(self.sides, self.scales, strict=True)]
        return found[0], found[1]

    def time_ns(self) -> tuple[float, float]:
        """Return the statement's exclusive time in both sets, on the scale of the comparison [ns]."""
        found = [s.time_ns * scale if s else 0.0 for s, scale in zip(self.sides, self.scales, strict=True)]
        return found[0], found[1]

    def plans(self) -> tuple[str, str]:
        """Return the plan with the most time in each set; empty if no plan is known."""
        found = [max(s.plans, key=s.plans.__getitem__) if s and s.plans else "" for s in self.sides]
        return found[0], found[1]

    @property
    def reason(self) -> str:
        """Return what explains a change of the time per execution; empty if nothing does."""
        return next((name for name in ("plan", "rows", "fetches", "gets") if name in self.what), "")


def basis_of(first: Account, second: Account) -> Basis:
    """Return "run" (totals are compared) if the sets did the same work, else the unit by which times are divided.

    If an application executes more statements in each transaction for the same result, it would look faster per
    execution.
    """
    if not first.executions or not second.executions or not differ(first.executions, second.executions, SAME_WORK):
        return "run"
    if first.rows and second.rows and not differ(first.rows, second.rows, SAME_WORK):
        return "run"
    both = [
        (statement.executions, second.statements[key].executions)
        for key, statement in first.statements.items()
        if key in second.statements and statement.depth == 0 and key not in (COMMIT, HARD)
    ]
    sums = [sum(pair[at] for pair in both) for at in (0, 1)]
    halves = all(2 * part >= whole.executions for part, whole in zip(sums, (first, second), strict=True))
    if halves and not differ(sums[0], sums[1], SAME_WORK):
        return "run"
    if not are_transactions_alike(first, second):
        return "execution"
    return "transaction" if differ(first.commits, second.commits, SAME_WORK) else "run"


def are_transactions_alike(first: Account, second: Account) -> bool:
    """Return True if transactions are a better common unit for two traces than executions are.

    They are better if the number of client statements with equal executions per transaction is larger than the number
    of those with an equal share of all executions.
    """
    if min(first.commits, second.commits) < TRANSACTIONS_LEAST:
        return False

    def alike(units: tuple[int, int]) -> int:
        return sum(
            not differ(statement.executions * units[1], second.statements[key].executions * units[0])
            for key, statement in first.statements.items()
            if key in second.statements and statement.depth == 0 and key not in (COMMIT, HARD)
        )

    return alike((first.commits, second.commits)) > alike((first.executions, second.executions))


def differ(one: float, two: float, ratio: float = NOTABLE) -> bool:
    """Return True if two amounts differ by more than a ratio."""
    low, high = sorted((one, two))
    return high > 0 and high > low * ratio


def changes(
    accounts: tuple[Account, Account], known: dict[str, MatchedStatement], scales: tuple[float, float]
) -> dict[str, Change]:
    """Return every statement of either set with its changes."""
    found: dict[str, Change] = {}
    for key in dict.fromkeys([*accounts[0].statements, *accounts[1].statements]):
        sides = (accounts[0].statements.get(key), accounts[1].statements.get(key))
        about = known.get(key) or MatchedStatement(key, "", (1, 1))
        bare = Change(about, sides, scales, ())
        found[key] = Change(about, sides, scales, tuple(_changed_figures(bare)))
    return found


def _changed_figures(change: Change) -> list[str]:
    one, two = change.sides
    if one is None or two is None or not (one.executions or one.fetches) or not (two.executions or two.fetches):
        return ["new" if one is None or not one.executions else "gone"] if bool(one) != bool(two) else []
    found = ["plan"] if _other_plan(one, two) else []
    found += ["executions"] if differ(*change.executions()) else []
    for name, ratio in (("rows", NOTABLE), ("fetches", NOTABLE), ("gets", NOTABLE_GETS), ("reads", NOTABLE_GETS)):
        found += [name] if differ(*change.per_execution(name), ratio) else []
    found += ["hard parses"] if differ(*change.per_execution("hard_parses"), 2) else []
    return found


def _other_plan(first: Statement, second: Statement) -> bool:
    """Return True if plans with a notable share of the time in one set are missing in the other set."""
    if not first.plans or not second.plans:
        return False
    for mine, other in ((first.plans, second.plans), (second.plans, first.plans)):
        whole = sum(mine.values()) or 1
        if sum(time for plan, time in mine.items() if plan not in other) >= PLAN_SHARE * whole:
            return True
    return False


def rows_of(
    found: dict[str, Change], judged: Mapping[str, ComparisonRow], response_ns: Sequence[float]
) -> list[dict[str, object]]:
    """Return the statements whose time or plan changed, largest difference first, as in JSON and on the pages.

    `judged` has, by statement, the comparison of the time per execution, if both sets have several executions.
    """
    least = 0.005 * max(response_ns)
    rows: list[TableRow] = []
    for key, change in found.items():
        times = change.time_ns()
        difference = times[1] - times[0]
        if abs(difference) < least and not ("plan" in change.what and max(times) >= least):
            continue
        rows.append(
            {
                "statement": key,
                "text": change.known.text,
                "texts": list(change.known.texts),
                "depth": min(s.depth for s in change.sides if s),
                "what": list(change.what),
                "difference_ns": difference,
                "sides": [_side(change, at) for at in (0, 1)],
                "time": judged.get(key),
            }
        )
    return sorted(rows, key=lambda row: -abs(row["difference_ns"]))[:MOST]


def _side(change: Change, at: int) -> dict[str, object] | None:
    side = change.sides[at]
    if side is None:
        return None
    names = ("rows", "gets", "reads", "fetches", "hard_parses", "time_ns", "cpu_ns")
    return {
        "executions": side.executions,
        "time_ns": side.time_ns,
        "plans": sorted(side.plans, key=lambda plan: -side.plans[plan]),
        "per_execution": {name: change.per_execution(name)[at] for name in names},
    }
