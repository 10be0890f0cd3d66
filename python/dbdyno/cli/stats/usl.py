"""`dbdyno stats usl`: the Universal Scalability Law."""

from __future__ import annotations

import click

from dbdyno.cli.stats.options import Input, PartsOutput, Row, level_option, reading_options, y_option


@click.command("usl")
@reading_options
@click.option("-x", "x", metavar="COL", required=True, help="Column with the load (number of sessions).")
@y_option
@level_option
def command(given: Input, output: PartsOutput, x: str, y: str, level: float) -> None:
    """Fit X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)): load -x, throughput -y.

    \b
    dbdyno stats usl scaling.csv -x sessions -y tps
    """
    from dbdyno.cli.stats.read import pairs
    from dbdyno.stats.scalability import usl

    load, throughput = pairs(given, [x, y])
    fit = usl(load, throughput, level=level)
    meanings = {
        "alpha": "contention: share of the work that queues",
        "beta": "coherency: cost of coordination",
        "gamma": "throughput of one",
        "peak": "load at the highest throughput",
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
    output.show_parts([("parameters", "", rows), ("fit", "Fit", [whole])], head={"x": x, "y": y})
