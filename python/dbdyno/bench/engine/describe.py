"""Description of what a run on engines would do, for `dbdyno plan check` and `dbdyno run --dry-run`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from dbdyno.bench.engine.prepare import EngineArm, PreparedEnginePlan
from dbdyno.bench.engine.volumes import describe_devices
from dbdyno.study.plan.network import network_text
from dbdyno.study.plan.plan import Plan

RESOLUTION = {
    "slices": "differences of 1 % or less are often detectable in slices",
    "turns": "differences of a few per cent are often detectable with 20 blocks",
    "reload": "a reload costs seconds: expect to detect differences of a few per cent",
    "restart": "a restart empties the caches: expect to detect differences above 5 to 10 %",
}


def describe_prepared(
    ready: PreparedEnginePlan,
    restart: str,
    clients: Mapping[int, str],
) -> str:
    """Return the description of a prepared plan as text.

    Args:
        ready: The prepared plan.
        restart: How a setting that needs a restart takes effect, as a phrase.
        clients: External clients that run an arm's load instead of dbdyno, by the arm's number.
    """
    plan, how = ready.plan, ready.timing
    lines = [f"{plan.title}", plan.question, ""]
    for number, arm in enumerate(ready.arms):
        lines += _arm(plan, arm, number, restart, clients.get(number))
    lines += ["", f"switch: {_switch(ready)}"]
    lines += [line for note in ready.notes for line in _wrap(f"note: {note}")]
    counted = sum(block.kind == "measure" for block in ready.blocks)
    warm = sum(block.kind == "warmup" for block in ready.blocks)
    watching = sum(block.kind == "overhead" for block in ready.blocks)
    lines.append(
        f"blocks: {counted} that count, after {warm} for warm-up and {watching} to measure the cost of observation"
    )
    if how.turn_ns:
        lines.append(f"an arm's share of a block: {how.turn_ns / 1e9:g} s")
        lines.append(f"time: about {_duration(ready.seconds())} of load, plus the switches")
    else:
        turns = sum(len(block.turns) for block in ready.blocks)
        lines.append(f"time: {turns:,} turns of {how.turn_transactions:,} transactions each; a run estimates the time")
        lines.append("    when each arm has finished one turn")
    lines += _wrap(
        f"resolution: {RESOLUTION[how.switch]}; `dbdyno run --aa` measures which differences this set-up can detect, "
        f"and how many blocks a given difference needs"
    )
    lines += _sql("before the first block", plan.workload.setup)
    lines += _sql("at the end, in any case", plan.workload.teardown)
    lines += ["", "nothing was changed"]
    return "\n".join(lines) + "\n"


def _arm(plan: Plan, ready: EngineArm, number: int, restart: str, client: str | None) -> list[str]:
    arm = ready.arm
    rate = plan.rate_of(arm)
    loop = f"open loop, {rate:g}/s" if rate else "closed loop"
    head = f"arm {arm.name!r}{' (the base)' if number == 0 else ''}: on {ready.target.safe_dsn}"
    lines = _wrap(f"{head}; {plan.sessions_of(arm)} session(s), {loop}")
    lines += [f"    {client}"] if client else []
    for change in ready.changes:
        way = {
            "session": "SET in each session",
            "connection": "given when connecting",
            "reload": "ALTER SYSTEM and reload",
            "global": "SET GLOBAL",
            "restart": restart,
        }[change.how]
        lines.append(f"    {change.name} = {change.value} (now {change.before}): {way}")
    if plan.device_of(arm):
        lines.append(f"    modelled device: {describe_devices(plan.device_of(arm))}")
    if plan.network_of(arm):
        lines.append(f"    network: {network_text(plan.network_of(arm))}, for the sessions only")
    for script in plan.scripts_of(arm):
        lines.append(f"    script {script.name}, weight {script.weight}")
    lines += [f"  {line}" for line in _sql("before each turn", arm.before_sql)]
    lines += [f"  {line}" for line in _sql("after each turn", arm.after_sql)]
    return lines


def _switch(ready: PreparedEnginePlan) -> str:
    how = ready.timing
    if how.in_slices:
        return f"slices of {how.slice_ns / 1e6:g} ms in randomised ABBA order: {ready.reason}"
    return f"one turn per arm and block in random order ({how.switch}): {ready.reason}"


def _sql(head: str, statements: list[str]) -> list[str]:
    if not statements:
        return []
    shown = [textwrap.shorten(statement, 84, placeholder=" ...") for statement in statements]
    return [f"{head}:", *(f"    {line}" for line in shown)]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 92, subsequent_indent="    ", break_on_hyphens=False)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
