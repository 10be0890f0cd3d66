"""Tests of two periods by wait class, statement, table, index, database and role: which of them certainly changed.

Each sub-interval gives one rate per measure and object: zero if nothing was counted, no rate if the object's counters
were lost. Wait classes, and the active sessions of databases and users, come from samples; a sub-interval without
samples gives no value. The tests are the same as for metrics, and all rows of all objects share one false discovery
rate. What did not change is counted, not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.base.sections import Part, Row, columns, section, table
from dbdyno.judge.metric_tests import compared_rows
from dbdyno.snapshot.engines.metric import Metric
from dbdyno.snapshot.engines.postgres.facts import is_ours
from dbdyno.snapshot.model import statement_beginning
from dbdyno.snapshot.reading.active_rates import ActiveRates
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.rates import rates
from dbdyno.snapshot.reading.renumbered_statements import fingerprints, renumbered_identifiers
from dbdyno.snapshot.reading.statement_texts import statement_texts

if TYPE_CHECKING:
    from dbdyno.judge.metric_tests import Floats

MOST = 150
"""Largest number of objects of a kind that are tested: those whose rate changed most."""

_SHOWN = (
    "measure:text decision:text a:number:first b:number:second ratio:change:change low:change:from"
    " high:change:to chance:ratio:second_larger q:p"
)
_NOT_SHOWN = ("same", "cannot tell", "none in either", "not measured")


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object: its view, the columns that name it, and its measures (label, column names, factor)."""

    title: str
    view: str
    by: tuple[str, ...]
    measures: tuple[tuple[str, tuple[str, ...], float], ...]


POSTGRES = (
    ObjectKind(
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
    ObjectKind(
        "user", "pg_stat_statements", ("userid",), (("time, ms a second", ("total_exec_time", "total_time"), 1),)
    ),
    ObjectKind(
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
    ObjectKind(
        "index",
        "pg_stat_user_indexes",
        ("datname", "schemaname", "indexrelname"),
        (("scans a second", ("idx_scan",), 1),),
    ),
    ObjectKind(
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
    ObjectKind(
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
    ObjectKind(
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
    ObjectKind(
        "index",
        "table_io_waits_summary_by_index_usage",
        ("OBJECT_SCHEMA", "OBJECT_NAME", "INDEX_NAME"),
        (("rows read a second", ("COUNT_READ",), 1),),
    ),
)
ORACLE = (
    ObjectKind(
        "statement",
        "sql",
        ("sql_id",),
        (
            ("time, ms a second", ("elapsed_time",), 1e-3),
            ("executions a second", ("executions",), 1),
            ("logical reads a second", ("buffer_gets",), 1),
            ("physical reads a second", ("disk_reads",), 1),
        ),
    ),
    ObjectKind(
        "segment",
        "segment_statistics",
        ("owner", "object_name"),
        (
            ("logical reads a second", ("logical_reads",), 1),
            ("physical reads a second", ("physical_reads",), 1),
            ("block changes a second", ("block_changes",), 1),
            ("row lock waits a second", ("row_lock_waits",), 1),
        ),
    ),
    ObjectKind(
        "event",
        "system_event",
        ("event",),
        (("time, ms a second", ("time_waited_micro_fg",), 1e-3), ("waits a second", ("total_waits_fg",), 1)),
    ),
)
KINDS = {"postgres": POSTGRES, "mariadb": MARIADB, "oracle": ORACLE}
"""Kinds of objects that are tested, by engine."""


def object_section(
    before: Interval,
    after: Interval,
    looked: Sequence[ActiveRates | None],
    *,
    threshold: float,
    allowed: bool,
    hourly: bool,
) -> Part:
    """Return the section that shows what changed, by kind of object.

    Args:
        before: The first period.
        after: The second period.
        looked: Active sessions of both periods; None for a period that was not sampled.
        threshold: Smallest relative difference that matters.
        allowed: False if the periods are not comparable, so that nothing is decided.
        hourly: True for one value per hour instead of per sub-interval.
    """
    texts = statement_texts(before) | statement_texts(after)
    found: dict[str, list[Row]] = {}
    own = {key for key, text in texts.items() if is_ours(text)}
    found["wait class"] = list(_sampled_rows("class", looked))
    for kind in KINDS[before.before.engine]:
        left_out = own if kind.title == "statement" else set()
        found[kind.title] = list(_rows(kind, before, after, left_out, hourly=hourly))
    for title, dimension in (("database", "database"), ("user", "user")):
        found.setdefault(title, []).extend(_sampled_rows(dimension, looked))
    _decide([row for rows in found.values() for row in rows], threshold, allowed)
    tables = []
    notes = []
    for title, rows in found.items():
        shown = [row for row in rows if row["decision"] not in _NOT_SHOWN]
        if title == "statement":
            for row in shown:
                row["begins"] = statement_beginning(texts.get(row["object"]))
        named = f"object:text:{title.replace(' ', '_')} {_SHOWN}"
        if title == "statement":
            named = f"begins:text:statement {_SHOWN} object:text:identifier"
        shown.sort(key=lambda row: -abs(row["weight"]))
        tables.append(table(f"By {title}", columns(named), shown, top=20))
        if len(rows) > len(shown):
            notes.append(f"by {title}: {len(rows) - len(shown)} of {len(rows)} rates did not change for certain")
    if None in looked:
        notes.append("by wait class: not known, because sessions were not sampled in both periods (dbdyno snap watch)")
    if own:
        notes.append(f"by statement: {len(own)} of dbdyno's own are left out")
    return section(
        "objects",
        "What changed, by object",
        tables,
        about="first and second: medians of the sub-intervals. active sessions: from samples, on average."
        " new: none in the first period; gone: none in the second. q: p after false-discovery control over all rows"
        " of this section.",
        notes=notes,
    )


def _decide(rows: list[Row], threshold: float, allowed: bool) -> None:
    from dbdyno.judge.metric_tests import decision
    from dbdyno.stats.decide import benjamini_hochberg

    judged = [row for row in rows if row["p"] is not None]
    for row, q in zip(judged, benjamini_hochberg([row["p"] for row in judged]), strict=True):
        row["q"] = q
        row["decision"] = decision(row, q, threshold) if allowed else "not comparable"
        if allowed and q <= 0.05 and row["only"]:
            row["decision"] = row["only"]


def _rows(
    kind: ObjectKind, before: Interval, after: Interval, left_out: AbstractSet[str], *, hourly: bool
) -> Iterable[Row]:
    wanted = {label: names for label, names, _ in kind.measures}
    factors = {label: factor for label, _, factor in kind.measures}
    old, new = (rates(one, kind.view, kind.by, wanted, hourly=hourly) for one in (before, after))
    if old is None or new is None:
        return
    sides = (old, new)
    if kind.by == ("queryid",):
        old_called, new_called = ([one for one, rate in side.means["calls a second"].items() if rate] for side in sides)
        moved = renumbered_identifiers(old_called, new_called, fingerprints(before, after))
        for side in sides:
            side.rename(moved)
    roles = after.after.facts.get("roles") or {} if kind.by == ("userid",) else {}
    both = [label for label in old.measured if label in new.measured]
    most = {label: _most_changed(old.means[label], new.means[label], left_out) for label in both}
    for side in sides:
        side.prefetch({name for names in most.values() for name in names})
    for label, names in most.items():
        a, b = (side.values(label, names) * factors[label] for side in sides)
        shown = [str(roles.get(name, name)) for name in names]
        was, now = (side.means[label] for side in sides)
        weights = [factors[label] * (now.get(name, 0.0) - was.get(name, 0.0)) for name in names]
        yield from _judge_rows(label, shown, a, b, weights)
    old.close()
    new.close()


def _sampled_rows(dimension: str, looked: Sequence[ActiveRates | None]) -> Iterable[Row]:
    """Yield a row for each name in a dimension, with its active sessions."""
    old, new = looked
    if old is None or new is None:
        return
    was, now = old.means(dimension), new.means(dimension)
    most = _most_changed(was, now, set())
    moved = [now.get(name, 0.0) - was.get(name, 0.0) for name in most]
    yield from _judge_rows("active sessions", most, old.values(dimension, most), new.values(dimension, most), moved)


def _most_changed(was: Mapping[str, float], now: Mapping[str, float], left_out: AbstractSet[str]) -> list[str]:
    """Return the names whose mean changed most, at most `MOST` of them, without the names in `left_out`."""
    names = sorted((was.keys() | now.keys()) - left_out)
    return sorted(names, key=lambda name: -abs(now.get(name, 0.0) - was.get(name, 0.0)))[:MOST]


def _judge_rows(label: str, names: Sequence[str], a: Floats, b: Floats, moved: Sequence[float]) -> Iterable[Row]:
    """Yield a row for each name from its values in both periods."""
    found = compared_rows([Metric(name, label, "number") for name in names], a, b)
    for at, row in enumerate(found):
        in_a, in_b = (bool(side[at].max(initial=0) > 0) for side in (a, b))
        only = "new" if in_b and not in_a else "gone" if in_a and not in_b else ""
        yield row | {"object": row["name"], "measure": label, "only": only, "weight": moved[at]}
