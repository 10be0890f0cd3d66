"""`dbdyno stats outliers`: values far from the others, and the complete rows of the largest ones."""

from __future__ import annotations

import click

from dbdyno.base.limits import Count
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.stats.options import (
    Input,
    PartsOutput,
    Row,
    by_option,
    column_option,
    note_infinite,
    reading_options,
)


@click.command("outliers")
@reading_options
@column_option
@by_option
@option_with_default(
    "--longest", type=Count(0), default=20, help="Number of largest values to list, each with its whole row."
)
def command(given: Input, output: PartsOutput, column: str | None, by: str | None, longest: int) -> None:
    """List outliers by Tukey's fences, six sigma and modified z, and the largest values as whole rows.

    No value is excluded from any analysis for being listed here: the tail is a finding, not noise.

    \b
    dbdyno stats outliers last:waits --by arm --longest 10000 -o longest.csv
    """
    from dbdyno.cli.stats.read import describe_operands
    from dbdyno.cli.stats.source import largest_rows, resolve_all

    found, used, _ = describe_operands(given, column=column, by=by, fences=True)
    note_infinite(found.groups)
    counts: list[Row] = []
    for group in found.groups:
        f = group.fences
        if f is None or group.n == 0:
            continue
        counts.append(
            {
                "group": group.name,
                "n": group.n,
                "median": group.quantile(0.5).value,
                "mad": f.mad,
                "extreme_below": f.beyond[0],
                "mild_below": f.beyond[1] - f.beyond[0],
                "fence_low": f.ends[1],
                "fence_high": f.ends[2],
                "mild_above": f.beyond[2] - f.beyond[3],
                "extreme_fence": f.ends[3],
                "extreme_above": f.beyond[3],
                "modified_z_above_3.5": f.modified_z,
                "beyond_six_sigma": f.six_sigma if group.has_moments else None,
                "sigmas_of_max": (group.max - group.mean) / group.sd if group.sd > 0 else None,
            }
        )
    rows: list[Row] = []
    sources = resolve_all(given.operands, given.folder)
    for source in sources if longest else []:
        names, values = largest_rows(source, used, longest, given.where)
        extra = {"operand": source.label} if len(sources) > 1 else {}
        rows += [{**extra, **dict(zip(names, row, strict=True))} for row in values]
    rows.sort(key=lambda row: row[used], reverse=True)
    rows = [{"rank": at, **row} for at, row in enumerate(rows[:longest], 1)]
    output.show_parts(
        [("outliers", f"Far out: {used}", counts), ("longest", "The longest", _text(rows))], head={"column": used}
    )


def _text(rows: list[Row]) -> list[Row]:
    """Return the rows, with values that JSON cannot represent converted to text."""
    kinds = (int, float, str, bool, type(None))
    return [{key: value if isinstance(value, kinds) else str(value) for key, value in row.items()} for row in rows]
