"""Texts of statements, read only for those that may be in a report, and stored without literals.

Reading any text makes the extension load all of them (a second for 190 MB). Therefore texts are queried at most once
per snapshot, and only while the text of one of the top statements is unknown. PostgreSQL replaces literals by
placeholders in statements that it plans; commands such as ALTER ROLE are kept as typed, and everything in quotes in
them is removed here.
"""

from __future__ import annotations

import csv
import hashlib
import heapq
import io
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.engines.postgres.facts import is_ours
from dbdyno.snapshot.engines.postgres.reader import Reader, refused_part
from dbdyno.snapshot.engines.view import Column, View, unread_view

if TYPE_CHECKING:
    from dbdyno.snapshot.store.folder import Snapshot

NAME = "statement_texts"
LONGEST = 20_000
TEXTS_PER_ORDER = 50
"""Number of top statements per sort order whose texts are read.

The number is larger than what a report shows, because on a quiet server the top statements are dbdyno's own, which a
report leaves out.
"""

COLUMNS = (
    Column("queryid", "key", "count", "BIGINT"),
    Column("fingerprint", "text", "text", "VARCHAR"),
    Column("query", "text", "text", "VARCHAR"),
)

ORDERS: tuple[tuple[str, ...], ...] = (
    ("total_exec_time", "total_time"),
    ("total_plan_time",),
    ("calls",),
    ("rows",),
    ("shared_blks_read",),
    ("shared_blks_hit",),
    ("temp_blks_written",),
    ("wal_bytes",),
    ("blk_read_time", "shared_blk_read_time"),
)
"""Columns by which a report sorts statements; a server has at most one column of each group."""

_QUOTED = re.compile(
    r"(?:[eE]|[uU]&)?'(?:[^'\\]|''|\\(?:.|\Z))*+(?:'|\Z)"
    r"|(\$[A-Za-z_]*\$).*?(?:\1|\Z)"
    r"|\"(?:[^\"]|\"\")*+(?:\"|\Z)",
    re.S,
)
"""Pattern of quoted texts; one without a closing quote extends to the end of the text.

Searching for the end again from every quote would take quadratic time.
"""
_NUMBER = re.compile(r"(?<![\w$.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\b", re.I)
_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)*\s*(?:/\*, \.\.\. \*/\s*)?\)")


def view(reader: Reader, statements: View, before: Snapshot | None, limit: int, seen: Sequence[str] = ()) -> View:
    """Return the view of all texts known so far.

    It has the texts of the previous snapshot, of new identifiers that are among the top in a sort order, and of
    statements that were `seen` in sampled sessions. At most `limit` new texts are read.
    """
    import psycopg

    texts = _of(before)
    ours = {one for one, text in texts.items() if is_ours(text)}
    known = _identifiers(statements) if set(map(int, seen)) - texts.keys() else set()
    first = [one for one in map(int, seen) if one in known]
    wanted = [one for one in dict.fromkeys([*first, *top_statements(statements, before, ours)]) if one not in texts][
        :limit
    ]
    spent = 0
    if wanted:
        started = time.perf_counter_ns()
        schema = reader.schemas["pg_stat_statements"]
        try:
            with reader.connection.transaction():
                rows = reader.connection.execute(
                    f"select queryid, min(left(query, {LONGEST}))"
                    f' from "{schema}".pg_stat_statements where queryid = any(%s) group by 1',
                    [wanted],
                ).fetchall()
        except psycopg.Error as error:
            if reader.connection.broken:
                raise
            part = refused_part(error)
            if not texts:
                return unread_view(NAME, "now", part.problem or "", part.next_step)
            rows = []
        spent = time.perf_counter_ns() - started
        for identifier, text in rows:
            if text and text != "<insufficient privilege>":
                texts[int(identifier)] = without_literals(text)
    kept = [(i, fingerprint(texts[i]), texts[i]) for i in sorted(texts)]
    return View(NAME, "now", COLUMNS, kept, elapsed_ns=spent)


def _identifiers(statements: View) -> Set[int]:
    """Return the identifiers for which the extension has an entry; others have no text yet."""
    if not isinstance(statements.rows, bytes):
        return set()
    at = [column.name for column in statements.columns].index("queryid")
    return {int(row[at]) for row in csv.reader(io.StringIO(statements.rows.decode(errors="replace"))) if row[at]}


def top_statements(statements: View, before: Snapshot | None, ours: Set[int]) -> list[int]:
    """Return the statements in any Top SQL list, sorted by increase since the previous snapshot or by total.

    dbdyno's own statements, `ours`, are left out.
    """
    if not isinstance(statements.rows, bytes):
        return []
    names = [column.name for column in statements.columns]
    chosen = [next((n for n in group if n in names), "") for group in ORDERS]
    shown = [name for name in chosen if name]
    places = [names.index(name) for name in shown]
    at = names.index("queryid")
    sums: dict[int, list[float]] = {}
    for row in csv.reader(io.StringIO(statements.rows.decode(errors="replace"))):
        own = sums.setdefault(int(row[at]), [0.0] * len(shown))
        for index, place in enumerate(places):
            own[index] += float(row[place] or 0)
    for identifier, old in _sums(before, shown).items():
        if identifier in sums:
            new = sums[identifier]
            sums[identifier] = [a - b if a >= b else a for a, b in zip(new, old, strict=True)]
    others = sums.keys() - ours
    found: dict[int, None] = {}
    for index in range(len(shown)):
        first = heapq.nlargest(TEXTS_PER_ORDER, others, key=_at(sums, index))
        found |= {one: None for one in first if sums[one][index] > 0}
    return list(found)


def _at(sums: Mapping[int, list[float]], index: int) -> Callable[[int], float]:
    return lambda one: sums[one][index]


def _sums(before: Snapshot | None, shown: Iterable[str]) -> dict[int, list[float]]:
    rows_of = _whole(before, "pg_stat_statements")
    names = {column.name for column in before.columns("pg_stat_statements")} if before else set()
    shown = list(shown)
    if rows_of is None or not set(shown) <= names:
        return {}
    sums = ", ".join(f"sum({name})::double" for name in shown)
    rows = _query(f"select queryid, {sums} from {rows_of} group by 1")
    return {int(row[0]): [float(value or 0) for value in row[1:]] for row in rows}


def _of(before: Snapshot | None) -> dict[int, str]:
    rows_of = _whole(before, NAME)
    return {} if rows_of is None else {int(i): str(t) for i, t in _query(f"select queryid, query from {rows_of}")}


def _whole(before: Snapshot | None, view: str) -> str | None:
    """Return the relation with a view's rows in the previous snapshot, or None if it cannot be read."""
    return before.relation(view) if before is not None and before.problem(view) is None else None


def _query(sql: str) -> list[tuple[Any, ...]]:

    with file_connection() as connection:
        return connection.execute(sql).fetchall()


def without_literals(text: str) -> str:
    """Return a text with everything in single or dollar quotes replaced by `'?'`; double quotes are kept."""
    return _QUOTED.sub(lambda found: found[0] if found[0].startswith('"') else "'?'", text)


def fingerprint(text: str) -> str:
    """Return a hash that is the same for the same statement on any server and version.

    PostgreSQL's identifiers differ, because up to version 17 they are derived from object numbers. White space, case,
    numbers, placeholders and the length of lists make no difference.
    """
    plain = re.sub(r"/\*(?!, \.\.\.).*?\*/|--[^\n]*", " ", without_literals(text), flags=re.S)
    folded = _NUMBER.sub("?", re.sub(r"\$\d+|'\?'", "?", plain)).casefold()
    short = _LIST.sub("(?)", " ".join(folded.split()))
    return hashlib.blake2b(short.encode(), digest_size=8).hexdigest()
