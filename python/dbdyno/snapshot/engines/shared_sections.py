"""Helpers that the report sections of several engines share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.base.sections import Part, Row, Table, columns, missing_measurement, section, table
from dbdyno.snapshot.model import sql_columns

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

    Section = Callable[[Interval, int], Part]


def needs(
    *views: str, name: str, title: str, what: str | None = None, otherwise: str | None = None
) -> Callable[[Section], Section]:
    """Return a decorator for a section that needs views: if one has no difference, the section only says why.

    Args:
        views: The views.
        name: Name of the section.
        title: Title of the section if a view is missing.
        what: What is not measured if a view is missing; by default the section's name.
        otherwise: The next step to show if none is known for the missing view.
    """

    def with_reason(make: Section) -> Section:
        @functools.wraps(make)
        def made(interval: Interval, top: int) -> Part:
            for view in views:
                if missing := interval.missing_reason(view):
                    why, step = missing
                    return section(
                        name, title, not_measured=[missing_measurement(what or name, why, step or otherwise)]
                    )
            return make(interval, top)

        return made

    return with_reason


def load_profile(
    interval: Interval,
    values: Iterable[tuple[str, Any, str, float]],
    done: float | None,
    *,
    of: str = "transaction",
    about: str = "",
    notes: Sequence[str] = (),
) -> Part:
    """Return the section LOAD PROFILE, per second and per transaction.

    Args:
        interval: The interval.
        values: For each line its label, the value over the interval (None if not known), its unit, and a factor for it.
        done: Number of transactions; None if not known.
        of: What is counted by `done`: a transaction, or another unit.
        about: Explanation that the section shows.
        notes: Notes on the section.
    """
    rows = []
    for label, value, unit, factor in values:
        known = None if value is None else value * factor
        rows.append(
            {
                "what": label,
                "per_second": None if known is None else known / interval.seconds,
                f"per_{of}": None if known is None or not done else known / done,
                "total": known,
                "unit": unit,
            }
        )
    shown = columns(f"what:text per_second:number:per_second per_{of}:number:per_{of} total:number unit:text:")
    return section("profile", "Load profile", [table("", shown, rows)], about=about, notes=notes)


def sum_of(found: Mapping[str, float | None], *names: str) -> float | None:
    """Return the sum of the counters with these names; None if one is not known."""
    values = [found.get(name) for name in names]
    return None if None in values else sum(value or 0 for value in values)


def rates_of(found: Mapping[str, float | None], seconds: float) -> Callable[..., float | None]:
    """Return a function from names of counters, and a factor, to the rate per second of their sum; None if unknown."""

    def rate(*names: str, factor: float = 1) -> float | None:
        value = sum_of(found, *names)
        return None if value is None else value * factor / seconds

    return rate


_UNKNOWN = "verdict <> 'ok' and not (verdict = 'evicted' and life <> 'gone')"
"""SQL condition of a row whose difference has not even a known lower bound."""


def unknown_rows_table(interval: Interval, view: str, name: str, top: int, where: str = _UNKNOWN) -> Table:
    """Return the table of a view's rows whose difference is not known, each with its verdict and reason."""
    rows = interval.query(f"select {name} as name, verdict, why from {view} where {where} order by 2, 1", view)
    return table("Difference not known", columns("name:text verdict:text why:text"), rows, top=top)


def top_statements(
    orders: Iterable[tuple[str, str, str]],
    rows: Sequence[Row],
    texts: Mapping[str, str | None],
    top: int,
    lost: Table,
    *,
    further: Sequence[Table] = (),
    rest: str | None = None,
    **more: Any,
) -> Part:
    """Return the section TOP SQL.

    It has a table of the first statements of each order (heading, column, shown columns), `further` tables, the texts
    of the statements shown, and those that are not known. `rest` is the row of all other statements: it has no text.
    """
    tables, shown = [], dict[str, None]()
    for heading, order, spec in orders:
        first = sorted((row for row in rows if row[order]), key=lambda row: -row[order])
        tables.append(table(heading, sql_columns(spec), first, top=top))
        shown |= dict.fromkeys(row["statement"] for row in first[:top] if row["statement"] != rest)
    told = [{"statement": one, "text": texts.get(one)} for one in shown]
    said = table("Texts", columns("text:text statement:code:identifier"), told)
    return section("sql", "Top SQL", [*tables, *further, said, lost], **more)


def changed_settings(interval: Interval, view: str, nothing: str) -> Part:
    """Return the section on the settings of a view (name, value) that changed; `nothing` is the note if none did."""
    before, after = interval.ends(view)
    rows = interval.query(
        f"""select name as setting, a.value as before, b.value as after
        from {before} a full join {after} b using (name)
        where a.value is distinct from b.value order by 1"""
    )
    shown = columns("setting:text before:text after:text")
    return section("settings", "Settings that changed", [table("", shown, rows)], notes=[] if rows else [nothing])
