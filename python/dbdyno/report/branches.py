"""Text layout of plan steps and tree nodes with their branches, in lines that fit; deep nodes show their level."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dbdyno.pages import format as fmt


def text_below_branch(lead: str, words: str, code: str, notes: Sequence[str], deepest: int, room: int) -> str:
    """Return a node's text after its branch characters (`│  └─ `) or its indentation, with its notes below.

    Args:
        lead: the branch characters, or the blanks of the indentation.
        words: the text of the node.
        code: its statement, appended and cut to fit.
        notes: notes for the lines below.
        deepest: depth of the deepest node.
        room: the width available, in characters.
    """
    if "─" not in lead:
        return indent_step(f"{words}  {code}".rstrip(), len(lead) // 2, deepest, room)
    branch = fitting_branches(lead, len(lead) // 3, room)
    text = fmt.line(code, max(room - len(branch) - len(words) - 2, 12))
    below = branch.replace("├─ ", "│  ").replace("└─ ", "   ")
    more = textwrap.wrap(" · ".join(notes).replace(fmt.THIN, "\xa0"), max(room - len(below), 16))
    return "\n".join([f"{branch}{words}  {text}".rstrip(), *(below + line for line in more)])


def indent_step(words: str, level: int, deepest: int, room: int) -> str:
    """Return a plan step with its indentation, in lines that fit.

    Each level is indented by two blanks, or by one if the plan is deep. If the indentation would exceed half the room,
    the level is shown as a number, so that deep steps stay readable.
    """
    step = 2 if 2 * deepest <= room // 2 else 1
    indent = " " * (step * level)
    if len(indent) > room // 2:
        mark = f"{level}› "
        indent = " " * max(room // 2 - len(mark), 0) + mark
    lines = textwrap.wrap(words, max(room - len(indent), 12)) or [""]
    return "\n".join([indent + lines[0], *(" " * len(indent) + line for line in lines[1:])])


def fitting_branches(branch: str, level: int, room: int) -> str:
    """Return a node's branch characters, cut to half the room: for a deep node, its level and the last characters."""
    if len(branch) <= max(room // 2, 12):
        return branch
    mark = f"{level}… "
    return mark + branch[-max(room // 2 - len(mark), 3) :]
