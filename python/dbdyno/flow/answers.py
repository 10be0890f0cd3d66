"""Comparison of one flow's answers from several engines, each with and without its optimizer.

Timings of engines that answer differently mean nothing, so answers are compared first. Rows are compared regardless of
order, numbers by value (12 significant digits); NULL and an empty text count as equal, because Pig's files do not
distinguish them.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dbdyno.base.errors import FlowError
from dbdyno.flow.tables import InputTable, plans_of

DIGITS = 12
Rows = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class Answer:
    """Rows that one engine returned, with or without its optimizer."""

    engine: str
    optimized: bool
    rows: Rows

    @property
    def name(self) -> str:
        """Return the engine's name, followed by "as written" if its optimizer was off."""
        return self.engine if self.optimized else f"{self.engine}, as written"


def answer(engine: str, optimized: bool, rows: Sequence[Sequence[Any]]) -> Answer:
    """Return an answer with its rows in canonical form, as a multiset."""
    return Answer(engine, optimized, Counter(tuple(canonical(one) for one in row) for row in rows))


def canonical(value: Any) -> str:
    """Return a value as text in a form that is equal for all engines.

    >>> canonical(2.50), canonical("2.5"), canonical(None), canonical("x")
    ('2.5', '2.5', '', 'x')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    text = str(value)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite() or not any(letter.isdigit() for letter in text):
        return text
    return format(Decimal(f"{number:.{DIGITS}g}").normalize() + 0, "f")


def answers(
    query: str | None, script: Path | None, engines: Sequence[str], tables: Sequence[InputTable]
) -> Iterator[Answer]:
    """Yield each engine's answer, first without its optimizer and then with it.

    Args:
        query: The SQL query, or None.
        script: Pig's script, or None.
        engines: The engines' names.
        tables: The tables that the query reads.

    Raises:
        FlowError: An engine has no query or script, or reports an error.
    """
    for engine in engines:
        if engine == "pig":
            if script is None:
                raise FlowError("Pig needs a separate script", where="--pig", next_step="name a .pig file")
            from dbdyno.flow import pig_plans

            found = pig_plans.rows(script)
        elif query is None:
            raise FlowError("no query is given", where=f"--engine {engine}", next_step="name a .sql file")
        else:
            found = plans_of(engine).rows(query, tables)
        for optimized, rows in zip((False, True), found, strict=True):
            yield answer(engine, optimized, rows)


def difference(first: Answer, second: Answer) -> str | None:
    """Return in words which rows only one of the answers has, or None if they are equal."""
    if first.rows == second.rows:
        return None
    lost, more = first.rows - second.rows, second.rows - first.rows
    said = [
        f"{name} alone has {sum(rows.values()):,} rows, such as ({', '.join(min(rows))})"
        for name, rows in ((first.name, lost), (second.name, more))
        if rows
    ]
    return "; ".join(said)
