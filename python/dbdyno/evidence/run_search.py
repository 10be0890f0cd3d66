"""Search inside a run: texts of statements, values in its plan, wait events of its sessions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dbdyno.evidence.memory import file_connection
from dbdyno.evidence.run import Run

STATEMENTS = "statements.parquet"
KEYS = ("statement", "name", "sqlid")
"""Columns that can identify a statement of a trace, a recording or a rehearsal; the first existing one is used."""


class Entry(NamedTuple):
    """An item of a run that the search can find, by name and text; `kind` is 'statement' or 'plan'."""

    kind: str
    name: str
    text: str

    def has(self, words: Sequence[str]) -> bool:
        """Return True if name and text together contain all words, given in lower case."""
        whole = f"{self.name} {self.text}".lower()
        return all(word in whole for word in words)


def search_run(run: Run, words: Sequence[str], top: int) -> list[Entry]:
    """Return the entries of a run that contain all words, at most `top`; statements that cannot be read are left out.

    `words` are in lower case.
    """
    found = [one for one in _plan_entries(run) if one.has(words)][:top]
    return [*found, *_statements(run, words, top - len(found))] if words else []


def _plan_entries(run: Run) -> Iterator[Entry]:
    """Yield the values of the plan, each named by its path: `workload.script`, `arms.1.settings.work_mem`."""
    if run.manifest.has("plan"):
        yield from (Entry("plan", name, text) for name, text in _leaves("", dict(run.manifest.plan)))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list):
        for at, inner in enumerate(value, 1):
            yield from _leaves(f"{name}.{at}", inner)
    elif value is not None:
        yield name, str(value)


def _statements(run: Run, words: Sequence[str], top: int) -> list[Entry]:
    import duckdb

    path = run.path / STATEMENTS
    if top < 1 or not path.is_file():
        return []
    with contextlib.suppress(duckdb.Error), file_connection() as connection:
        rows = connection.execute("select * from read_parquet(?) limit 0", [str(path)])
        columns = [str(one[0]) for one in rows.description or ()]
        key = next((one for one in KEYS if one in columns), None)
        if key is None or "text" not in columns:
            return []
        named = (
            f"select distinct coalesce({key}::varchar, '') as name, coalesce(text, '') as text from read_parquet($1)"  # noqa: S608
        )
        kept = " and ".join(f"contains(lower(name || ' ' || text), ${at})" for at in range(2, len(words) + 2))
        sql = f"select name, text from ({named}) where {kept} order by length(text), name limit {int(top)}"  # noqa: S608
        found = connection.execute(sql, [str(path), *words]).fetchall()
        return [Entry("statement", name, text) for name, text in found]
    return []
