"""`dbdyno trace profile`: where the time went."""

from __future__ import annotations

import click

from dbdyno.base.json_types import JsonObject
from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.trace.options import (
    end_with,
    options_of,
    progress,
    reading_options,
    report_refused,
    selection_options,
    time_range,
)


@click.command("profile")
@click.argument("files", nargs=-1, metavar="FILES")
@click.option(
    "--by",
    metavar="WHAT[,WHAT]",
    help="What to group by: event (the default), class, kind, statement, force, module, action, client, service, "
    "session, container, file, depth, object, rows, block_class, second, minute ...; or expressions such as "
    "bucket(elapsed_us, 2).",
)
@click.option(
    "--sum",
    "sums",
    metavar="WHAT[,WHAT]",
    help="Also show the sums of these figures of the calls, such as consistent_reads,rows.",
)
@click.option(
    "--recipe", metavar="NAME|FILE[:NAME]", help="Use a named profile; --recipe list shows the built-in ones."
)
@selection_options
@click.option("--top", type=Count(), help="Show the top N lines by time.")
@click.option("--skew", is_flag=True, help="Below each line, show its waits by decade of their duration.")
@click.option("--buckets", type=click.IntRange(1, 50), help="Number of histogram steps per decade.")
@reading_options
@page_options
def command(
    files: tuple[str, ...],
    by: str | None,
    sums: str | None,
    recipe: str | None,
    where: str | None,
    begin: str | None,
    end: str | None,
    depth: int | None,
    top: int | None,
    skew: bool,
    buckets: int | None,
    think_time: str,
    output: Output,
) -> None:
    """Show the response-time profile of FILES: a line for CPU, one for each event, and the rest.

    The lines add up to the sessions' time, exact to the microsecond. The last column draws each line's skew: one bar
    per decade of the waits' lengths, as high as the time spent in such waits.

    \b
    dbdyno trace profile *.trc
    dbdyno trace profile --by statement,event --top 20 traces/
    dbdyno trace profile --where "module = 'batch' and elapsed_us > 1000" traces/
    dbdyno trace profile --by 'bucket(rows, 2)' --where 'kind = fetch' traces/
    """
    from dbdyno.trace.profile import Request, profile_page

    from_ns, to_ns = time_range(begin, end)
    if recipe == "list":
        _list_recipes()
        return
    if not files:
        raise click.UsageError("Missing argument 'FILES...'.")
    base = _recipe(recipe)
    request = Request(
        _names(by) or tuple(base.get("by", ("event",))),
        where or base.get("where"),
        from_ns,
        to_ns,
        base.get("depth") if depth is None else depth,
        top or base.get("top"),
        _names(sums) or tuple(base.get("sum", ())),
        buckets or base.get("buckets", 1),
    )
    with progress() as shown:
        model = profile_page(files, request, options_of(think_time), shown)
    report_refused(model["refused"])
    show_page(model, output, skew=skew)
    end_with(model["refused"], torn=model["torn"])


def _recipe(text: str | None) -> JsonObject:
    if text is None:
        return {}
    from dbdyno.trace.recipes import recipe

    return recipe(text)


def _names(text: str | None) -> tuple[str, ...]:
    """Return the expressions in a list separated by commas."""
    if not text:
        return ()
    if "(" not in text and "'" not in text:
        return tuple(name.strip() for name in text.split(",") if name.strip())
    from dbdyno.trace.expression import split_expressions

    return tuple(split_expressions(text))


def _list_recipes() -> None:
    from dbdyno.trace.recipes import recipes

    for name, recipe in recipes().items():
        click.echo(f"{name:<18} {recipe.get('about', '')}")
