r"""Pairing of the files of two sets by their names: the same job, traced before and after.

A pattern such as `ms-(\d+)` extracts the key from a file's name: the contents of its groups, or the whole match if it
has no groups. All files of a set with the same key form one side of a pair; files without a counterpart are left out of
the comparison, and their names are reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from dbdyno.base.errors import TraceError
from dbdyno.trace.source import Traces

TABLES = ("calls", "waits", "sessions", "transactions", "plans", "errors")
NAMED = 6


@dataclass(frozen=True)
class Pairs:
    """The keys in order, the files of each key in both sets, and the names of files without a counterpart."""

    keys: tuple[str, ...]
    files: tuple[dict[str, list[int]], dict[str, list[int]]]
    alone: tuple[str, ...]


def pair(sets: tuple[Traces, Traces], pattern: str) -> Pairs:
    """Pair the files of two sets by `pattern`, and restrict all later queries to the paired files.

    In each set, this creates a table `pairs` (file, pair) and, over each table, a view of the same name.

    Raises:
        TraceError: The pattern is not a regular expression, or pairs no file.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise TraceError(
            f"{pattern!r} is not a valid regular expression: {error}",
            where="--pair",
            next_step="give an expression that matches part of the file names, such as 'job-(\\d+)'",
        ) from error
    sides = tuple(_files(traces, compiled) for traces in sets)
    keys = tuple(sorted(set(sides[0]) & set(sides[1]), key=_natural))
    if not keys:
        raise TraceError(
            f"{pattern!r} does not pair any file: it finds {_some_keys(sides[0])} in the first set, "
            f"{_some_keys(sides[1])} in the other",
            where="--pair",
            next_step="put brackets around a part of the name that is the same on both sides",
        )
    for traces, files in zip(sets, sides, strict=True):
        _restrict(traces, [(file, at) for at, key in enumerate(keys) for file in files[key]])
    return Pairs(keys, (sides[0], sides[1]), tuple(_unpaired_files(sets, sides, keys)))


def _files(traces: Traces, pattern: re.Pattern[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for entry in traces.manifest.files:
        name = PurePath(str(entry.get("path", ""))).name
        fit = pattern.search(name)
        if fit is not None:
            key = " ".join(part or "" for part in fit.groups()) if fit.groups() else fit[0]
            found.setdefault(key, []).append(int(entry["file"]))
    return found


def _natural(key: str) -> list[tuple[int, str]]:
    """Return a sort key that puts 9 before 10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", key)]


def _some_keys(files: dict[str, list[int]]) -> str:
    keys = sorted(files, key=_natural)
    more = ", …" if len(keys) > NAMED else ""
    return ", ".join(map(repr, keys[:NAMED])) + more if keys else "nothing"


def _unpaired_files(
    sets: tuple[Traces, Traces], sides: tuple[dict[str, list[int]], ...], keys: tuple[str, ...]
) -> list[str]:
    found = []
    for traces, files in zip(sets, sides, strict=True):
        paired = {file for key in keys for file in files[key]}
        for entry in traces.manifest.files:
            if entry.get("file") not in paired:
                found.append(PurePath(str(entry.get("path", ""))).name)
    return found


def _restrict(traces: Traces, files: list[tuple[int, int]]) -> None:
    execute = traces.connection.execute
    execute(
        "create or replace temp table pairs as select unnest($1::uinteger[]) as file, unnest($2::bigint[]) as pair",
        [[file for file, _ in files], [at for _, at in files]],
    )
    for table in TABLES:
        execute(f"create temp view {table} as select t.* from memory.main.{table} t semi join pairs using (file)")  # noqa: S608
