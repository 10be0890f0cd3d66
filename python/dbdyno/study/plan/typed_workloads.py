"""Typed workloads: the work of the sessions as a short description that each target runs in its own way.

A model uses the kind and the parameters directly. PostgreSQL runs scripts, so a typed workload is compiled to them
here; what cannot be written in SQL is rejected with the reason. Only `commit-loop` can be compiled:

    commit-loop   each transaction writes `redo_bytes` of redo and commits, with a pause of `think_ms` in between

`redo_bytes` is a range (4KiB..12MiB), a list (512,4KiB,1MiB) or one size.

Limits: `pg_logical_emit_message` writes exactly that number of bytes into the write-ahead log and touches no table; the
role must be allowed to execute it, as it is by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dbdyno.base.errors import PlanError
from dbdyno.study.plan.plan import Arm, Plan, Script, Value

_UNITS = {"": 1, "B": 1, "KB": 1000, "KIB": 1024, "MB": 10**6, "MIB": 2**20, "K": 1024, "M": 2**20}
_CHUNK = 8192
IN_SQL = ("commit-loop",)
"""Typed workloads that PostgreSQL runs as scripts."""
_LARGEST = 256 * 2**20

_COMMIT = """\
begin;
select count(pg_logical_emit_message(true, 'dbdyno', repeat('r', least(:bytes - at, {chunk})::int)))
from generate_series(0, :bytes - 1, {chunk}) at;
\\redo
commit;
"""


def size_bytes(text: str) -> int:
    """Return the bytes of a size such as '64KiB', '1MiB' or '4096'.

    Raises:
        PlanError: The text is not a size of 1 byte to 256 MiB.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?i?[bB]?)\s*", text)
    if match is None or match[2].upper() not in _UNITS:
        raise PlanError(
            f"{text!r} is not a size",
            where="redo_bytes",
            next_step="write 8KiB..4MiB for a range, or a list such as 64KiB,512KiB,1MiB",
        )
    size = round(float(match[1]) * _UNITS[match[2].upper()])
    if not 1 <= size <= _LARGEST:
        raise PlanError(
            f"{text!r} is outside 1 byte to 256 MiB", where="redo_bytes", next_step="choose a size in this range"
        )
    return size


def sizes(redo_bytes: str) -> list[int]:
    """Return the sizes in bytes: both ends of a range, those of a list, or a single one.

    Raises:
        PlanError: A part is not a size, or the range is empty.
    """
    if ".." not in redo_bytes:
        return [size_bytes(part) for part in redo_bytes.split(",")]
    low, high = (size_bytes(part) for part in redo_bytes.split("..", 1))
    if low >= high:
        raise PlanError(
            f"{redo_bytes!r} is an empty range",
            where="redo_bytes",
            next_step="write the smaller size first, as in 8KiB..4MiB",
        )
    return [low, high]


def compile_workload(plan: Plan) -> Plan:
    """Return the plan with the scripts that PostgreSQL runs for its typed workload; unchanged if it has none.

    Raises:
        PlanError: Only a model can run the workload.
    """
    kind = plan.workload.kind
    if kind is None:
        return plan
    own = [
        replace(arm, scripts=_scripts(kind, plan.parameters_of(arm))) if arm.parameters else arm for arm in plan.arms
    ]
    work = replace(plan.workload, scripts=_scripts(kind, plan.workload.parameters))
    return replace(plan, workload=work, arms=own)


def refusal(plan: Plan) -> str | None:
    """Return a sentence that says why a model cannot run the plan; `None` if it can."""
    if plan.workload.kind is None:
        return "its workload is SQL, and a model runs typed workloads"
    if any(plan.rate_of(arm) is not None for arm in plan.arms):
        return "it gives a rate, but a model's sessions continue without pause"
    if any(_live_only(arm) for arm in plan.arms):
        return "an arm has its own scripts, SQL, client, device or engine"
    return None


def _live_only(arm: Arm) -> bool:
    own = (arm.scripts, arm.before_sql, arm.after_sql, arm.dsn, arm.server, arm.protocol, arm.client, arm.fetch_size)
    return any((*own, arm.command, arm.cold, arm.device))


def _scripts(kind: str, parameters: Mapping[str, Value]) -> list[Script]:
    if kind not in IN_SQL:
        raise PlanError(
            f"PostgreSQL cannot run the workload {kind!r}: the workload is not written in SQL",
            where="workload.kind",
            next_step="run the workload on a model with --target model:NAME",
        )
    known = {"redo_bytes", "think_ms"}
    for name in parameters:
        if name not in known:
            raise PlanError(
                f"PostgreSQL has no parameter {name!r} of a commit-loop",
                where=f"workload.parameters.{name}",
                next_step="leave the parameter out, or run the workload on a model with --target model:NAME",
            )
    think = f"\\sleep {parameters['think_ms']} ms\n" if "think_ms" in parameters else ""
    text = _draw(str(parameters.get("redo_bytes", "512"))) + _COMMIT.format(chunk=_CHUNK) + think
    return [Script("commit of random redo size", text)]


def _draw(redo_bytes: str) -> str:
    """Return the script lines that choose the size of the next transaction at random."""
    levels = sizes(redo_bytes)
    if ".." in redo_bytes:
        return f"\\set bytes random({levels[0]}, {levels[1]})\n"
    if len(levels) == 1:
        return f"\\set bytes {levels[0]}\n"
    cases = " ".join(f"when :level = {at} then {size}" for at, size in enumerate(levels))
    return f"\\set level random(0, {len(levels) - 1})\n\\set bytes case {cases} end\n"
