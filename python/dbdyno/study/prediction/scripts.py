"""An arm's scripts as steps of modelled sessions.

The script is run 1,000 times without a server, by the code of the load generator. So the rows that a statement locks
and the sizes that it writes have exactly the script's distribution.

Limits: a lock is recognised only if an UPDATE, a DELETE or a SELECT ... FOR UPDATE names one row by `column =
:variable`. If most of the rows in these runs are different, the rows are not locked in the model, because sessions
rarely conflict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbdyno.base.core_types import DrawnStatement, LoadArm
from dbdyno.base.errors import ModelError
from dbdyno.base.postgres_types import PostgresScript, PostgresStep
from dbdyno.study.plan.plan import Arm, Plan, Script

if TYPE_CHECKING:
    from dbdyno._core import Drawer

DRAWS = 1_000
"""Number of transactions that are generated from a script."""
REDO_POSITION = "redo position"
"""Kind of the call that queries the log position, which `\\redo` sends."""
_MARK = f"select '{REDO_POSITION}';"
_CHANGES = re.compile(r"^\s*(insert|update|delete|merge)\b|pg_logical_emit_message", re.IGNORECASE)
_EMITS = re.compile(r"pg_logical_emit_message", re.IGNORECASE)
_LOCKS = re.compile(
    r"^\s*(?:update|delete\s+from)\s+([\w.\"]+)|^\s*select\b.*\bfrom\s+([\w.\"]+).*\bfor\s+(?:no\s+key\s+)?update"
)
ROW = re.compile(r"\bwhere\s+[\w.\"]+\s*=\s*$", re.IGNORECASE)
_MET = 0.5
"""Share of distinct rows among the drawn rows above which sessions rarely conflict."""


@dataclass
class Steps:
    """An arm's scripts as steps of modelled sessions.

    Attributes:
        scripts: The scripts; the statement of a step is an index in `statements`.
        statements: Names of the statements, as in the evidence.
        kinds: Kind of each statement, as in the evidence.
        changes: For each statement, True if it writes.
        per_transaction: How often a transaction sends each statement, on average.
        notes: Sentences on what could not be modelled.
    """

    scripts: list[PostgresScript] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    changes: list[bool] = field(default_factory=list)
    per_transaction: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def round_trips(self) -> float:
        """Return the mean number of round trips of a transaction."""
        return sum(self.per_transaction)

    @property
    def writes(self) -> bool:
        """Return True if a transaction writes."""
        return any(self.changes)


def steps_of(plan: Plan, arm: Arm) -> Steps:
    """Return the steps of an arm.

    Raises:
        ModelError: A script depends on results from the server, or cannot be run without one.
    """
    found = Steps()
    scripts = plan.scripts_of(arm)
    if not scripts:
        raise ModelError("the arm has no script", where=f"arm {arm.name}", next_step="choose an arm with a script")
    total = sum(script.weight for script in scripts)
    for script in scripts:
        _add(found, script, plan, arm, script.weight / total)
    return found


def _add(found: Steps, script: Script, plan: Plan, arm: Arm, share: float) -> None:
    try:
        drawer = drawer_of(script, plan, arm)
        drawn = drawer.draw(0, DRAWS)
    except Exception as error:
        raise ModelError(
            f"the script's statements cannot be generated in advance: {error}",
            where=f"arm {arm.name}, script {script.name}",
            next_step="use a script whose statements do not depend on answers of the server",
        ) from error
    sent = drawer.statements()
    single = drawer.scripts()[0]["single"]
    first = drawn[0]["steps"]
    if any([at for at, _ in one["steps"]] != [at for at, _ in first] for one in drawn):
        found.notes.append(f"script {script.name}: transactions take different paths; the first drawn is used")
    steps: list[PostgresStep] = []
    pause_us = 0.0
    for place, (number, _) in enumerate(first):
        if number is None:
            pause_us += float(first[place][1][0])
            continue
        statement = sent[number]
        last = single or statement["kind"] == "commit"
        step: PostgresStep = {"statement": _index(found, statement, single), "commits": last}
        values = [one["steps"][place][1] for one in drawn if len(one["steps"]) > place]
        _with_row(step, statement, values, found)
        _with_sizes(step, statement, values)
        if pause_us:
            step["pause_us"], pause_us = pause_us, 0.0
        found.per_transaction[step["statement"]] += share
        steps.append(step)
    if steps and not any(step["commits"] for step in steps):
        steps[-1]["commits"] = True
    found.scripts.append({"weight": script.weight, "steps": steps})


def drawer_of(script: Script, plan: Plan, arm: Arm) -> Drawer:
    """Return a `Drawer`, which generates the statements that a load would send for an arm's script."""
    from dbdyno import _core

    text = re.sub(r"(?m)^[ \t]*\\redo[ \t]*$", _MARK, script.text)
    spec: LoadArm = {
        "name": arm.name,
        "connection": {"host": "127.0.0.1", "user": "nobody", "dbname": "nothing"},
        "scripts": [{"name": script.name, "text": text}],
        "sessions": 1,
        "variables": _variables(plan, arm),
    }
    return _core.Drawer(spec, 1)


def _variables(plan: Plan, arm: Arm) -> dict[str, str]:
    scale = {"scale": str(plan.workload.scale)}
    return {**scale, **plan.workload.variables, **arm.variables}


def _index(steps: Steps, statement: DrawnStatement, single: bool) -> int:
    """Return the index of a statement, which is added if it is new; a script's only statement becomes a transaction."""
    name, kind = statement["name"], "transaction" if single else statement["kind"]
    if name == _MARK.rstrip(";"):
        kind = REDO_POSITION
    if name not in steps.statements:
        steps.statements.append(name)
        steps.kinds.append(kind)
        steps.changes.append(bool(_CHANGES.search(name)))
        steps.per_transaction.append(0.0)
    return steps.statements.index(name)


def _with_row(step: PostgresStep, statement: DrawnStatement, values: Sequence[list[Any]], steps: Steps) -> None:
    """Add to a step the row that its statement locks, if the statement names one."""
    match = _LOCKS.match(statement["name"].lower())
    if match is None:
        return
    place = next((at for at, piece in enumerate(statement["pieces"][:-1]) if ROW.search(piece)), None)
    if place is None:
        steps.notes.append(f"rows that are locked by more than one key are not modelled: {statement['name']}")
        return
    rows = [own[place] for own in values if isinstance(own[place], int) and own[place] >= 0]
    if not rows or len(set(rows)) / len(rows) > _MET:
        return
    table = match[1] or match[2]
    step["lock"] = {"table": _number(table), "rows": rows}


def _number(table: str) -> int:
    """Return a number for a table's name, which is the same in all scripts."""
    import zlib

    return zlib.crc32(table.strip('"').encode()) & 0x7FFF_FFFF


def _with_sizes(step: PostgresStep, statement: DrawnStatement, values: Sequence[list[Any]]) -> None:
    """Add to a step the log sizes of its statement, if the statement's text states them."""
    if _EMITS.search(statement["name"]):
        sizes = [own[0] for own in values if own and isinstance(own[0], int) and own[0] > 0]
        if sizes:
            step["wal_bytes"] = sorted(sizes)[:: max(1, len(sizes) // 200)] if len(set(sizes)) > 1 else sizes[:1]
