"""Two periods by statement, table, index, database and role: which of them changed for certain?

Each sub-interval gives one rate of each measure of each object, zero where nothing was counted; one in
which the object's counters were lost gives none. The tests are those of the metrics, and all rows of
all objects share one false-discovery rate. What did not change is counted, not shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from dbdyno.judge.compared import compared_rows
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.model import Row, beginning, columns, section, table
from dbdyno.snapshot.postgres.facts import is_ours
from dbdyno.snapshot.rates import rates
from dbdyno.snapshot.series import Metric

MOST = 150
"""So many objects of a kind are tested: those whose rate changed most."""

_SHOWN = (
    "measure:text decision:text a:number:first b:number:second ratio:change:change low:change:from"
    " high:change:to chance:ratio:second_larger q:p"
)
_NOT_SHOWN = ("same", "cannot tell", "none in either", "not measured")


@dataclass(frozen=True)
class Kind:
    """A kind of object: its view, the columns that name it, and what is measured, as SQL."""

    title: str
    view: str
    by: tuple[str, ...]
    measures: tuple[tuple[str, tuple[str, ...], float], ...]


POSTGRES = (
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
MARIADB = (
    Kind(
        "statement",
        "events_statements_summary_by_digest",
        ("DIGEST",),
        (
            ("time, ms a second", ("SUM_TIMER_WAIT",), 1e-6),
            ("calls a second", ("COUNT_STAR",), 1),
            ("rows examined a second", ("SUM_ROWS_EXAMINED",), 1),
            ("temporary tables on disk a second", ("SUM_CREATED_TMP_DISK_TABLES",), 1),
        ),
    ),
    Kind(
        "table",
        "table_io_waits_summary_by_table",
        ("OBJECT_SCHEMA", "OBJECT_NAME"),
        (
            ("rows fetched a second", ("COUNT_FETCH",), 1),
            ("rows inserted a second", ("COUNT_INSERT",), 1),
            ("rows updated a second", ("COUNT_UPDATE",), 1),
            ("rows deleted a second", ("COUNT_DELETE",), 1),
        ),
    ),
    Kind(
        "index",
        "table_io_waits_summary_by_index_usage",
        ("OBJECT_SCHEMA", "OBJECT_NAME", "INDEX_NAME"),
        (("rows read a second", ("COUNT_READ",), 1),),
    ),
)
KINDS = {"postgres": POSTGRES, "mariadb": MARIADB}
_TEXTS = {"postgres": "queryid", "mariadb": "DIGEST"}
"""What identifies a statement's text."""


def by_object(before: Interval, after: Interval, *, threshold: float, allowed: bool, hourly: bool) -> dict[str, Any]:
    """The section of what changed, by kind of object."""
    texts = _texts(before) | _texts(after)
    found: dict[str, list[Row]] = {}
    own = {key for key, text in texts.items() if is_ours(text)}
    for kind in KINDS[before.before.engine]:
        left_out = own if kind.title == "statement" else set()
        found[kind.title] = list(_rows(kind, before, after, left_out, hourly=hourly))
    _decide([row for rows in found.values() for row in rows], threshold, allowed)
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
    if own:
        notes.append(f"by statement: {len(own)} of dbdyno's own are left out")
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


def _rows(kind: Kind, before: Interval, after: Interval, left_out: AbstractSet[str], *, hourly: bool) -> Iterable[Row]:
    wanted = {label: names for label, names, _ in kind.measures}
    factors = {label: factor for label, _, factor in kind.measures}
    sides = [rates(one, kind.view, kind.by, wanted, hourly=hourly) for one in (before, after)]
    old, new = sides
    if old is None or new is None:
        return
    for label in (one for one in old.measured if one in new.measured):
        was, now = old.means[label], new.means[label]
        factor = factors[label]
        names = sorted((was.keys() | now.keys()) - left_out)
        moved = {name: (now.get(name, 0.0) - was.get(name, 0.0)) * factor for name in names}
        most = sorted(moved, key=lambda name: -abs(moved[name]))[:MOST]
        a, b = (side.values(label, most) * factor for side in (old, new))
        found = compared_rows([Metric(name, label, "number") for name in most], a, b)
        for row, in_a, in_b in zip(found, a.max(axis=1, initial=0) > 0, b.max(axis=1, initial=0) > 0, strict=True):
            only = "new" if in_b and not in_a else "gone" if in_a and not in_b else ""
            yield row | {"object": row["name"], "measure": label, "only": only, "weight": moved[row["name"]]}


def _texts(one: Interval) -> dict[str, str]:
    if one.after.file("statement_texts") is None:
        return {}
    rows = one.query(f"select {_TEXTS[one.after.engine]} as key, query from {one.ends('statement_texts')[1]}")
    return {str(row["key"]): row["query"] or "" for row in rows}
