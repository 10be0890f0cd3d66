"""What the time of a call goes with, over the statements of a correlation study."""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

SHOWN = 60


def view(analysis: Analysis) -> base.View | None:
    """The correlations and the statements behind them, or None for another kind of study."""
    found = reading.dig(analysis, "correlation")
    if not found:
        return None
    statements = reading.entries(found, "statements")
    return {
        "rows": [
            {
                "x": fmt.line(row.get("x")),
                "n": fmt.count(row.get("n")),
                "spearman": fmt.significant(row.get("spearman"), 2),
                "q": fmt.probability(row.get("q")),
                "pearson": fmt.significant(row.get("pearson"), 2),
                "interval": f"{fmt.significant(row.get('low'), 2)} to {fmt.significant(row.get('high'), 2)}",
                "p": fmt.log10_probability(row.get("pearson_log10_p")),
            }
            for row in reading.entries(found, "rows")
        ],
        "note": fmt.line(found.get("assumption") or ""),
        "statements": [
            {
                "text": fmt.text(row.get("text") or row.get("statement") or ""),
                "calls": fmt.count(row.get("calls")),
                "mean": fmt.duration(row.get("mean_ns")),
                "ratio": fmt.percent(row.get("hit_ratio")),
                "blocks": fmt.significant(row.get("blocks"), 3),
            }
            for row in statements[:SHOWN]
        ],
        "left_out": max(len(statements) - SHOWN, 0),
    }


SECTION = base.Section("correlation", "Correlations", view)
