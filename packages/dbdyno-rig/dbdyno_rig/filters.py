"""The text filters that scripts which call CellCLI use: echo, cat, grep, head, tail, sort, wc, uniq.

Each takes its arguments and its input, and returns output, errors and exit code. The common short options are
supported; any other option is refused with exit code 2 and a message that names it. There are no files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple


class ProgramResult(NamedTuple):
    """Result of a program: output, errors, exit code."""

    output: str = ""
    errors: str = ""
    code: int = 0


class UsageError(Exception):
    """Error for arguments that a program does not accept."""


Program = Callable[[Sequence[str], str], ProgramResult]


def _options(words: Sequence[str], plain: str, valued: str = "") -> tuple[dict[str, str], list[str]]:
    """Return the short options among the words (those in `valued` with their values), and the other words."""
    found: dict[str, str] = {}
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in valued:
                found[letter] = letters or (left.pop(0) if left else "")
                letters = ""
            elif letter in plain:
                found[letter] = ""
            else:
                raise UsageError(f"option -{letter} is not understood by this modelled cell")
    return found, rest


def _no_files(rest: Sequence[str]) -> None:
    if rest:
        raise UsageError(f"{rest[0]}: No such file or directory")


def _echo(words: Sequence[str], given: str) -> ProgramResult:
    del given
    quiet = bool(words) and words[0] == "-n"
    return ProgramResult(" ".join(words[quiet:]) + ("" if quiet else "\n"))


def _cat(words: Sequence[str], given: str) -> ProgramResult:
    _no_files([word for word in words if word != "-"])
    return ProgramResult(given)


def _grep(words: Sequence[str], given: str, *, extended: bool = False) -> ProgramResult:
    options, rest = _options(words, "ivcwqEF", "e")
    pattern = options["e"] if "e" in options else rest.pop(0) if rest else None
    if pattern is None:
        raise UsageError("no pattern is given")
    _no_files(rest)
    if "F" in options:
        pattern = re.escape(pattern)
    elif not (extended or "E" in options):
        # In a basic regular expression, operators are preceded by backslashes.
        pattern = re.sub(r"\\?[|(){}+?]", lambda m: m[0][-1] if len(m[0]) > 1 else f"\\{m[0]}", pattern)
    try:
        found = re.compile(rf"\b(?:{pattern})\b" if "w" in options else pattern, re.IGNORECASE if "i" in options else 0)
    except re.error as error:
        raise UsageError(f"{pattern}: {error}") from error
    kept = [line for line in given.splitlines() if bool(found.search(line)) != ("v" in options)]
    shown = f"{len(kept)}\n" if "c" in options else _text(kept)
    return ProgramResult("" if "q" in options else shown, "", 0 if kept else 1)


def _count(words: Sequence[str]) -> int:
    # `-5` is `-n 5`.
    words = [f"-n{word[1:]}" if re.fullmatch(r"-\d+", word) else word for word in words]
    options, rest = _options(words, "", "n")
    _no_files(rest)
    text = options.get("n", "10")
    if not text.isdigit():
        raise UsageError(f"{text}: not a number of lines")
    return int(text)


def _head(words: Sequence[str], given: str) -> ProgramResult:
    return ProgramResult(_text(given.splitlines()[: _count(words)]))


def _tail(words: Sequence[str], given: str) -> ProgramResult:
    count = _count(words)
    return ProgramResult(_text(given.splitlines()[-count:] if count else []))


def _sort(words: Sequence[str], given: str) -> ProgramResult:
    options, rest = _options(words, "nru", "k")
    _no_files(rest)
    field = options.get("k", "1").split(",")[0].rstrip("nr")
    if not field.isdigit() or field == "0":
        raise UsageError(f"{field}: not a field number")

    def key(line: str) -> tuple[float, str]:
        text = " ".join(line.split()[int(field) - 1 :])
        number = re.match(r"-?\d*\.?\d+", text) if "n" in options else None
        return (float(number[0]) if number else 0.0, "" if "n" in options else text)

    lines = sorted(given.splitlines())
    lines.sort(key=key, reverse="r" in options)
    return ProgramResult(_text(list(dict.fromkeys(lines)) if "u" in options else lines))


def _wc(words: Sequence[str], given: str) -> ProgramResult:
    options, rest = _options(words, "lwc")
    _no_files(rest)
    counts = {"l": given.count("\n"), "w": len(given.split()), "c": len(given.encode())}
    return ProgramResult(" ".join(str(n) for key, n in counts.items() if key in (options or counts)) + "\n")


def _uniq(words: Sequence[str], given: str) -> ProgramResult:
    options, rest = _options(words, "c")
    _no_files(rest)
    runs = [(line, len(list(same))) for line, same in groupby(given.splitlines())]
    return ProgramResult(_text([f"{n:7} {line}" if "c" in options else line for line, n in runs]))


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _guard(name: str, work: Program) -> Program:
    def run(words: Sequence[str], given: str) -> ProgramResult:
        try:
            return work(words, given)
        except UsageError as error:
            return ProgramResult("", f"{name}: {error}\n", 2)

    return run


PROGRAMS: dict[str, Program] = {
    name: _guard(name, work)
    for name, work in {
        "echo": _echo,
        "cat": _cat,
        "grep": _grep,
        "egrep": lambda words, given: _grep(words, given, extended=True),
        "head": _head,
        "tail": _tail,
        "sort": _sort,
        "wc": _wc,
        "uniq": _uniq,
        "true": lambda _words, _given: ProgramResult(),
        "false": lambda _words, _given: ProgramResult(code=1),
    }.items()
}
"""The supported programs, by name."""
