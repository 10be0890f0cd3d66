"""A study: a question with its workload, factors and analysis; options turn it into a plan."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict

from dbdyno.base.errors import PlanError
from dbdyno.bench.kinds import ON_DEVICE, embedded_of, kind_of
from dbdyno.study.plan.devices import plan_on_devices
from dbdyno.study.plan.factors import cross_factors
from dbdyno.study.plan.plan import Plan
from dbdyno.study.plan.targets import COMMANDS, HOST, no_plan_error, plan_on_target

FULL = 3
"""Factor by which `--full` multiplies the blocks of a run."""


QUICK_NS, QUICK_TURN_NS = 16_000_000_000, 200_000_000
"""With `--quick`, the approximate total length of all turns, and the shortest length of one turn.

The total is about half of the promised 30 s; the other half is for server starts, set-up, and warm-ups that take
longer.
"""


def full_plan(plan: Plan) -> Plan:
    """Return the plan with the changes for `--full`."""
    return replace(plan, schedule=replace(plan.schedule, blocks=FULL * plan.schedule.blocks))


def quick_plan(plan: Plan) -> Plan:
    """Return the plan with the changes for `--quick`: long turns are shortened so that all take about `QUICK_NS`."""
    schedule = plan.schedule
    if schedule.turn_ns is None or schedule.turn_transactions is not None:
        return plan
    turns = (schedule.blocks + schedule.warmup_blocks) * len(plan.arms) + plan.watch.overhead_blocks
    turn_ns = min(schedule.turn_ns, max(QUICK_NS // turns, QUICK_TURN_NS))
    return replace(plan, schedule=replace(schedule, turn_ns=turn_ns))


@dataclass(frozen=True)
class Factor:
    """A factor of a study, set by `--set NAME=VALUE`; `quick` and `full` are its defaults with these options."""

    name: str
    meaning: str
    default: str
    full: str = ""
    quick: str = ""

    def default_for(self, quick: bool, full: bool) -> str:
        """Return the default of the factor."""
        return (self.quick if quick else self.full if full else "") or self.default


@dataclass(frozen=True)
class Variant:
    """A study on another kind of bench than an engine or a model, or on an engine over modelled devices.

    Attributes:
        factors: Factors of the variant with their defaults. If a factor has the same default as in the study, its
            defaults for --quick and --full are also those of the study.
        make: Function that makes the plan from the options, the flag for --quick, and the target.
    """

    factors: Mapping[str, str]
    make: Callable[[Mapping[str, str], bool, str], Plan] = field(repr=False)


class Heading(TypedDict):
    """Fields of a plan that name its study."""

    title: str
    question: str
    study: str


@dataclass(frozen=True)
class Study:
    """A built-in study; `plan` makes its plan from options."""

    name: str
    question: str
    workload: str
    targets: str
    source: str
    found_there: str
    factors: tuple[Factor, ...]
    make: Callable[[Mapping[str, str], bool], Plan] = field(repr=False)
    target: str | None = None
    variants: Mapping[str, Variant] = field(default_factory=dict)

    @property
    def heading(self) -> Heading:
        """Return the fields of the study's plans that name it."""
        return {"title": self.name, "question": self.question, "study": self.name}

    def plan(
        self, options: Mapping[str, str], *, quick: bool = False, full: bool = False, target: str | None = None
    ) -> Plan:
        """Return the study's plan on `target`, or on its own default target.

        If `quick` is True, the plan is shorter; if `full` is True, it has more blocks and the factors' defaults for
        larger data. On a model, an option that is not a factor of the study is a parameter of the machine, with
        comma-separated values; on a modelled device it is `wal`, `data` or a parameter of the device.

        Raises:
            PlanError: An option is neither a factor nor a parameter, or the study does not run on the target.
            ModelError: The machine cannot be read.
        """
        target = COMMANDS if target == HOST and self.target == COMMANDS else target or self.target
        kind, on_device = kind_of(target), embedded_of(target) != target
        variant = (self.variants.get(f"{kind.name}{ON_DEVICE}") if on_device else None) or self.variants.get(kind.name)
        if variant is None and not kind.has_plans:
            raise no_plan_error(kind, self.name)
        known = {f.name: f.default_for(quick, full) for f in self.factors}
        if variant:
            usual = {f.name: f.default for f in self.factors}
            known = {
                name: known[name] if usual.get(name) == value else value for name, value in variant.factors.items()
            }
        own = {name: value for name, value in options.items() if name in known}
        others = {name: value for name, value in options.items() if name not in known}
        if others and not (kind.takes_parameters or on_device):
            name, there = next(iter(others)), f" on {kind.word}" if variant else ""
            machine = "" if variant else "; parameters of a machine need --target model:NAME"
            raise PlanError(
                f"study {self.name} has no factor {name!r}{there}",
                where=f"--set {name}",
                next_step=f"use its factors: {', '.join(known)}{machine}",
            )
        given = {**known, **own}
        plan = variant.make(given, quick, target or "") if variant else plan_on_target(self.make(given, quick), target)
        if variant is None and kind.own_sql and plan.workload.kind is None:
            raise PlanError(
                f"study {self.name} cannot run on {kind.word}: its SQL is written for another engine",
                where=f"--target {target}",
                next_step=f"leave --target out, or write a plan with a script for {kind.word} ({self.targets})",
            )
        if on_device:
            plan = plan_on_devices(plan, others)
        elif others:
            plan = cross_factors(plan, self._parameters(str(target), others, list(known)))
        return full_plan(plan) if full else quick_plan(plan) if quick else plan

    @staticmethod
    def _parameters(target: str, others: Mapping[str, str], known: list[str]) -> dict[str, str]:
        from dbdyno.model.machine import machine_of

        machine = machine_of(target)
        return {machine.path(name, known): value for name, value in others.items()}

    def as_dict(self) -> dict[str, object]:
        """Return the study as plain values."""
        factors = [
            {"name": f.name, "meaning": f.meaning, "default": f.default, "full": f.full or f.default}
            for f in self.factors
        ]
        return {
            "study": self.name,
            "question": self.question,
            "factors": factors,
            "workload": self.workload,
            "targets": self.targets,
            "source": self.source,
            "found_there": self.found_there,
        }

    def as_text(self) -> str:
        """Return the study as a page of text."""
        lines = [f"{self.name}: {self.question}", "", "factors (change with --set NAME=VALUE)"]
        for factor in self.factors:
            others = [f"--{name}: {own}" for name, own in (("quick", factor.quick), ("full", factor.full)) if own]
            said = f" ({', '.join(others)})" if others else ""
            lines += _entry(f"{factor.name} = {factor.default}{said}", factor.meaning)
        for head in ("workload", "targets", "source", "found_there"):
            lines += ["", head.replace("_", " ")]
            lines += textwrap.wrap(getattr(self, head), 88, initial_indent="  ", subsequent_indent="  ")
        lines += ["", f"run it: dbdyno run {self.name}"]
        if self.target and self.target != COMMANDS:
            lines[-1] += f" --target {self.target}"
        return "\n".join(lines) + "\n"


def _entry(head: str, meaning: str) -> list[str]:
    return [
        f"  {head}",
        *textwrap.wrap(meaning, 84, initial_indent="      ", subsequent_indent="      "),
    ]
