"""Commands as plans write them: words split as by a shell, with `{name}` for a variable.

No shell runs them, so a variable's value is part of one word and never a command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from dbdyno.base.errors import PlanError, errors_as
from dbdyno.base.processes import find_program

_NAME = re.compile(r"\{\{|\}\}|\{(\w+)\}")


def words_of(command: str, variables: Mapping[str, str], where: str) -> list[str]:
    """Return the words of a command to start, with the full path of its program.

    Raises:
        PlanError: The program does not exist, or `fill_in_variables` raises this error.
    """
    words = fill_in_variables(command, variables, where)
    program = words[0] if "/" in words[0] else find_program(words[0])
    if program is None:
        raise PlanError(
            f"there is no program {words[0]!r} on PATH", where=where, next_step="install the program, or give its path"
        )
    return [str(program), *words[1:]]


def fill_in_variables(command: str, variables: Mapping[str, str], where: str) -> list[str]:
    """Return the words of a command with the variables' values filled in; `{{` and `}}` stand for single braces.

    Raises:
        PlanError: A quote is not closed, the command is empty, or a variable is unknown.
    """
    step = "check the quotes of the command"
    with errors_as(PlanError, ValueError, f"{command!r} cannot be split into words", where, step):
        given = shlex.split(command)
    if not given:
        raise PlanError("the command is empty", where=where, next_step="write the program and its arguments")

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        if match[1] not in variables:
            known = ", ".join(sorted(variables)) or "none"
            raise PlanError(
                f"{{{match[1]}}} is not a variable of the plan",
                where=where,
                next_step=f"use one of {known}, or set the variable under [workload] variables, in an arm, or "
                f"as a [[factor]]",
            )
        return variables[match[1]]

    return [_NAME.sub(value, word) for word in given]
