"""CellCLI commands before they are sent: which are read-only, how scripts are split, how equal answers are grouped.

A command becomes one quoted word after `cellcli -e`, so that no shell on the cell interprets it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import CellsError
from dbdyno.cells.hosts import Host, lines_of
from dbdyno.cells.listing import visible
from dbdyno.cells.ssh import Answer

READ_ONLY_VERBS = ("list", "describe", "help")
VERBS = (
    *READ_ONLY_VERBS,
    "alter",
    "assign",
    "calibrate",
    "create",
    "drop",
    "export",
    "grant",
    "import",
    "revoke",
)
_COMMENT = re.compile(r"(?:--|#|rem(?:ark)?\b).*", re.IGNORECASE)
COUNTER = re.compile(r"(?<![\w.:/,-])\d[\d,]*(?:\.\d+)?(?![\w.:/,-])")
"""Pattern of a standalone number, not part of a name, a time, a version or a size."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Command:
    """One command, its position in a file or option, and whether it is read-only (`looks`)."""

    text: str
    where: str
    looks: bool

    @property
    def shell_command(self) -> str:
        """Return the command line for the cell's shell."""
        return f"cellcli -e {shlex.quote(self.text)}"


def command_of(text: str, where: str = "command") -> Command:
    """Parse a CellCLI command.

    Raises:
        CellsError: The text is not a CellCLI command.
    """
    text = " ".join(text.replace("\r", "").split("\n")).strip().rstrip(";").strip()
    verb = text.split(maxsplit=1)[0].lower() if text else ""
    if _CONTROL.search(text):
        raise CellsError("contains a control character", where=where, next_step="remove the control character")
    if verb not in VERBS:
        raise CellsError(
            f"{text[:60]!r} is not a CellCLI command" if text else "the command is empty",
            where=where,
            next_step=f"begin the command with one of {', '.join(VERBS)}, or add --shell to run it in the cell's shell",
        )
    return Command(text, where, verb in READ_ONLY_VERBS)


def shell_script_of(path: Path) -> list[Command]:
    """Return the shell commands in a file, one per line.

    Empty lines and comments (#) are left out; a backslash at the end continues a line.

    Raises:
        CellsError: The file cannot be read, is incomplete, or has no command.
    """
    commands = []
    held, first = "", 0
    for number, line in enumerate(_lines(path), 1):
        if not held and (not line.strip() or line.lstrip().startswith("#")):
            continue
        first = first if held else number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        commands.append(Command(held + line, f"{path}:{first}", looks=False))
        held = ""
    if held or not commands:
        raise CellsError(
            "ends in the middle of a command" if held else "contains no command",
            where=str(path),
            next_step="write complete commands, one per line",
        )
    return commands


def _lines(path: Path) -> list[str]:
    return lines_of(path, "cannot be read", "check the path and the permissions of the file")


def script_of(path: Path) -> list[Command]:
    """Return the CellCLI commands of a file, one per line.

    A `-` at the end continues a line; comments begin with --, # or REM.

    Raises:
        CellsError: A line is not a command (the error names it), or the file cannot be read or has no command.
    """
    lines = _lines(path)
    commands = []
    held, first = "", 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not held and (not text or _COMMENT.fullmatch(text)):
            continue
        first = first if held else number
        if text.endswith("-"):
            held += f"{text[:-1].rstrip()} "
            continue
        commands.append(command_of(held + text, f"{path}:{first}"))
        held = ""
    if held:
        raise CellsError(
            "ends in the middle of a command",
            where=f"{path}:{first}",
            next_step="write complete commands, one per line",
        )
    if not commands:
        raise CellsError("contains no command", where=str(path), next_step="write one command of CellCLI per line")
    return commands


@dataclass(frozen=True)
class Group:
    """Cells whose answers are equal except for the cells' names."""

    cells: list[str]
    output: str
    problem: str | None
    next_step: str | None


def group_answers(answers: Iterable[Answer], own: Mapping[Host, str] | None = None) -> list[Group]:
    """Group equal answers, in order of first appearance.

    A cell's name in its answer is replaced by <cell>, so that it does not make answers differ. Answers that differ only
    in standalone numbers are equal, too: the range from the smallest to the largest is shown in place of each number.

    Args:
        answers: The answers.
        own: Names that the cells report for themselves; other cells use the name by which they were reached.
    """
    found: dict[tuple[str, str | None, int | None], list[tuple[Answer, str]]] = {}
    for answer in answers:
        name = (own or {}).get(answer.host) or answer.host.address.split(".")[0]
        text = _without_name(name, answer.output)
        found.setdefault((COUNTER.sub("\0", text), answer.problem, answer.code), []).append((answer, text))
    return [
        Group(
            [answer.host.name for answer, _ in alike],
            visible(alike[0][0].output.rstrip() if len(alike) == 1 else merge_numbers([text for _, text in alike])),
            problem or failure(alike[0][0]),
            alike[0][0].next_step,
        )
        for (_, problem, _), alike in found.items()
    ]


def merge_numbers(texts: Sequence[str]) -> str:
    """Return texts that differ only in numbers as one text, with a range in place of each number that differs."""
    columns = zip(*(COUNTER.findall(text) for text in texts), strict=True)
    ends = iter([(min(own, key=_number), max(own, key=_number)) for own in columns])

    def span(_: re.Match[str]) -> str:
        low, high = next(ends)
        return low if low == high else f"{low}..{high}"

    return COUNTER.sub(span, texts[0])


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def remove_lines(pattern: re.Pattern[str], answers: Iterable[Answer]) -> dict[str, int]:
    """Remove matching lines from the answers, and return how many were removed for each cell."""
    found = {}
    for answer in answers:
        lines = answer.output.splitlines(keepends=True)
        kept = [line for line in lines if not pattern.search(line)]
        if len(kept) < len(lines):
            found[answer.host.name] = len(lines) - len(kept)
            answer.output = "".join(kept)
    return found


def failure(answer: Answer) -> str | None:
    """Return why a command failed on a cell, or None if it succeeded."""
    error = re.search(r"^[ \t]*(CELL-\d{5}: .*)", answer.output, re.MULTILINE)
    if answer.problem:
        return answer.problem
    if error:
        return visible(error[1].strip())
    if answer.code:
        said = answer.errors.strip().split("\n")[-1][:120]
        return f"exit {answer.code}{f': {visible(said)}' if said else ''}"
    return None


def names_of(cells: Sequence[str], all_of: int) -> str:
    """Return the names of cells and how many of all cells they are, such as 'cel01, cel02 (2 of 3)'."""
    return f"{', '.join(cells)} ({len(cells)} of {all_of})"


def _without_name(name: str, output: str) -> str:
    text = output.rstrip()
    if not re.search(r"[A-Za-z]", name):
        return text
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "<cell>", text)
