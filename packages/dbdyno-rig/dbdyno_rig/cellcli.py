"""The program `cellcli` of a modelled cell: runs one command, a script from standard input, or an interactive session.

    cellcli -e list cell        one command; its words are joined by blanks
    cellcli -n -x < script      one command per line, `-` at its end continues it on the next line
    cellcli                     the same at a prompt, until EXIT or QUIT

| option | meaning |
|---|---|
| -e | the rest of the line is the command |
| -n | no prompt |
| -x | no banner |
| -m | read-only: commands that change something are refused |
| -xml, --xml | answers are XML documents |
| -v, -vv, -vvv | accepted without effect |

Lines that begin with --, REM or REMARK are comments. There are no files here, so SPOOL, START and @ are refused; times
are always in the standard format. It is unknown whether the real program shows a prompt when it reads a script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dbdyno_rig.filters import ProgramResult

if TYPE_CHECKING:
    from dbdyno_rig.cell import Cell

PROMPT, MORE = "CellCLI> ", "> "
_COMMENT = re.compile(r"(?:--|rem\b|remark\b).*", re.IGNORECASE | re.DOTALL)
_FILES = re.compile(r"(?:@|start\b|spool\b).*", re.IGNORECASE | re.DOTALL)
_SET = re.compile(r"set\s+(?:echo(?:\s+(?:on|off))?|dateformat\s+standard)", re.IGNORECASE)
_LOOKS = re.compile(r"(?:list|describe|help)\b", re.IGNORECASE)


@dataclass(frozen=True)
class StartOptions:
    """Options with which cellcli was started; `command` is None if commands come from standard input."""

    command: str | None = None
    xml: bool = False
    prompts: bool = True
    banner: bool = True
    monitor: bool = False


class BadOptionError(Exception):
    """Error for an option that cellcli does not have."""


def parse_options(words: Sequence[str]) -> StartOptions:
    """Return the cellcli options that the words of a command line contain.

    Raises:
        BadOptionError: An option is unknown.
    """
    flags: dict[str, bool] = {}
    names = {"-n": "prompts", "-x": "banner", "-m": "monitor", "-xml": "xml", "--xml": "xml"}
    for at, word in enumerate(words):
        if word == "-e":
            return StartOptions(" ".join(words[at + 1 :]), **flags)
        if word in names:
            flags[names[word]] = word not in ("-n", "-x")
        elif word not in ("-v", "-vv", "-vvv"):
            raise BadOptionError(f"cellcli: unknown option {word}\n")
    return StartOptions(None, **flags)


def cellcli(cell: Cell, words: Sequence[str], given: str = "") -> ProgramResult:
    """Run cellcli with these arguments and this input; return its output and the exit code of its last command."""
    try:
        options = parse_options(words)
    except BadOptionError as error:
        return ProgramResult("", str(error), 1)
    if options.command is not None:
        return ProgramResult(*_answer(cell, options, options.command))
    talk = Conversation(cell, options)
    output = talk.begin()
    for line in given.splitlines():
        if talk.ended:
            break
        output += talk.prompt + talk.answer(line)
    if not talk.ended:
        output += talk.prompt + talk.end()
    return ProgramResult(output, "", talk.code)


class Conversation:
    """An interactive session of cellcli: takes lines and returns answers."""

    def __init__(self, cell: Cell, options: StartOptions) -> None:
        self.cell = cell
        self.options = options
        self.held = ""
        self.ended = False
        self.code = 0

    @property
    def prompt(self) -> str:
        """Return the prompt for the next line, or "" if prompts are off."""
        if not self.options.prompts:
            return ""
        return MORE if self.held else PROMPT

    def begin(self) -> str:
        """Return the banner, or "" if there is none."""
        if not self.options.banner:
            return ""
        now = datetime.fromtimestamp(self.cell.rack.clock_ns() // 10**9, UTC)
        return f"CellCLI: modelled by dbdyno - on {now:%a %b %d %H:%M:%S UTC %Y}\n\n"

    def end(self) -> str:
        """End the conversation and return the text that cellcli prints at its end."""
        self.ended = True
        return "\nquitting\n\n"

    def answer(self, line: str) -> str:
        """Return the answer to a line; an incomplete command is kept until it is complete."""
        text = line.strip()
        if re.search(r"(?:^|\s)-$", text) and not _COMMENT.fullmatch(self.held + text):
            self.held += f"{text[:-1].strip()} "
            return ""
        text, self.held = (self.held + text).strip().rstrip(";").strip(), ""
        if not text or _COMMENT.fullmatch(text) or _SET.fullmatch(text):
            return ""
        if text.lower() in ("exit", "quit"):
            return self.end()
        output, _, self.code = _answer(self.cell, self.options, text)
        return f"{output}\n"


def _answer(cell: Cell, options: StartOptions, text: str) -> ProgramResult:
    if _FILES.fullmatch(text):
        return ProgramResult("\nThere are no files on this modelled cell.\n", "", 1)
    if options.monitor and not _LOOKS.match(text):
        return ProgramResult("\nIn monitor mode (-m), only LIST, DESCRIBE and HELP are allowed.\n", "", 1)
    output, code = cell.answer(text, xml=options.xml)
    return ProgramResult(output, "", code)
