"""Description of what a run on a model would do: its machine, its arms, and how much is run."""

from __future__ import annotations

import textwrap

from dbdyno.model.machine import Machine
from dbdyno.study.plan.plan import Plan


def describe_on_model(plan: Plan, machine: Machine) -> str:
    """Return the description of a plan on a model as text."""
    how = plan.schedule
    lines = [f"{plan.title}", plan.question, "", f"{machine.target}: {machine.title}"]
    lines += [f"    {row['name']}: beside it, {row['text']}" for row in machine.databases]
    lines += [f"    {part['name']}: {part['text']}" for part in machine.parts]
    lines += ["", f"workload: {plan.workload.kind}"]
    for number, arm in enumerate(plan.arms):
        base = f", against {arm.against!r}" if arm.against else ""
        head = f"arm {arm.name!r}{' (the base)' if number == 0 else base}"
        lines += _wrap(f"{head}: {plan.sessions_of(arm)} session(s)")
        was = machine.values(list(arm.settings))
        lines += [f"    {k} = {v} (the machine has {was[k]})" for k, v in arm.settings.items()]
        lines += [f"    {key} = {value}" for key, value in plan.parameters_of(arm).items()]
    lines += ["", f"blocks: {how.blocks}, each with every arm from the same initial state"]
    lines += _wrap(
        f"in a block: {how.transactions} transactions of each session, after "
        f"{how.warmup_transactions} that do not count; {plan.judge.operation} times are compared"
    )
    return "\n".join([*lines, "", "nothing was run", ""])


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 92, subsequent_indent="    ", break_on_hyphens=False)
