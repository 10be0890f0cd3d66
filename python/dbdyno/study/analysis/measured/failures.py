"""Failures by arm, statement, SQLSTATE, engine number and message, in the blocks and slices that count.

Expected errors are counted separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from dbdyno.study.analysis.contract.parts import FailureRow
from dbdyno.study.analysis.contract.rows import Caution, Model
from dbdyno.study.analysis.measured.measures import Measures
from dbdyno.study.plan.conditions import class_of, condition_of, meaning

TRANSACTION = "transaction"

_SQL = """
with counted as (
  select arm, kind, statement, error, vendor_code, message, expected from calls semi join slices
    on calls.block = slices.block and calls.slice = slices.slice and slices.counts
  where kind <> 'skipped'
), tried as (
  select arm, kind, statement, count(*) as tried from counted group by all
), failed as (
  select arm, kind, statement, error, vendor_code, message, coalesce(expected, list_contains($1::varchar[], error))
    as expected, count(*) as failed
  from counted where error is not null group by all
)
select arm, kind, statement, error, vendor_code, message, expected, failed, tried
from failed join tried using (arm, kind, statement)
order by failed desc, arm, statement, error, vendor_code, message
"""


@dataclass(frozen=True)
class Failures:
    """Failures of a run.

    Attributes:
        rows: One row per arm, statement, SQLSTATE, error number and message, the most frequent first.
        codes: Number of failed transactions by SQLSTATE, per arm.
        expected: Number of transactions that ended in an expected error by SQLSTATE, per arm.
    """

    rows: list[FailureRow]
    codes: list[dict[str, int]]
    expected: list[dict[str, int]]


def failures_of_run(connection: Any, measures: Measures) -> Failures:
    """Return the failures of a run.

    A script with several commands has a row for each command that failed. The script itself has a row only for errors
    that belong to none of its commands, or if it has a single command.
    """
    codes: list[dict[str, int]] = [{} for _ in measures.arms]
    expected: list[dict[str, int]] = [{} for _ in measures.arms]
    if not connection.execute("select 1 from calls where error is not null limit 1").fetchall():
        return Failures([], codes, expected)
    places = {arm.name: at for at, arm in enumerate(measures.arms)}
    names = ("arm", "kind", "statement", "sqlstate", "vendor_code", "message", "expected", "failed", "tried")
    found = connection.execute(_SQL, [measures.expected]).fetchall()
    rows = [dict(zip(names, row, strict=True)) for row in found]
    rows = [{**row, "arm": places[row["arm"]]} for row in rows if row["arm"] in places]
    of_commands: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = _failure_key(row)
        own = (expected if row["expected"] else codes)[row["arm"]]
        if row["kind"] == TRANSACTION:
            own[row["sqlstate"]] = own.get(row["sqlstate"], 0) + row["failed"]
        else:
            of_commands[key] = of_commands.get(key, 0) + row["failed"]
    told = [
        cast(
            "FailureRow",
            {
                **{key: value for key, value in row.items() if value is not None},
                "meaning": meaning(row["sqlstate"]),
                "error_class": class_of(row["sqlstate"]),
                **({"condition": name} if (name := condition_of(row["vendor_code"])) else {}),
            },
        )
        for row in rows
        if row["kind"] != TRANSACTION or of_commands.get(_failure_key(row), 0) < row["failed"]
    ]
    return Failures(told, codes, expected)


def _failure_key(row: dict[str, object]) -> tuple[Any, ...]:
    """Return the columns that are the same for a failed command and for its failed transaction."""
    return row["arm"], row["sqlstate"], row["vendor_code"], row["message"], row["expected"]


def add_expected(model: Model, measures: Measures, failures: Failures) -> None:
    """Add the number of expected errors to each arm, if the plan expects any."""
    for arm, own in zip(model["arms"], failures.expected if measures.expected else (), strict=False):
        arm["expected_codes"] = own


def differing_failures(measures: Measures, failures: Failures, threshold: float) -> list[Caution]:
    """Return a warning for each arm whose share of an expected error certainly differs from that of its base.

    Such arms had different outcomes, so their times are not for the same work.
    """
    from dbdyno.stats.gates_losses import Losses, LossWording, equal_losses

    found: list[Caution] = []
    for at, arm in measures.compared_arms():
        base = measures.arms[arm.base]
        apart = []
        for code in dict.fromkeys([*failures.expected[arm.base], *failures.expected[at]]):
            words = LossWording("expected errors", "expected errors", "transactions", f"ended in {code}", "")
            own, usual = (
                Losses(
                    one.label, failures.expected[number].get(code, 0), one.total("transactions") + one.total("failed")
                )
                for number, one in ((at, arm), (arm.base, base))
            )
            gate = equal_losses(own, usual, words, threshold)
            apart += [gate.text] if gate.ok is False else []
        if apart:
            next_step = "note that these times belong to different outcomes"
            found.append({"code": "expected errors", "text": "; ".join(apart), "next": next_step})
    return found
