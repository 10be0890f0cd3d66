"""A command as a plan writes it: words as a shell splits them, with `{name}` for a variable. No shell runs it, so what
a variable holds is part of one word and never a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from dbdyno.base.errors import PlanError
from dbdyno.base.processes import find_program

_NAME = re.compile(r"\{\{|\}\}|\{(\w+)\}")


def words_of(command: str, variables: Mapping[str, str], where: str) -> list[str]:
    """The words to start. Raises `PlanError` as `filled_in`, and for a program that is not there."""
    words = filled_in(command, variables, where)
    program = words[0] if "/" in words[0] else find_program(words[0])
    if program is None:
        raise PlanError(
            f"there is no program {words[0]!r} on PATH", where=where, next_step="install it, or name its path"
        )
    return [str(program), *words[1:]]


def filled_in(command: str, variables: Mapping[str, str], where: str) -> list[str]:
    """The words as they are written, with the variables' values; `{{` and `}}` are braces. Raises `PlanError` for a
    quote that does not end, or a variable that nobody sets."""
    try:
        given = shlex.split(command)
    except ValueError as error:
        raise PlanError(f"{command!r} cannot be split into words: {error}", where=where) from error
    if not given:
        raise PlanError("the command is empty", where=where)

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        if match[1] not in variables:
            known = ", ".join(sorted(variables)) or "none"
            raise PlanError(
                f"{{{match[1]}}} is no variable",
                where=where,
                next_step=f"known: {known}; set it under [workload] variables, in an arm, or as a [[factor]]",
            )
        return variables[match[1]]

    return [_NAME.sub(value, word) for word in given]
