"""A user's saved queries: one SQL file with a comment above each query, editable with any editor.

    -- name: slow statements
    select queryid, calls, total_exec_time / calls as mean_ms from pg_stat_statements order by 3 desc limit 20;

The file is `queries.sql` in the folder of this user's records ($DBDYNO_STATE, or ~/.local/state/dbdyno).
"""

from __future__ import annotations

import re
from pathlib import Path

from dbdyno.base.errors import EvidenceError
from dbdyno.base.files import PRIVATE, state_folder, write_atomically

FILE = "queries.sql"
MARK = "@"
"""Prefix that marks an argument as the name of a saved query instead of SQL text."""
NAME = re.compile(r"[\w][\w .-]{0,59}")
_HEAD = re.compile(r"^-- name: *(.+?) *$", re.M)
_LARGEST = 1 << 20


def queries_file() -> Path:
    """Return the file of this user's saved queries, whether or not it exists."""
    return state_folder() / FILE


def saved_queries() -> dict[str, str]:
    """Return the saved queries by name, in file order; empty if the file does not exist or cannot be read."""
    try:
        with queries_file().open(encoding="utf-8") as file:
            text = file.read(_LARGEST)
    except (OSError, UnicodeDecodeError):
        return {}
    _, *parts = _HEAD.split(text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: body.strip().rstrip(";").strip() for name, body in pairs if body.strip()}


def saved_query(name: str) -> str:
    """Return the saved query with this name.

    Raises:
        EvidenceError: No saved query has this name.
    """
    known = saved_queries()
    if name not in known:
        raise EvidenceError(
            f"there is no saved query {name!r:.80}",
            where=str(queries_file()),
            next_step=f"use one of the saved queries ({', '.join(known) or 'none'}), or save one with `dbdyno "
            f"sql QUERY --save NAME`",
        )
    return known[name]


def save_query(name: str, text: str) -> Path:
    """Save a query under a name, replacing an earlier one, and return the file; its other content is unchanged.

    Raises:
        EvidenceError: The name is not valid, or the file cannot be read or written.
    """
    if not NAME.fullmatch(name):
        raise EvidenceError(
            f"{name!r:.80} is not a valid name of a query",
            where="--save",
            next_step="use only letters, digits, blanks, dots, - and _",
        )
    path = queries_file()
    made = f"-- name: {name}\n{text.strip().rstrip(';').strip()};\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        write_atomically(path, _with_query(before, name, made).encode())
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise EvidenceError(
            f"the query cannot be saved: {said}", where=str(path), next_step="free disk space or check the permissions"
        ) from error
    return path


def _with_query(before: str, name: str, made: str) -> str:
    """Return the file's text with a query added, or replaced if the name exists."""
    heads = list(_HEAD.finditer(before))
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        if head[1] == name:
            rest = before[after.start() :] if after else ""
            return before[: head.start()] + made + ("\n" if rest else "") + rest
    return f"{before.rstrip()}\n\n{made}" if before.strip() else made
