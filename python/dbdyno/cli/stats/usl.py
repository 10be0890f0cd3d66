"""`dbdyno stats usl`: the Universal Scalability Law."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.stats.options import Row, level_option, reading_options, show_parts, y_option


@click.command("usl")
@reading_options
@click.option("-x", "x", metavar="COL", required=True, help="Column of the load (sessions).")
@y_option
@level_option
def command(
    operands: tuple[str, ...],
    where: str | None,
    folder: Path,
    form: str | None,
    output: Path | None,
    x: str,
    y: str,
    level: float,
) -> None:
    """Fit X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)): load -x, throughput -y.

    \b
    dbdyno stats usl scaling.csv -x sessions -y tps
    """
    from dbdyno.cli.stats.read import pairs
    from dbdyno.stats.scalability import usl

    load, throughput = pairs(operands, folder, [x, y], where)
    fit = usl(load, throughput, level=level)
    meanings = {
        "alpha": "contention: the share that queues",
        "beta": "coherency: what keeping in step costs",
        "gamma": "throughput of one",
        "peak": "load of the highest throughput",
    }
    rows: list[Row] = [
        {
            "parameter": p.name,
            "estimate": p.estimate,
            "error": p.error,
            "low": p.low,
            "high": p.high,
            "meaning": meanings[p.name],
        }
        for p in (fit.alpha, fit.beta, fit.gamma, fit.peak)
    ]
    whole = {
        "n": fit.n,
        "peak_throughput": fit.peak_throughput,
        "limit": fit.limit,
        "residual_error": fit.residual_error,
        "r2": fit.r2,
        "note": fit.note,
    }
    show_parts([("parameters", "", rows), ("fit", "Fit", [whole])], form, output, head={"x": x, "y": y})
