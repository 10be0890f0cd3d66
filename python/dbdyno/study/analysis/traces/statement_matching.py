"""Matching of the statements of two sets of traces.

A SQL_ID that is in both sets is the same statement. All others are matched by their text without literals and bind
variables, so that a thousand statements with literals match the one with bind variables that they should have been, or
that `cursor_sharing = force` made of them. Comments (which tools add, often with a trace number), the length of lists,
blanks and case are ignored; hints are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from dbdyno.trace.source import Traces

_PART = re.compile(
    r"""(?P<comment>/\*(?!\+)(?:[^*]++|\*(?!/))*+(?:\*/)?|--(?!\+)[^\n]*)
    | (?P<name>"[^"\n]*")
    | '(?:[^']++|'')*+'?                       # a text, whole or cut off
    | :"[^"\n]*" | :\w+ | \$\d+ | \?           # a bind variable: Oracle's own, the system's, PostgreSQL's, JDBC's
    | (?<![\w$\#."])\d+(?:\.\d+)?(?:e[+-]?\d+)?  # a number""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_LIST = re.compile(r"\( ?:n(?: ?, ?:n)* ?\)")


@dataclass(frozen=True)
class MatchedStatement:
    """A statement of one or both sets, with the number of different texts that were matched to it in each set."""

    key: str
    text: str
    texts: tuple[int, int]


def match(sets: tuple[Traces, Traces], *, merge_literals: bool = False) -> dict[str, MatchedStatement]:
    """Create a table `matched` (statement, key, text, command) in each set, and return the statements by key.

    If `merge_literals` is True, all statements are matched by their text, even those whose SQL_ID is in both sets.
    """
    listed = [_statements_of(traces) for traces in sets]
    shared = set() if merge_literals else set(listed[0]) & set(listed[1])
    keys: list[dict[str, str]] = []
    groups: dict[str, list[set[str]]] = {}
    for at, rows in enumerate(listed):
        keys.append({})
        for statement, row in rows.items():
            group = statement if statement in shared else _matching_key(row)
            groups.setdefault(group, [set(), set()])[at].add(statement)
            keys[at][statement] = group
    known: dict[str, MatchedStatement] = {}
    names: dict[str, str] = {}
    for group, members in groups.items():
        every = sorted(members[0] | members[1])
        name = every[0] if len(every) == 1 else _name(members)
        names[group] = name
        first = next(rows[every[0]] for rows in listed if every[0] in rows)
        text = first["text"] if len(every) == 1 else (first["force_match"] or first["text"])
        known[name] = MatchedStatement(name, str(text or ""), (len(members[0]), len(members[1])))
    for traces, rows, own in zip(sets, listed, keys, strict=True):
        _lay(traces, [(s, names[own[s]], row["text"], row["command"]) for s, row in rows.items()])
    return known


class _Statement(TypedDict):
    """A statement of a set, and the texts by which it may be matched."""

    statement: str
    text: str | None
    force_match: str | None
    command: int | None


def _statements_of(traces: Traces) -> dict[str, _Statement]:
    rows = traces.rows(
        """
        select c.statement, any_value(s.text) as text, any_value(s.force_match) as force_match,
               any_value(s.command) as command
        from (select distinct coalesce(statement, '') as statement from calls) c
        left join statements s on s.statement = c.statement group by c.statement
        """
    )
    return {row["statement"]: cast("_Statement", row) for row in rows}


def _matching_key(row: _Statement) -> str:
    """Return the key by which a statement is matched; a statement without a text matches no other."""
    text = row["text"] or row["force_match"]
    return "text " + fold_text(text) if text else "key " + str(row["statement"])


def fold_text(text: str) -> str:
    """Return a text without the parts that differ between executions of the same statement.

    >>> fold_text("select a from t where b in (1, 2, 3) /* id='7' */")
    'SELECT A FROM T WHERE B IN (:n)'
    >>> fold_text('select a from t where b in (:"SYS_B_0")')
    'SELECT A FROM T WHERE B IN (:n)'
    """
    parts, last = [], 0
    for found in _PART.finditer(text):
        stands = " " if found["comment"] else found["name"] or ":n"
        parts += [text[last : found.start()].upper(), stands]
        last = found.end()
    return _LIST.sub("(:n)", " ".join("".join([*parts, text[last:].upper()]).split()))


def _name(members: list[set[str]]) -> str:
    """Return the SQL_ID that names a group; if a set has only one statement in the group, it is that statement's."""
    single = next((own for own in members if len(own) == 1), None)
    return min(single) if single else min(members[0] | members[1])


def _lay(traces: Traces, rows: list[tuple[str, str, Any, Any]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    traces.connection.execute(
        "create or replace temp table matched as select unnest($1::varchar[]) as statement,"
        " unnest($2::varchar[]) as key, unnest($3::varchar[]) as text, unnest($4::bigint[]) as command",
        columns,
    )
