"""Steps of a plan and nodes of a tree under their branches, in lines that fit; deep ones keep their level."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dbdyno.pages import format as fmt


def under(lead: str, words: str, code: str, notes: Sequence[str], deepest: int, room: int) -> str:
    """Words below a branch (`│  └─ `) or an indent of two blanks a level."""
    if "─" not in lead:
        return indented(f"{words}  {code}".rstrip(), len(lead) // 2, deepest, room)
    branch = fitting(lead, len(lead) // 3, room)
    text = fmt.line(code, max(room - len(branch) - len(words) - 2, 12))
    below = branch.replace("├─ ", "│  ").replace("└─ ", "   ")
    more = textwrap.wrap(" · ".join(notes).replace(fmt.THIN, "\xa0"), max(room - len(below), 16))
    return "\n".join([f"{branch}{words}  {text}".rstrip(), *(below + line for line in more)])


def indented(words: str, level: int, deepest: int, room: int) -> str:
    """A step of a plan under its indent, in lines that fit: two blanks a level, one where the plan
    is deep, and beyond half the room the level as a number, so that deep steps stay readable."""
    step = 2 if 2 * deepest <= room // 2 else 1
    indent = " " * (step * level)
    if len(indent) > room // 2:
        mark = f"{level}› "
        indent = " " * max(room // 2 - len(mark), 0) + mark
    lines = textwrap.wrap(words, max(room - len(indent), 12)) or [""]
    return "\n".join([indent + lines[0], *(" " * len(indent) + line for line in lines[1:])])


def fitting(branch: str, level: int, room: int) -> str:
    """The signs that lead to a node, in half the room: of a deep one the last ones, behind its level."""
    if len(branch) <= max(room // 2, 12):
        return branch
    mark = f"{level}… "
    return mark + branch[-max(room // 2 - len(mark), 3) :]
