"""The SQL of the Oracle collector: one file per view, which any DBA can read and run manually.

The header of a file says what it is for, which grants it needs, and what each column means; nothing else is known about
the columns. A file whose name begins with `licensed_` is run only if the connection string names it.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files

from dbdyno.snapshot.engines.view import Column

LICENSED = "licensed_"
_VIEW = re.compile(r"^-- view: (\w+) +scope: (\w+) +appearance: (\w+)$", re.MULTILINE)
_COLUMN = re.compile(r"^-- column (\w+) +(\w+) +(\w+) +(\w+)$", re.MULTILINE)
_GRANTS = re.compile(r"^-- Grants: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """One file: the view that it returns, its scope and columns, and the query without the header."""

    name: str
    view: str
    scope: str
    appearance: str
    columns: tuple[Column, ...]
    grants: str
    sql: str


@functools.cache
def script(name: str) -> Script:
    """Return the script of this name."""
    text = files("dbdyno.snapshot.engines.oracle").joinpath("sql", f"{name}.sql").read_text("utf-8")
    head = _VIEW.search(text)
    grants = _GRANTS.search(text)
    assert head is not None and grants is not None, f"{name}.sql has no header"
    columns = tuple(Column(*found.groups()) for found in _COLUMN.finditer(text))
    sql = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return Script(name, head[1], head[2], head[3], columns, grants[1], sql)


def script_names() -> list[str]:
    """Return the names of all scripts."""
    folder = files("dbdyno.snapshot.engines.oracle").joinpath("sql")
    return sorted(one.name.removesuffix(".sql") for one in folder.iterdir())
