"""Names allowed in expressions on traces: typed columns and wait parameters, with their SQL.

A wait takes the figures of a call (`rows`, `consistent_reads` ...) from the call that contains it, so that, for
example, the time of all fetches that returned 100 rows can be queried together with their waits. A call has no event
and no parameters: their values are missing, and equal nothing.
"""

from __future__ import annotations

from typing import NamedTuple

NUMBER, TEXT = "number", "text"


class Column(NamedTuple):
    """A typed column, with the SQL expressions that compute it from a wait and from a call, each a row named `t`."""

    kind: str
    waits: str
    calls: str


def _context(name: str) -> str:
    return f"(select x.{name} from contexts x where x.context = t.context)"  # noqa: S608


def _call(figure: str, own: str = "") -> Column:
    """Return a column with a figure of a call; `own` is its SQL on the table of calls."""
    return Column(NUMBER, f"(select x.{figure} from all_calls x where x.call = t.call)", own or f"t.{figure}")  # noqa: S608


def _plain_column(kind: str, sql: str) -> Column:
    return Column(kind, sql, sql)


_FORCE = "(select x.force_key from statements x where x.statement = t.statement limit 1)"
_SESSION = "(select coalesce(nullif(x.name, ''), x.process) from sessions x where x.session = t.session)"
_FILE = "(select x.path from files x where x.file = t.file)"
_KIND = "(select x.kind from all_calls x where x.call = t.call)"

COLUMNS = {
    "statement": _plain_column(TEXT, "t.statement"),
    "force": _plain_column(TEXT, _FORCE),
    "module": _plain_column(TEXT, _context("module")),
    "action": _plain_column(TEXT, _context("action")),
    "client": _plain_column(TEXT, _context("client_id")),
    "service": _plain_column(TEXT, _context("service")),
    "container": _plain_column(TEXT, _context("container")),
    "session": _plain_column(TEXT, _SESSION),
    "file": _plain_column(TEXT, _FILE),
    "event": Column(TEXT, "t.event", "null"),
    "class": Column(TEXT, "(case when t.think then 'idle' else t.class end)", "null"),
    "kind": Column(TEXT, _KIND, "t.kind"),
    "depth": _plain_column(NUMBER, "t.depth"),
    "object": Column(NUMBER, "t.object_id", "null"),
    "p1": Column(NUMBER, "t.p1", "null"),
    "p2": Column(NUMBER, "t.p2", "null"),
    "p3": Column(NUMBER, "t.p3", "null"),
    "second": _plain_column(NUMBER, "(t.started_ns // 1000000000)"),
    "minute": _plain_column(NUMBER, "(t.started_ns // 60000000000)"),
    "line": _plain_column(NUMBER, "t.line"),
    "elapsed_us": _plain_column(NUMBER, "(t.elapsed_ns // 1000)"),
    "rows": _call("rows"),
    "physical_reads": _call("physical_reads"),
    "consistent_reads": _call("consistent_reads"),
    "current_reads": _call("current_reads"),
    "misses": _call("misses"),
    "plan_hash": _call("plan_hash"),
    "cpu_us": Column(
        NUMBER, "((select x.cpu_ns from all_calls x where x.call = t.call) // 1000)", "(t.cpu_ns // 1000)"
    ),
}
"""The columns by name."""

EXCLUSIVE = {
    "physical_reads": "t.self_physical_reads",
    "consistent_reads": "t.self_consistent_reads",
    "current_reads": "t.self_current_reads",
    "elapsed_us": "(t.self_elapsed_ns / 1000)",
    "cpu_us": "(t.self_cpu_ns / 1000)",
}
"""SQL used in sums instead of columns that include recursive calls: each block and each microsecond is counted once, in
the call that caused it."""

PARAMETERS = {
    "block_class": ("class#",),
    "block_number": ("block#", "block number"),
    "block_count": ("blocks", "block cnt"),
    "file_number": ("file#", "file number"),
    "first_block": ("first dba", "block#"),
    "message_bytes": ("#bytes",),
    "latch_number": ("number",),
}
"""Readable names for wait parameters; all others are written as in the trace: `class#`, `param('name|mode')`."""

CORE = frozenset(COLUMNS) - {"line", "rows", *EXCLUSIVE, "misses", "plan_hash"} | {"elapsed_us"}
"""Columns that the core's own one-pass profile supports; all others are queried from an import."""


_RECORDED = "'cpu_ns corrected_ns cut', 'holder within_ns cut'"
"""Names of the parameters of timed waits and of waits read from memory, as recordings write them."""


def parameter_names(alias: str) -> str:
    """Return SQL for the names of a wait's parameters, separated by commas; recordings separate them by blanks."""
    names = f"{alias}.parameters"
    return f"(case when {names} in ({_RECORDED}) then replace({names}, ' ', ',') else {names} end)"


def parameter(names: tuple[str, ...], table: str) -> str:
    """Return SQL for the value of the wait parameter that has one of these names."""
    if table != "waits":
        return "null"
    known = ", ".join("'" + name.replace("'", "''") + "'" for name in names)
    given = parameter_names("t")
    cases = " ".join(f"when split_part({given}, ',', {at}) in ({known}) then t.p{at}" for at in (1, 2, 3))
    return f"(case {cases} end)"
