"""`dbdyno stats`: commands of statistics, one file per command, each imported when it is called."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "stats",
    package=__name__,
    rows={
        "summary": "Minimum, quartiles, mean, tail, per group.",
        "test": "Do two groups differ? By blocks first, then all values.",
        "cor": "Pearson, Spearman, Kendall, with p and interval.",
        "lm": "Linear regression with the table that R prints.",
        "outliers": "Fences, six sigma, modified z, the longest rows.",
        "usl": "Universal Scalability Law: contention, coherency, peak.",
        "plot": "Scatter, histogram, density, the longest: PNG, SVG, HTML.",
        "prob-r": "Compute the significance of a correlation from r and n.",
    },
    help="""Statistics on any evidence, CSV or Parquet.

    An OPERAND is a Parquet or CSV file, a folder of them, a quoted glob, or RUN:TABLE for a table of a run, such as
    `last:calls`. From an experiment's RUN:calls only the slices that count are used; the folder RUN/calls gives every
    row.
    """,
)
