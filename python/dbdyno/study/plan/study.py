"""A study: a question with its workload, factors and analysis, made into a plan by options."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbdyno.bench.kinds import Kind, kind_of
from dbdyno.errors import PlanError
from dbdyno.study.plan.factors import crossed
from dbdyno.study.plan.plan import Plan
from dbdyno.study.plan.targets import no_plan, on_target


@dataclass(frozen=True)
class Factor:
    """Something that `--set NAME=VALUE` changes."""

    name: str
    meaning: str
    default: str


@dataclass(frozen=True)
class Variant:
    """A study on a bench of another kind than an engine or a model: its factors there with what they are by default,
    and how it makes its plan of options, whether it is to be quick, and the target."""

    factors: Mapping[str, str]
    make: Callable[[Mapping[str, str], bool, str], Plan] = field(repr=False)


@dataclass(frozen=True)
class Study:
    """A built-in study. `plan(options, quick)` makes its plan."""

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

    def plan(self, options: Mapping[str, str], *, quick: bool = False, target: str | None = None) -> Plan:
        """The study's plan on `target`, or on its own default target.

        On a model an option that is no factor of the study is a parameter of the machine, its
        values with a comma between them. Raises `PlanError` for what is neither, `ModelError` for a
        machine that cannot be read.
        """
        target = target or self.target
        kind = kind_of(target)
        if kind.name in self.variants:
            return self._on(kind, options, quick, target or "")
        if not kind.has_plans:
            raise no_plan(kind, self.name)
        known = {factor.name: factor.default for factor in self.factors}
        own = {name: value for name, value in options.items() if name in known}
        others = {name: value for name, value in options.items() if name not in known}
        if others and not kind.takes_parameters:
            name = next(iter(others))
            raise PlanError(
                f"study {self.name} has no factor {name!r}",
                where=f"--set {name}",
                next_step=f"its factors: {', '.join(known)}; parameters of a machine need --target model:NAME",
            )
        plan = on_target(self.make({**known, **own}, quick), target)
        if others:
            plan = crossed(plan, self._parameters(str(target), others, list(known)))
        return plan

    def _on(self, kind: Kind, options: Mapping[str, str], quick: bool, target: str) -> Plan:
        """The variant for a kind of bench."""
        variant = self.variants[kind.name]
        for name in options:
            if name not in variant.factors:
                raise PlanError(
                    f"study {self.name} has no factor {name!r} on {kind.word}",
                    where=f"--set {name}",
                    next_step=f"its factors: {', '.join(variant.factors)}",
                )
        return variant.make(options, quick, target)

    @staticmethod
    def _parameters(target: str, others: Mapping[str, str], known: list[str]) -> dict[str, str]:
        from dbdyno.model.machine import machine_of

        machine = machine_of(target)
        return {machine.path(name, known): value for name, value in others.items()}

    def card(self) -> dict[str, Any]:
        """The study as plain values."""
        factors = [{"name": f.name, "meaning": f.meaning, "default": f.default} for f in self.factors]
        return {
            "study": self.name,
            "question": self.question,
            "factors": factors,
            "workload": self.workload,
            "targets": self.targets,
            "source": self.source,
            "found_there": self.found_there,
        }

    def text(self) -> str:
        """The study as a page of text."""
        lines = [f"{self.name}: {self.question}", "", "factors (change with --set NAME=VALUE)"]
        for factor in self.factors:
            lines += _entry(f"{factor.name} = {factor.default}", factor.meaning)
        for head in ("workload", "targets", "source", "found_there"):
            lines += ["", head.replace("_", " ")]
            lines += textwrap.wrap(getattr(self, head), 88, initial_indent="  ", subsequent_indent="  ")
        lines += ["", f"run it: dbdyno run {self.name}"]
        if self.target:
            lines[-1] += f" --target {self.target}"
        return "\n".join(lines) + "\n"


def _entry(head: str, meaning: str) -> list[str]:
    return [
        f"  {head}",
        *textwrap.wrap(meaning, 84, initial_indent="      ", subsequent_indent="      "),
    ]
