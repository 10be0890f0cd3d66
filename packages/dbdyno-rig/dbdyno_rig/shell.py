"""The shell of a modelled cell: a line is split into words as in a POSIX shell, and carried out.

    cellcli -e list griddisk | grep -c active; hostname && uptime

There are no files, no variables and no other programs. Shell features such as `>`, `&`, `$x` or a backquote are refused
by name, so that no answer is mistaken for something else; for an unknown program the answer is a shell's "command not
found" message. No line reaches a real shell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from dbdyno_rig import filters
from dbdyno_rig.cell import Cell
from dbdyno_rig.cellcli import cellcli
from dbdyno_rig.filters import ProgramResult

USER = "celladmin"
_JOINS = ("&&", "||", "|", ";", "\n")
_REFUSED = set("&<>()`")


class Word(NamedTuple):
    """A word without its quotes, or an operator that joins commands."""

    text: str
    joins: bool = False


class NotUnderstoodError(Exception):
    """Error for a line that this shell does not carry out."""


def shell(cell: Cell, line: str, given: str = "", *, user: str = USER) -> ProgramResult:
    """Run a line and return output, errors and exit code; `given` is the input of the first command."""
    try:
        parts = _commands(words_of(line))
    except NotUnderstoodError as error:
        return ProgramResult("", f"-bash: {error}\n", 2)
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
    return ProgramResult(output, errors, code)


def words_of(line: str) -> list[Word]:
    """Split a line into words.

    Raises:
        NotUnderstoodError: The line uses a feature that is not supported.
    """
    found: list[Word] = []
    text, at, quoted = "", 0, False
    while at < len(line):
        char = line[at]
        if char in "'\"":
            inner, at = _read_quoted(line, at)
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
            # A backslash at the end of a line continues it in the next line.
            char = "" if line[at] == "\n" else line[at]
        text += char
        at += 1
    return [*found, Word(text)] if text or quoted else found


def _read_quoted(line: str, at: int) -> tuple[str, int]:
    """Return the text in the quotes that begin at `at`, and the position after them."""
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
    """Return True if the text at `at`, after a dollar sign, is a variable or a substitution."""
    char = line[at : at + 1]
    return char.isalnum() or (char != "" and char in "_({?#@*!")


Pipeline = list[list[str]]


def _commands(words: Sequence[Word]) -> list[tuple[str, Pipeline]]:
    """Return pipelines, each with the operator that joins it to the previous one.

    Raises:
        NotUnderstoodError: The operators are in an invalid order.
    """
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


def _carry_out(cell: Cell, words: Sequence[str], given: str, user: str) -> ProgramResult:
    name, *rest = words
    if name == "cellcli":
        return cellcli(cell, rest, given)
    if name == "whoami":
        return ProgramResult(f"{user}\n")
    own = _OWN.get(name)
    if own is not None:
        return ProgramResult(own(cell))
    work = filters.PROGRAMS.get(name)
    if work is None:
        return ProgramResult("", f"-bash: {name}: command not found\n", 127)
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
