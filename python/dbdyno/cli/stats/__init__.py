"""`dbdyno stats`: commands of statistics, one file per command, each imported when it is called."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "summary": ("dbdyno.cli.stats.summary", "Minimum, quartiles, mean, tail, per group."),
    "test": ("dbdyno.cli.stats.test", "Do two groups differ? By blocks first, then all values."),
    "cor": ("dbdyno.cli.stats.cor", "Pearson, Spearman, Kendall, with p and interval."),
    "lm": ("dbdyno.cli.stats.lm", "Linear regression with the table that R prints."),
    "outliers": ("dbdyno.cli.stats.outliers", "Fences, six sigma, modified z, the longest rows."),
    "usl": ("dbdyno.cli.stats.usl", "Universal Scalability Law: contention, coherency, peak."),
    "plot": ("dbdyno.cli.stats.plot", "Scatter, histogram, density, the longest: PNG, SVG, HTML."),
    "prob-r": ("dbdyno.cli.stats.prob_r", "Compute the significance of a correlation from r and n."),
}


@click.group("stats", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Statistics on any evidence, CSV or Parquet.

    An OPERAND is a Parquet or CSV file, a folder of them, a quoted glob, or RUN:TABLE for a table of a run, such as
    `last:calls`. From an experiment's RUN:calls only the slices that count are used; the folder RUN/calls gives every
    row.
    """
