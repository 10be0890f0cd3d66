"""Analysis of a study over statements: which properties are correlated with the time of a call.

Counters of pg_stat_statements before and after the blocks that count give each statement's calls, time and blocks. If a
statement's counters fell in between, it was evicted or reset, and is left out. Statements with fewer than `CALLS_MIN`
calls and dbdyno's own queries are left out, too.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import StatsError
from dbdyno.evidence.memory import file_connection
from dbdyno.study.analysis.contract.parts import CorrelatedStatement, Property, PropertyCorrelation
from dbdyno.study.analysis.contract.rows import Model, VerdictRow
from dbdyno.study.analysis.measured.measures import Measures

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run

CALLS_MIN = 5
STATEMENTS_MIN = 10
LEVEL = 0.05
_OWN = re.compile(r"pg_stat_|pg_current_wal|current_setting|pg_backend_pid|pg_settings|pg_sleep|^select \$1$")
"""Pattern of dbdyno's own queries and canaries."""

ASSUMPTION = (
    "The tests assume independent statements. But statements share tables, cache and machine, "
    "so the real uncertainty is larger. A correlation does not prove a cause."
)

PROPERTIES: tuple[tuple[Property, str], ...] = (
    ("hit_ratio", "hit ratio"),
    ("blocks", "blocks touched per call"),
    ("reads", "blocks read per call"),
    ("temp", "blocks sorted to disk per call"),
    ("rows", "rows a call"),
)


def add(model: Model, connection: Any, measures: Measures, run: Run) -> None:
    """Add the correlations, their figure and the verdict to the model."""
    blocks = [block.index for block in measures.arms[0].blocks]
    statements, fallen = _statements(connection, run, blocks)
    if len(statements) < STATEMENTS_MIN:
        model["verdict"] = _too_few(len(statements))
        return
    rows = [row for name, label in PROPERTIES if (row := _row(statements, name, label))]
    _adjust(rows)
    model["correlation"] = {
        "statements": statements,
        "rows": rows,
        "assumption": ASSUMPTION,
    }
    shown = [(ratio, s) for s in statements if (ratio := s["hit_ratio"]) is not None]
    model["figures"]["correlation"] = {
        "hit_ratio": [ratio for ratio, _ in shown],
        "mean_ns": [s["mean_ns"] for _, s in shown],
        "label": [s["text"] or s["statement"] for _, s in shown],
    }
    model["verdict"] = _verdict(rows, statements, fallen)


def _statements(connection: Any, run: Run, blocks: list[int]) -> tuple[list[CorrelatedStatement], int]:
    """Return a row per statement, the slowest first, and the number of those left out because they were reset."""
    found = connection.execute(
        """
        with seen as (
          select object, metric, at_ns, value,
                 value < lag(value) over (partition by object, metric order by at_ns) as fell
          from metrics
          where source = 'pg_stat_statements' and list_contains($1::uinteger[], block)
        ), border as (select min(at_ns) as first_ns from seen)
        select object, metric,
               last(value order by at_ns)
                 - coalesce(first(value order by at_ns) filter (at_ns = first_ns), 0),
               coalesce(bool_or(fell), false)
        from seen, border group by object, metric order by object, metric
        """,
        [blocks],
    ).fetchall()
    texts = texts_of(run)
    by_statement: dict[str, dict[str, float]] = {}
    fallen = set()
    for statement, metric, difference, fell in found:
        by_statement.setdefault(statement, {})[metric] = difference
        if fell:
            fallen.add(statement)
    rows = [
        _statement(name, texts.get(name, ""), counted)
        for name, counted in by_statement.items()
        if name not in fallen and counted.get("calls", 0) >= CALLS_MIN and not is_own(texts.get(name, ""))
    ]
    return sorted(rows, key=lambda row: -row["mean_ns"]), len(fallen)


def is_own(text: str) -> bool:
    """Return True if a statement is one of dbdyno's own queries or canaries."""
    return _OWN.search(text) is not None


def texts_of(run: Run) -> dict[str, str]:
    """Return the texts of the statements whose counters were read, by their identifiers."""
    path = run.path / "statements.parquet"
    if not path.exists():
        return {}
    with file_connection() as reader:
        rows = reader.execute("select statement, text from read_parquet(?)", [str(path)])
        return dict(rows.fetchall())


def _statement(name: str, text: str, counted: dict[str, float]) -> CorrelatedStatement:
    calls = counted["calls"]
    blocks = counted.get("shared_hits", 0.0) + counted.get("shared_reads", 0.0)
    temp = counted.get("temp_reads", 0.0) + counted.get("temp_writes", 0.0)
    return {
        "statement": name,
        "text": text,
        "calls": int(calls),
        "mean_ns": counted.get("elapsed", 0.0) / calls,
        "hit_ratio": counted.get("shared_hits", 0.0) / blocks if blocks else None,
        "blocks": blocks / calls,
        "reads": counted.get("shared_reads", 0.0) / calls,
        "temp": temp / calls,
        "rows": counted.get("rows", 0.0) / calls,
    }


def _row(statements: list[CorrelatedStatement], name: Property, label: str) -> PropertyCorrelation | None:
    """Return Pearson's and Spearman's correlation of a property with the mean time.

    The result is None if the property or the time does not vary, or if there are too few statements.
    """
    from dbdyno.stats.correlation import pearson, spearman

    pairs = [(s[name], s["mean_ns"]) for s in statements if s[name] is not None]
    if len(pairs) < STATEMENTS_MIN:
        return None
    x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    try:
        linear, ranks = pearson(x, y), spearman(x, y)
    except StatsError:
        return None
    return {
        "x": label,
        "property": name,
        "n": len(pairs),
        "pearson": linear.value,
        "low": linear.low,
        "high": linear.high,
        "pearson_log10_p": linear.log10_p,
        "spearman": ranks.value,
        "spearman_log10_p": ranks.log10_p,
    }


def _adjust(rows: list[PropertyCorrelation]) -> None:
    """Add q to the rows, which controls the false discovery rate over the properties (Benjamini and Hochberg 1995)."""
    from dbdyno.stats.decide import benjamini_hochberg

    adjusted = benjamini_hochberg([10.0 ** row["spearman_log10_p"] for row in rows])
    for row, q in zip(rows, adjusted, strict=True):
        row["q"] = q


def _verdict(rows: list[PropertyCorrelation], statements: list[CorrelatedStatement], fallen: int) -> VerdictRow:
    own = next((row for row in rows if row["property"] == "hit_ratio"), None)
    if own is None:
        return {
            "decision": "unclear",
            "headline": "The hit ratio is the same for all statements, so no correlation can be computed.",
            "sentences": ["Run with a smaller cache: --set shared_buffers=8MB."],
        }
    found = own["q"] < LEVEL
    r = own["spearman"]
    share = f"rank correlation {r:.2f}, {own['n']} statements"
    if not found:
        headline = f"No significant correlation between hit ratio and time of a call ({share})."
    elif r < 0:
        headline = f"Statements with a higher hit ratio are faster ({share})."
    else:
        headline = f"Statements with a higher hit ratio are slower, not faster ({share})."
    sentences = [_in_the_open(own)]
    best = max((row for row in rows if row is not own), key=lambda row: abs(row["spearman"]))
    if best["q"] < LEVEL and abs(best["spearman"]) > abs(r):
        sentences.append(
            f"The time of a call correlates far more with {best['x']}: rank correlation {best['spearman']:.2f}."
        )
        partial = _partial(statements, best["property"])
        if partial is not None:
            sentences.append(
                f"Among statements with similar {best['x']}, the hit ratio's rank correlation is {partial:.2f}."
            )
    sentences.append(ASSUMPTION)
    if fallen:
        sentences.append(f"{fallen} statement(s) were evicted or reset during the run: left out.")
    return {
        "decision": "found" if found else "not found",
        "headline": headline,
        "sentences": sentences,
    }


def _in_the_open(row: PropertyCorrelation) -> str:
    p = 10.0 ** row["pearson_log10_p"]
    words = f"p {p:.2g}" if p >= 1e-4 else f"p 10^{row['pearson_log10_p']:.0f}"
    return (
        f"Pearson's r, as the source computed it: {row['pearson']:.2f} "
        f"({row['low']:.2f} to {row['high']:.2f}), {words}."
    )


def _partial(statements: list[CorrelatedStatement], name: Property) -> float | None:
    """Return the rank correlation of hit ratio and time with a third property held fixed.

    This is the first-order partial correlation of the ranks; None if it is not defined.
    """
    from dbdyno.stats.correlation import spearman

    rows = [s for s in statements if s["hit_ratio"] is not None]
    x, y, z = ([s[key] for s in rows] for key in ("hit_ratio", "mean_ns", name))
    try:
        xy, xz, yz = (spearman(*pair).value for pair in ((x, y), (x, z), (y, z)))
    except StatsError:
        return None
    rest = (1 - xz**2) * (1 - yz**2)
    return (xy - xz * yz) / math.sqrt(rest) if rest > 1e-12 else None


def _too_few(n: int) -> VerdictRow:
    return {
        "decision": "unclear",
        "headline": f"Only {n} statements ran {CALLS_MIN} times or more; a correlation needs {STATEMENTS_MIN}.",
        "sentences": ["Run longer, or under more load."],
    }
