"""`dbdyno wide sql`: run SQL over the tables of a map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import FORMATS, STREAMED, Output, form_of, format_options, show_rows, stream_rows
from dbdyno.cli.parameters import engine_option, option_with_default
from dbdyno.cli.wide.options import map_option, open_map, target_option

if TYPE_CHECKING:
    from dbdyno.wide.address import Address
    from dbdyno.wide.mapping import WideMap
    from dbdyno.wide.spark import SparkAnswer

TOP = 1000
FORMS = tuple(one for one in FORMATS if one != "arrow")


@click.command("sql")
@click.argument("text", metavar="SQL")
@map_option
@target_option
@engine_option("reads the rows")
@click.option("--master", help="With --engine spark: the cluster, such as spark://host:7077 [local[*]].")
@click.option(
    "--explain", is_flag=True, help="Show the queries sent to Cassandra, the rows read, and the rows filtered here."
)
@click.option("--dry-run", is_flag=True, help="Show the queries that would be sent; read and write no row.")
@click.option(
    "--allow-filtering",
    "filtering",
    is_flag=True,
    help="Allow queries that make nodes read rows only to discard them (ALLOW FILTERING).",
)
@click.option("--write", "writing", is_flag=True, help="Allow an INSERT, UPDATE or DELETE, and execute it.")
@click.option("--cascade", is_flag=True, help="Allow a DELETE on a parent, which deletes its whole partition.")
@option_with_default("--top", type=Count(), default=TOP, help="Show the top N rows of a table.")
@format_options
def command(
    text: str,
    file: Path,
    target: str,
    engine: str,
    master: str | None,
    explain: bool,
    dry_run: bool,
    filtering: bool,
    writing: bool,
    cascade: bool,
    top: int,
    output: Output,
) -> None:
    """Run SQL, joins and aggregates included, on Cassandra data; a map file defines the SQL tables.

    Cassandra does the part of the query that its own rules allow; DuckDB does the rest with the rows that Cassandra
    returns.

    \b
    dbdyno wide sql "select name, sum(amount) from customers join orders using (customer_id)
                     where customer_id in (1, 2) group by name" --map map.toml --target cassandra://host/shop
    """
    from dbdyno.wide.answer import Answer
    from dbdyno.wide.write import is_change

    form = form_of(output, FORMS)
    if master is not None and engine != "spark":
        raise click.UsageError("--master works only with --engine spark")
    where, found = open_map(file, target)
    if is_change(text):
        if engine == "spark":
            raise click.UsageError("leave --engine spark out for INSERT, UPDATE and DELETE")
        _change(text, where, found, file, writing and not dry_run, cascade)
        return
    answer: Answer | SparkAnswer
    if engine == "spark":
        from dbdyno.wide.spark import LOCAL, SparkAnswer

        answer = SparkAnswer(where, found, text, str(file), filtering=filtering, master=master or LOCAL)
    else:
        answer = Answer(where, found, text, str(file), filtering=filtering)
    if dry_run:
        for line in answer.explain(asked=False):
            click.echo(line)
        answer.__exit__(None, None, None)
        return
    with answer:
        if form in STREAMED:
            stream_rows(answer.names, _readable(answer.rows()), form, output.path)
        else:
            rows = list(_readable(answer.rows()))
            show_rows([dict(zip(answer.names, row, strict=True)) for row in rows[:top]], output.as_form("table"))
            if len(rows) > top:
                click.echo(f"the first {top:,} of {len(rows):,} rows", err=True)
        if explain:
            for line in answer.explain():
                click.echo(line, err=True)


def _readable(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows with bytes in Cassandra's notation."""
    for row in rows:
        yield tuple(f"0x{bytes(one).hex()}" if isinstance(one, bytes | bytearray) else one for one in row)


def _change(text: str, address: Address, wide_map: WideMap, file: Path, writing: bool, cascade: bool) -> None:
    from dbdyno.wide.address import open_session
    from dbdyno.wide.catalog import read_keyspace
    from dbdyno.wide.mapping import check
    from dbdyno.wide.write import execute_change, translate_change

    with open_session(address) as session:
        asked = translate_change(
            text, check(wide_map, read_keyspace(session, address.keyspace), str(file)), cascade=cascade
        )
    click.echo(f"rows from:     {asked.select}\nfor each:      {asked.cql}", err=True)
    for promise in asked.promises:
        click.echo(f"mind:          {promise}", err=True)
    if not writing:
        click.echo("nothing was written\n  next: --write carries it out", err=True)
        return
    count = execute_change(address, wide_map, asked, str(file))
    words = {"insert": "written", "update": "changed", "delete": "deleted"}[asked.verb]
    click.echo(f"{count:,} row{'s' * (count != 1)} {words}.")
