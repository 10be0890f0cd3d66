"""Request for a workflow, and the shell commands of its steps."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from dbdyno.base.errors import PlanError

BASE, CHANGE = "base", "change"
"""Names of the arms, and of the folders of their builds."""
BASE_FOLDER = "../base"
VERDICT = "verdict.md"
PACKAGE = "dbdyno"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")


@dataclass(frozen=True)
class WorkflowRequest:
    """A workflow to write.

    Attributes:
        plan: Path of the plan in the repository.
        build: Shell command that builds; empty if there is nothing to build.
        fail_on: Conditions under which the job fails.
        package: Package that the workflow installs with pip.
        results: Branch in which the results of the main branch are stored; None to store none.
    """

    plan: str
    build: str = ""
    fail_on: tuple[str, ...] = ("slower",)
    package: str = PACKAGE
    results: str | None = None

    def check(self) -> None:
        """Raise an error for text that a workflow step cannot contain.

        Raises:
            PlanError: A value has a control character, or the path of the plan leads out of the repository.
        """
        for name, value in (("PLAN", self.plan), ("--build", self.build), ("--package", self.package)):
            if not value.replace("\n", "").replace("\t", "").isprintable():
                raise PlanError(
                    "contains a character that is not allowed in a workflow",
                    where=name,
                    next_step="use only printable characters",
                )
        if self.plan.startswith(("/", "~")) or ".." in self.plan.split("/"):
            raise PlanError(
                f"{self.plan} is outside the repository",
                next_step="run the command at the top of the repository, and name a plan inside it",
            )
        if self.results is not None and not NAME.fullmatch(self.results):
            raise PlanError(
                f"{self.results!r} is not a valid name of a branch",
                where="--results",
                next_step="use letters, digits, - and _",
            )

    def install(self) -> str:
        """Return the command that installs dbdyno."""
        return f"pip install {shlex.quote(self.package)}"

    def compare(self) -> str:
        """Return the command that compares the change with its base."""
        conditions = [f"--fail-on {name}" for name in self.fail_on]
        builds = [f"--build {BASE}={BASE_FOLDER}", f"--build {CHANGE}=."]
        return " ".join(["dbdyno run", shlex.quote(self.plan), *builds, *conditions, f"-o {VERDICT}"])

    def trend(self, place: str) -> str:
        """Return the command that shows the plan's trend over the results in a place."""
        return f"dbdyno trend {shlex.quote(self.plan)} --results {place}"

    def record(self) -> str:
        """Return the command that measures only the main branch."""
        return f"dbdyno run {shlex.quote(self.plan)} --build {CHANGE}=."


def block(text: str, indent: int) -> str:
    """Return text as the lines of a YAML block scalar."""
    return "\n".join(f"{' ' * indent}{line}".rstrip() for line in text.strip("\n").split("\n"))
