"""Two periods by statement, table, index, database and role: which of them changed for certain?

Each sub-interval gives one rate of each measure of each object, zero where nothing was counted; one in
which the object's counters were lost gives none. The tests are those of the metrics, and all rows of
all objects share one false-discovery rate. What did not change is counted, not shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dbdyno.errors import EvidenceError
from dbdyno.judge.compared import compared
from dbdyno.snapshot.difference import quoted
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.model import Row, beginning, columns, section, table
from dbdyno.snapshot.series import Metric
from dbdyno.snapshot.view import LOSSES

MOST = 150
"""So many objects of a kind are tested: those whose rate changed most."""

_SHOWN = (
    "measure:text decision:text a:number:first b:number:second ratio:change:change low:change:from"
    " high:change:to chance:ratio:second_larger q:p"
)
_NOT_SHOWN = ("same", "cannot tell", "none in either", "not measured")

Rates = dict[str, list[float]]


@dataclass(frozen=True)
class Kind:
    """A kind of object: its view, the columns that name it, and what is measured, as SQL."""

    title: str
    view: str
    by: tuple[str, ...]
    measures: tuple[tuple[str, tuple[str, ...], float], ...]


KINDS = (
    Kind(
        "statement",
        "pg_stat_statements",
        ("queryid",),
        (
            ("time, ms a second", ("total_exec_time", "total_time"), 1),
            ("calls a second", ("calls",), 1),
            ("rows a second", ("rows",), 1),
            ("blocks hit a second", ("shared_blks_hit",), 1),
            ("blocks read a second", ("shared_blks_read",), 1),
        ),
    ),
    Kind("role", "pg_stat_statements", ("userid",), (("time, ms a second", ("total_exec_time", "total_time"), 1),)),
    Kind(
        "table",
        "pg_stat_user_tables",
        ("datname", "schemaname", "relname"),
        (
            ("sequential scans a second", ("seq_scan",), 1),
            ("rows by sequential scans a second", ("seq_tup_read",), 1),
            ("rows inserted a second", ("n_tup_ins",), 1),
            ("rows updated a second", ("n_tup_upd",), 1),
            ("rows deleted a second", ("n_tup_del",), 1),
        ),
    ),
    Kind(
        "index",
        "pg_stat_user_indexes",
        ("datname", "schemaname", "indexrelname"),
        (("scans a second", ("idx_scan",), 1),),
    ),
    Kind(
        "database",
        "pg_stat_database",
        ("datname",),
        (
            ("transactions a second", ("xact_commit",), 1),
            ("blocks read a second", ("blks_read",), 1),
            ("temporary bytes a second", ("temp_bytes",), 1),
        ),
    ),
)


def by_object(before: Interval, after: Interval, *, threshold: float, allowed: bool) -> dict[str, Any]:
    """The section of what changed, by kind of object."""
    texts = _texts(before) | _texts(after)
    found: dict[str, list[Row]] = {}
    for kind in KINDS:
        found[kind.title] = list(_rows(kind, before, after, threshold))
    compared_rows = [row for rows in found.values() for row in rows]
    _decide(compared_rows, threshold, allowed)
    tables = []
    notes = []
    for title, rows in found.items():
        shown = [row for row in rows if row["decision"] not in _NOT_SHOWN]
        if title == "statement":
            for row in shown:
                row["begins"] = beginning(texts.get(row["object"]))
        if title == "role":
            for row in shown:
                row["object"] = (after.after.facts.get("roles") or {}).get(row["object"], row["object"])
        name = "begins:text:statement object:text:identifier" if title == "statement" else f"object:text:{title}"
        shown.sort(key=lambda row: -abs(row["weight"]))
        tables.append(table(f"By {title}", columns(f"{name} {_SHOWN}"), shown, top=20))
        if len(rows) > len(shown):
            notes.append(f"by {title}: {len(rows) - len(shown)} of {len(rows)} rates did not change for certain")
    return section(
        "objects",
        "What changed, by object",
        tables,
        about="first and second: median rates of the sub-intervals. new: none in the first period; gone: none in the"
        " second. q: p after false-discovery control over all rows of this section.",
        notes=notes,
    )


def _decide(rows: list[Row], threshold: float, allowed: bool) -> None:
    from dbdyno.judge.compared import decision
    from dbdyno.stats.decide import benjamini_hochberg

    judged = [row for row in rows if row["p"] is not None]
    for row, q in zip(judged, benjamini_hochberg([row["p"] for row in judged]), strict=True):
        row["q"] = q
        row["decision"] = decision(row, q, threshold) if allowed else "not comparable"
        if allowed and q <= 0.05 and row["only"]:
            row["decision"] = row["only"]


def _rows(kind: Kind, before: Interval, after: Interval, threshold: float) -> Iterable[Row]:
    for label, names, factor in kind.measures:
        sides = [_rates(kind, one, names) for one in (before, after)]
        if None in sides:
            continue
        old, new = sides[0] or {}, sides[1] or {}
        zeros = [[0.0] * len(next(iter(side.values()), [])) for side in (old, new)]
        every = sorted(old.keys() | new.keys(), key=lambda o: -abs(_mean(new.get(o)) - _mean(old.get(o))))
        for name in every[:MOST]:
            a, b = ([v * factor for v in side.get(name, none)] for side, none in ((old, zeros[0]), (new, zeros[1])))
            row = compared(Metric(name, label, "number"), a, b, threshold)
            only = "new" if any(b) and not any(a) else "gone" if any(a) and not any(b) else ""
            yield row | {"object": name, "measure": label, "only": only, "weight": _mean(b) - _mean(a)}


def _mean(values: list[float] | None) -> float:
    return sum(values) / len(values) if values else 0.0


def _rates(kind: Kind, one: Interval, names: tuple[str, ...]) -> Rates | None:
    """The rate of a column in each good sub-interval, by object; None where it is not known."""
    if not one.has(kind.view):
        return None
    source, known = one.sums.relation(kind.view, folded=False)
    name = next((n for n in names if n in {c.name for c in known}), None)
    if name is None or not set(kind.by) <= {c.name for c in known}:
        return None
    scope = one.after.views[kind.view].get("scope")
    good = [
        part
        for part in one.sums.parts()
        if not any(v[0] in (scope, f"view:{kind.view}") and v[2] in LOSSES for v in part["verdicts"])
    ]
    at = {part["number"]: index for index, part in enumerate(good)}
    seconds = [part["elapsed_ns"] / 1e9 for part in good]
    named = " || '.' || ".join(f"{quoted(column)}::varchar" for column in kind.by)
    try:
        rows = one.query(f"select part, {named} as object, sum({quoted(name)}) as n from {source} group by 1, 2")
    except EvidenceError:
        return None
    found: Rates = {}
    for row in rows:
        if row["part"] in at and row["object"] is not None:
            index = at[row["part"]]
            found.setdefault(row["object"], [0.0] * len(good))[index] += float(row["n"] or 0) / seconds[index]
    return found


def _texts(one: Interval) -> dict[str, str]:
    if one.after.engine != "postgres" or one.after.file("statement_texts") is None:
        return {}
    rows = one.query(f"select queryid, query from {one.ends('statement_texts')[1]}")
    return {str(row["queryid"]): row["query"] or "" for row in rows}
