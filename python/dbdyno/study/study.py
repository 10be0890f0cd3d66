"""A study: a question with its workload, factors and analysis, made into a plan by options."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbdyno.errors import PlanError
from dbdyno.study.plan import Plan


@dataclass(frozen=True)
class Factor:
    """Something that `--set NAME=VALUE` changes."""

    name: str
    meaning: str
    default: str


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

    def plan(self, options: Mapping[str, str], *, quick: bool = False) -> Plan:
        """The study's plan; raises `PlanError` for an unknown factor."""
        known = {factor.name: factor.default for factor in self.factors}
        for name in options:
            if name not in known:
                raise PlanError(
                    f"study {self.name} has no factor {name!r}",
                    where=f"--set {name}",
                    next_step=f"its factors: {', '.join(known)}",
                )
        return self.make({**known, **options}, quick)

    def card(self) -> dict[str, Any]:
        """The study as plain values."""
        factors = [
            {"name": f.name, "meaning": f.meaning, "default": f.default} for f in self.factors
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

    def text(self) -> str:
        """The study as a page of text."""
        lines = [f"{self.name}: {self.question}", "", "factors (change with --set NAME=VALUE)"]
        for factor in self.factors:
            lines += _entry(f"{factor.name} = {factor.default}", factor.meaning)
        for head in ("workload", "targets", "source", "found_there"):
            lines += ["", head.replace("_", " ")]
            lines += textwrap.wrap(
                getattr(self, head), 88, initial_indent="  ", subsequent_indent="  "
            )
        lines += ["", f"run it: dbdyno run {self.name}"]
        return "\n".join(lines) + "\n"


def _entry(head: str, meaning: str) -> list[str]:
    return [
        f"  {head}",
        *textwrap.wrap(meaning, 84, initial_indent="      ", subsequent_indent="      "),
    ]
