"""The shell of a modelled cell: a line is cut into words as a POSIX shell cuts it, and carried out.

    cellcli -e list griddisk | grep -c active; hostname && uptime

There are no files, no variables and no other programs. What a shell would do with `>`, `&`, `$x` or
a backquote is refused by name, so that nobody takes an answer for what it is not; a program that is
not here is answered as a shell answers to what it does not find. No line reaches a real shell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from dbdyno_rig import filters
from dbdyno_rig.cell import Cell
from dbdyno_rig.cellcli import cellcli
from dbdyno_rig.filters import Said

USER = "celladmin"
_JOINS = ("&&", "||", "|", ";", "\n")
_REFUSED = set("&<>()`")


class Word(NamedTuple):
    """A word without its quotes, or something that joins commands."""

    text: str
    joins: bool = False


class NotUnderstoodError(Exception):
    """A line that this shell does not carry out."""


def shell(cell: Cell, line: str, given: str = "", *, user: str = USER) -> Said:
    """What a line gives: output, errors, exit code. `given` is what the first command reads."""
    try:
        parts = _commands(words_of(line))
    except NotUnderstoodError as error:
        return Said("", f"-bash: {error}\n", 2)
    output, errors, code = "", "", 0
    for join, pipeline in parts:
        if (join == "&&" and code) or (join == "||" and not code):
            continue
        text = given
        for words in pipeline:
            said = _carry_out(cell, words, text, user)
            text, code = said.output, said.code
            errors += said.errors
        output += text
        given = ""
    return Said(output, errors, code)


def words_of(line: str) -> list[Word]:
    """The words of a line; raises `NotUnderstoodError`."""
    found: list[Word] = []
    text, at, quoted = "", 0, False
    while at < len(line):
        char = line[at]
        if char in "'\"":
            inner, at = _quoted(line, at)
            text, quoted = text + inner, True
            continue
        join = next((mark for mark in _JOINS if line.startswith(mark, at)), "")
        if join or char.isspace():
            if text or quoted:
                found.append(Word(text))
            text, quoted = "", False
            found += [Word(join, True)] if join else []
            at += len(join) or 1
            continue
        if char in _REFUSED or (char == "$" and _names(line, at + 1)):
            raise NotUnderstoodError(f"`{char}' is not understood by this modelled cell")
        if char == "\\" and at + 1 < len(line):
            at += 1
            # A backslash before the end of a line goes on in the next.
            char = "" if line[at] == "\n" else line[at]
        text += char
        at += 1
    return [*found, Word(text)] if text or quoted else found


def _quoted(line: str, at: int) -> tuple[str, int]:
    """What stands in the quotes that begin there, and where they have ended."""
    quote, text = line[at], ""
    at += 1
    while at < len(line):
        char = line[at]
        if char == quote:
            return text, at + 1
        if quote == '"':
            if char == "`" or (char == "$" and _names(line, at + 1)):
                raise NotUnderstoodError(f"`{char}' is not understood by this modelled cell")
            if char == "\\" and line[at + 1 : at + 2] in ('"', "\\", "$", "`"):
                at += 1
                char = line[at]
        text += char
        at += 1
    raise NotUnderstoodError(f"unexpected EOF while looking for matching `{quote}'")


def _names(line: str, at: int) -> bool:
    """Does a variable or a substitution stand behind a dollar?"""
    char = line[at : at + 1]
    return char.isalnum() or (char != "" and char in "_({?#@*!")


Pipeline = list[list[str]]


def _commands(words: Sequence[Word]) -> list[tuple[str, Pipeline]]:
    """Pipelines, each with what joins it to the one before; raises `NotUnderstoodError`."""
    found: list[tuple[str, Pipeline]] = []
    join, pipeline = ";", [[]]  # type: tuple[str, Pipeline]
    for word in [*words, Word(";", True)]:
        if not word.joins:
            pipeline[-1].append(word.text)
            continue
        if pipeline[-1]:
            if word.text == "|":
                pipeline.append([])
                continue
            found.append((join, pipeline))
        elif len(pipeline) > 1 or word.text not in (";", "\n") or join in ("&&", "||"):
            raise NotUnderstoodError(f"syntax error near unexpected token `{word.text}'")
        join, pipeline = word.text, [[]]
    return found


def _carry_out(cell: Cell, words: Sequence[str], given: str, user: str) -> Said:
    name, *rest = words
    if name == "cellcli":
        return cellcli(cell, rest, given)
    if name == "whoami":
        return Said(f"{user}\n")
    own = _OWN.get(name)
    if own is not None:
        return Said(own(cell))
    work = filters.PROGRAMS.get(name)
    if work is None:
        return Said("", f"-bash: {name}: command not found\n", 127)
    return work(rest, given)


def _clock(cell: Cell) -> datetime:
    return datetime.fromtimestamp(cell.rack.clock_ns() // 10**9, UTC)


def _uptime(cell: Cell) -> str:
    minutes = cell.rack.now_ns // (60 * 10**9)
    up = f"{minutes // 1440} days, {minutes // 60 % 24:2}:{minutes % 60:02}"
    return f" {_clock(cell):%H:%M:%S} up {up},  1 user,  load average: 0.00, 0.00, 0.00\n"


_OWN: dict[str, Callable[[Cell], str]] = {
    "hostname": lambda cell: f"{cell.name}\n",
    "uptime": _uptime,
    "date": lambda cell: f"{_clock(cell):%a %b %d %H:%M:%S UTC %Y}\n",
}
