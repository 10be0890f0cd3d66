"""`dbdyno stats test`: test whether groups differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.limits import Count
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.stats import options as shared

if TYPE_CHECKING:
    from dbdyno.stats.classical import ClassicalTest
    from dbdyno.stats.description import Description
    from dbdyno.stats.group_tests import GroupComparison

BARS = 24
WIDTH = 40


class _Summary(click.ParamType[tuple[int, float, float]]):
    name = "n,mean,sd"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, float, float]:
        try:
            n, mean, sd = str(value).split(",")
            return int(n.replace("_", "")), float(mean), float(sd)
        except ValueError:
            self.fail(f"{value!r} is not n,mean,sd such as 4000000,508.6763,176.145", param, ctx)


@click.command("test")
@shared.reading_options
@shared.column_option
@shared.by_option
@click.option(
    "--block", metavar="COL", help="Column with the block numbers, or - for no blocks (default: 'block' if it exists)."
)
@click.option("--base", metavar="NAME", help="Reference group; the other group is compared with it.")
@option_with_default("--longest", type=Count(0), default=10, help="Number of longest waits to list.")
@click.option("--from-summary", is_flag=True, help="Read each operand as the published figures n,mean,sd of a group.")
@shared.level_option
@shared.engine_option
def command(
    given: shared.Input,
    output: shared.PartsOutput,
    column: str | None,
    by: str | None,
    block: str | None,
    base: str | None,
    longest: int,
    from_summary: bool,
    level: float,
    engine: str,
) -> None:
    """Compare two groups of a column, or several.

    The groups are the values of --by, or the operands. If there are blocks, the main answer is computed from them.
    Welch, Mann-Whitney and Kolmogorov-Smirnov over single values assume that these are independent, which the waits of
    one session are not.

    \b
    dbdyno stats test last:waits --by arm
    dbdyno stats test before.csv after.csv -y elapsed_ms
    dbdyno stats test --from-summary 4000000,508.6763,176.145 4000000,542.3583,185.668
    """
    if from_summary:
        _from_summary(given.operands, level, output)
        return
    from dbdyno.cli.stats.read import describe_operands
    from dbdyno.stats.group_tests import NOTE, compare_groups, compare_in_blocks

    if by is None and len(given.operands) < 2:
        raise click.UsageError("a test needs groups: name a column with --by, or give two operands")
    found, used, blocks = describe_operands(
        given,
        column=column,
        by=by,
        block=block,
        first=base,
        level=level,
        longest=longest,
        engine=engine,
    )
    names = [group.name for group in found.groups]
    if base is not None and names and names[0] != base:
        raise click.UsageError(f"--base {base!r} is not one of the groups: {', '.join(names)}")
    shared.note_infinite(found.groups)
    tests = compare_groups(found)
    lead = _block_rows(compare_in_blocks(found, randomised=_is_randomised(given, by)), names)
    if found.approximate:
        click.echo(f"note: {found.approximate}", err=True)
    if not lead:
        click.echo(f"note: {_no_blocks(blocks, len(names))}", err=True)
    table = output.is_screen
    if lead and table:
        click.echo(f"{lead[0]['answer']}\n")
        lead = [{k: v for k, v in row.items() if k != "answer"} for row in lead]
    parts = [
        ("blocks", "By blocks", lead),
        ("tests", f"Over single values of {used} ({NOTE})", test_rows(tests)),
        *description_parts(found, table),
    ]
    output.show_parts(parts, head={"column": used, "groups": names})


def _block_rows(answers: list[GroupComparison], names: list[str]) -> list[shared.Row]:
    """Return one row for each figure that was compared block by block."""
    return [
        {
            "metric": a.metric,
            names[0]: a.first,
            names[1]: a.second,
            "ratio": a.ratio,
            "low": a.low,
            "high": a.high,
            "p": a.p,
            "blocks": a.blocks,
            "paired": a.paired,
            "answer": a.sentence,
        }
        for a in answers
    ]


def _no_blocks(column: str | None, groups: int) -> str:
    if groups > 2:
        return "there are more than two groups, so the blocks are not used"
    if column is None:
        return (
            "no blocks: name the column of blocks (runs, sessions) with --block for a test that does not assume "
            "independent values"
        )
    return f"column {column} has fewer than two blocks for each group, or values of 0 or below"


def _is_randomised(source: shared.Input, by: str | None) -> bool:
    """Return True if the order of the groups was randomised, because they are arms of an experiment by dbdyno."""
    from dbdyno.cli.stats.source import resolve
    from dbdyno.evidence.query import is_trace

    if len(source.operands) > 1 or by != "arm":
        return False
    run = resolve(source.operands[0], source.folder).run
    return run is not None and not is_trace(run)


def test_rows(tests: list[ClassicalTest]) -> list[shared.Row]:
    """Return one row per test."""
    return [
        {
            "test": t.test,
            "statistic": t.statistic,
            "df": t.df,
            **shared.p_fields(t.log10_p),
            "low": t.low,
            "high": t.high,
            "effect": t.effect,
            "note": t.note,
        }
        for t in tests
    ]


def description_parts(description: Description, table: bool) -> list[shared.Part]:
    """Return summary, quantiles, histogram and the largest values of each group."""
    from dbdyno.cli.stats.summary import summary_rows

    quantiles = [
        {"group": g.name, "quantile": q.name, "value": q.value, "low": q.low, "high": q.high}
        for g in description.groups
        for q in g.quantiles
        if not math.isnan(q.value) and q.q >= 0.5
    ]
    longest = [
        {"rank": at, "group": entry.group, "value": entry.value, "file": entry.file, "row": entry.row}
        for at, entry in enumerate(description.longest, 1)
    ]
    summary = summary_rows(description)
    return [
        ("summary", "Summary", summary),
        ("quantiles", f"Quantiles ({description.note})", quantiles),
        ("histogram", "Histogram", histogram_rows(description, table)),
        ("longest", "The longest", longest),
    ]


def histogram_rows(description: Description, table: bool) -> list[shared.Row]:
    """Return the counts per bucket; for a table, few wide buckets with bars."""
    if not table:
        return [
            {"group": g.name, "low": low, "high": high, "count": count}
            for g in description.groups
            for low, high, count in g.histogram
        ]
    from dbdyno.stats.plots import coarse_buckets

    rows: list[shared.Row] = []
    for low, high, counts in coarse_buckets(description, BARS):
        row: shared.Row = {"from": float(f"{low:.4g}"), "to": float(f"{high:.4g}")}
        for group, count in zip(description.groups, counts, strict=True):
            most = max(group.n, 1)
            row[group.name] = count
            row[" " * len(row)] = "█" * round(WIDTH * count / most)
        rows.append(row)
    return rows


def _from_summary(operands: tuple[str, ...], level: float, output: shared.PartsOutput) -> None:
    from dbdyno.stats.distributions import normal_log10_p
    from dbdyno.stats.group_tests import welch_from_summary

    if len(operands) != 2:
        raise click.UsageError("--from-summary takes two operands: n,mean,sd n,mean,sd")
    kind = _Summary()
    first, second = (kind.convert(operand, None, None) for operand in operands)
    found = welch_from_summary(first, second, level=level)
    rows = test_rows([found])
    rows[0]["log10_p_normal"] = normal_log10_p(found.statistic)
    output.show_parts([("tests", "", rows)], head={"difference": found.effect_value})
