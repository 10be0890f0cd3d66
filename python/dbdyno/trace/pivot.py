"""Profile by expressions: what the core's one-pass profile does not support is computed from an import with SQL.

The items are the same as in the core: waits, and for each call its own CPU and the time that neither CPU nor waits
explain. So the lines add up to the sessions' time here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import TableRow
from dbdyno.trace.expression import compile_value
from dbdyno.trace.source import Traces

CPU, WITHIN, BETWEEN, THINK = "CPU", "unaccounted-for within calls", "unaccounted-for between calls", "think time"
_NAMES = {
    "wait": f"case when t.think then '{THINK}' else t.event end",
    "cpu": f"'{CPU}'",
    "unaccounted": f"'{WITHIN}'",
}
_TIMES = {
    "wait": "t.elapsed_ns",
    "cpu": "coalesce(t.self_cpu_ns, 0)",
    "unaccounted": "coalesce(t.self_elapsed_ns, t.elapsed_ns) - coalesce(t.self_cpu_ns, 0)"
    " - coalesce(t.self_wait_ns, 0)",
}
_CLASSES = {
    "wait": "case when t.think then 'idle' else t.class end",
    "cpu": "'CPU'",
    "unaccounted": "'other'",
}
_FIGURES = """
  count(*) as count, sum(ns)::bigint as total_ns, avg(ns) as mean_ns, min(ns) as min_ns,
  quantile_disc(ns, 0.5) as p50_ns, quantile_disc(ns, 0.99) as p99_ns, max(ns) as max_ns
"""


Line = TypedDict(
    "Line",
    {
        "key": dict[str, object],
        "what": str,
        "name": str,
        "class": str,
        "count": int,
        "waits": int,
        "total_ns": int,
        "mean_ns": float | None,
        "min_ns": int | None,
        "p50_ns": int | None,
        "p99_ns": int | None,
        "max_ns": int | None,
        "histogram": list[list[int]],
        "sums": dict[str, object],
        "share": float,
    },
)
"""A line of a profile.

`key` has the values by expression; `count` is the number of calls if it contains any, otherwise of waits; `histogram`
has (low, high, count, time) by bucket. The statistics from `mean_ns` to `max_ns` are those of a single kind of item.
"""


def pivot(
    traces: Traces, by: Sequence[str], *, sums: Sequence[str] = (), buckets: int = 1, is_part: bool = False
) -> list[Line]:
    """Return the lines of the profile, largest first; their histograms have `buckets` per decade.

    Raises:
        TraceError: an expression is not valid.
    """
    keys = [f"k{at}" for at in range(len(by))]
    traces.connection.execute(f"create or replace temp table items as {_items(by, sums)}")
    grouped = ", ".join([*keys, "what"])
    added = "".join(f", sum(s{at}) as s{at}" for at in range(len(sums)))
    found = traces.rows(
        f"select {grouped}, any_value(class) as class, {_FIGURES} {added} from items group by {grouped}"  # noqa: S608
    )
    histograms = _histograms(traces, keys, buckets)
    lines: dict[tuple[Any, ...], list[TableRow]] = {}
    for row in found:
        key = tuple(_plain(row[name]) for name in keys)
        row["histogram"] = histograms.get((*key, row["what"]), [])
        # Grouped by event, a line has a single kind of item: CPU, each event and the rest have different names.
        lines.setdefault(key, []).append(row)
    rows = [_line(by, key, parts, sums) for key, parts in lines.items()]
    if not is_part:
        rows += _lines_between_calls(traces, by)
    whole = sum(row["total_ns"] for row in rows)
    elapsed = traces.rows("select coalesce(sum(elapsed_ns), 0)::bigint as ns from sessions")[0]["ns"] or whole
    for line in rows:
        line["share"] = line["total_ns"] / elapsed if elapsed else 0.0
    return sorted(rows, key=lambda line: (-line["total_ns"], line["name"]))


def _items(by: Sequence[str], sums: Sequence[str]) -> str:
    selects = []
    for what in ("wait", "cpu", "unaccounted"):
        table = "waits" if what == "wait" else "calls"
        columns = []
        for at, text in enumerate(by):
            name = text.strip().lower()
            sql = (
                _NAMES[what]
                if name == "event"
                else _CLASSES[what]
                if name == "class"
                else compile_value(text, table).sql
            )
            columns.append(f"{sql} as k{at}")
        for at, text in enumerate(sums):
            found = compile_value(text, "calls", "--sum", exclusive=True)
            if found.kind != "number":
                raise TraceError(
                    f"{text!r} contains text; expected a column of numbers",
                    where="--sum",
                    next_step="give --sum a column of numbers",
                )
            columns.append(f"{found.sql if what == 'cpu' else 'null'}::double as s{at}")
        columns += [f"'{what}' as what", f"{_CLASSES[what]} as class", f"({_TIMES[what]})::bigint as ns"]
        selects.append(f"select {', '.join(columns)} from {table} t")  # noqa: S608
    return " union all ".join(selects)


def _line(by: Sequence[str], key: tuple[Any, ...], parts: list[TableRow], sums: Sequence[str]) -> Line:
    of = {part["what"]: part for part in parts}
    calls = max((of[what]["count"] for what in ("cpu", "unaccounted") if what in of), default=0)
    waits = of["wait"]["count"] if "wait" in of else 0
    only = parts[0] if len(parts) == 1 else None
    named = next((str(value) for text, value in zip(by, key, strict=True) if text.strip().lower() == "event"), None)
    classes = {part["class"] for part in parts}
    shown = only or of.get("wait")
    return {
        "key": dict(zip(by, key, strict=True)),
        "what": only["what"] if only and named is not None else "call",
        "name": named if named is not None else ", ".join("(none)" if v is None else str(v) for v in key),
        "class": next(iter(classes)) if len(classes) == 1 and named is not None else "",
        "count": calls or waits,
        "waits": waits,
        "total_ns": sum(part["total_ns"] for part in parts),
        "mean_ns": only["mean_ns"] if only else None,
        "min_ns": only["min_ns"] if only else None,
        "p50_ns": only["p50_ns"] if only else None,
        "p99_ns": only["p99_ns"] if only else None,
        "max_ns": only["max_ns"] if only else None,
        "histogram": shown["histogram"] if shown else [],
        "sums": {text: _plain(of["cpu"][f"s{at}"]) if "cpu" in of else None for at, text in enumerate(sums)},
        "share": 0.0,
    }


def _histograms(traces: Traces, keys: list[str], buckets: int) -> dict[tuple[Any, ...], list[list[Any]]]:
    """Return low, high (ns), count and time by logarithmic bucket, `buckets` per decade, one bucket below 1 us."""
    grouped = ", ".join([*keys, "what"])
    rows = traces.rows(
        f"""
        select {grouped}, case when ns < 0 then -2 when ns < 1000 then -1
                 else floor(log10(ns) * {buckets} + 1e-9)::bigint end as bucket,
               count(*) as n, sum(ns)::bigint as total, min(ns) as least
        from items group by {grouped}, bucket order by bucket
        """  # noqa: S608
    )
    found: dict[tuple[Any, ...], list[list[Any]]] = {}
    for row in rows:
        at = row["bucket"]
        ends = [round(10 ** (at / buckets)), round(10 ** ((at + 1) / buckets))]
        ends = [row["least"], 0] if at == -2 else [0, 1000] if at == -1 else ends
        key = (*(_plain(row[name]) for name in keys), row["what"])
        found.setdefault(key, []).append([*ends, row["n"], row["total"]])
    return found


def _lines_between_calls(traces: Traces, by: Sequence[str]) -> list[Line]:
    """Return the time between calls that no wait explains; one line per session and file if grouped by them."""
    names = {"session": "coalesce(nullif(name, ''), process)", "file": "file"}
    columns = [names.get(text.strip().lower(), "null") for text in by]
    keys = ", ".join(f"{sql} as k{at}" for at, sql in enumerate(columns))
    rows = traces.rows(
        f"select {keys}, count(*) as count, sum(unexplained_ns)::bigint as total_ns, min(unexplained_ns) as min_ns,"  # noqa: S608
        " max(unexplained_ns) as max_ns, avg(unexplained_ns) as mean_ns from sessions where segments > 0 group by all"
    )
    found: list[Line] = []
    for row in rows:
        key: dict[str, object] = {}
        for at, text in enumerate(by):
            given = row.pop(f"k{at}")
            name = text.strip().lower()
            key[text] = BETWEEN if name == "event" else traces.path_of(given) if name == "file" else given
        found.append(
            {
                "key": key,
                "what": "between",
                "name": BETWEEN,
                "class": "other",
                "count": row["count"],
                "waits": 0,
                "total_ns": row["total_ns"],
                "mean_ns": row["mean_ns"],
                "min_ns": row["min_ns"],
                "p50_ns": None,
                "p99_ns": None,
                "max_ns": row["max_ns"],
                "histogram": [],
                "sums": {},
                "share": 0.0,
            }
        )
    return found


def _plain(given: Any) -> Any:
    """Return a whole number as an int."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


def calls_by_kind(traces: Traces) -> list[dict[str, object]]:
    """Return the table of calls by kind, in the form in which the core computes it."""
    sums = (
        *("elapsed_ns", "cpu_ns", "self_elapsed_ns", "self_cpu_ns", "self_wait_ns"),
        *("rows", "misses", "self_physical_reads", "self_consistent_reads", "self_current_reads"),
    )
    columns = ", ".join(f"coalesce(sum({name}), 0)::bigint as {name}" for name in sums)
    return traces.rows(f"select kind, count(*) as count, {columns} from calls group by kind order by kind")  # noqa: S608
