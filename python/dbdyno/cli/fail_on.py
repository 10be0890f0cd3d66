"""`--fail-on`: conditions, in addition to a withheld verdict, under which a run exits with code 1 in a build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from dbdyno.cli.parameters import F

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run
    from dbdyno.study.analysis.contract.rows import Model

NAMES = ("slower", "cannot-tell", "gate")
_UNDECIDED = ("unclear", "provisional", "no verdict")


def fail_on_option(names: Sequence[str], text: str) -> Callable[[F], F]:
    """Return the option --fail-on for these conditions."""
    return click.option("--fail-on", "fail_on", multiple=True, type=click.Choice(names), help=text)


def met_conditions(run: Run, analysis: Model, names: tuple[str, ...]) -> list[str]:
    """Return a phrase for each of the conditions `names` that is met; empty if none is met."""
    from dbdyno.study.analysis.analyse import headline_of

    arms = {arm["index"]: arm["name"] for arm in analysis["arms"]}
    headline = headline_of(run)
    decided = {arms[row["arm"]]: row["decision"] for row in analysis["metrics"] if row["metric"] == headline}
    said = []
    if "slower" in names and (slower := [arm for arm, word in decided.items() if word == "slower"]):
        said.append(f"slower: {', '.join(slower)}")
    if "cannot-tell" in names:
        undecided = [arm for arm, word in decided.items() if word in _UNDECIDED]
        if undecided or (not decided and analysis["verdict"]["decision"] in _UNDECIDED):
            said.append(f"cannot tell: {', '.join(undecided) or analysis['verdict']['headline']}")
    failed = dict.fromkeys(str(gate["name"]) for gate in analysis["gates"] if gate["ok"] is False)
    if "gate" in names and failed:
        said.append(f"gates failed: {', '.join(failed)}")
    return said
