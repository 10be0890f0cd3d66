"""`dbdyno snap plans`: the plans with which statements ran, from the server's log, and when they changed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from dbdyno.base.limits import Count
from dbdyno.cli.log_options import log_options, logs_option, zone_of
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import PATH, option_with_default
from dbdyno.cli.snap.options import store_option


@click.command("plans")
@click.argument("more", metavar="[LOG]...", nargs=-1, type=PATH)
@logs_option(
    "Server logs to read: text, csvlog, jsonlog, or JSON from a log service, plain or .gz. Name a file, a folder or a "
    "quoted pattern. Same as the argument LOG."
)
@click.option(
    "--trace",
    "runs",
    multiple=True,
    type=PATH,
    metavar="RUN",
    help="Read the latencies of all executions from this run of `dbdyno trace record`, which contains no plans.",
)
@click.option(
    "--from-server", metavar="DSN", help="Read the current log of this server; needs pg_read_server_files or similar."
)
@option_with_default(
    "--most",
    metavar="MIB",
    type=click.IntRange(1, 1 << 20),
    default=64,
    help="With --from-server: read only the end of the log, up to this many MiB.",
)
@click.option(
    "--generic",
    metavar="QUERYID",
    type=click.IntRange(-(2**63), 2**63 - 1),
    help="With --from-server: show the generic plan of this statement. The statement is not run, and no log is read.",
)
@click.option(
    "--from", "since", metavar="TIME", help="Use only executions at or after this time (UTC unless it has a zone)."
)
@click.option("--to", "until", metavar="TIME", help="Use only executions at or before this time.")
@log_options
@click.option("--keep/--no-keep", default=True, help="Store the plans with the target's snapshots.")
@click.option("--redact", is_flag=True, help="Store no text of any statement.")
@option_with_default("--top", type=Count(), default=20, help="Number of rows per table.")
@store_option
@click.option("--target", metavar="NAME", help="Target that wrote the log; required if the store has several.")
@page_options
def command(
    more: tuple[Path, ...],
    logs: tuple[Path, ...],
    runs: tuple[Path, ...],
    from_server: str | None,
    most: int,
    generic: int | None,
    since: str | None,
    until: str | None,
    line_prefix: str | None,
    timezone: str | None,
    keep: bool,
    redact: bool,
    top: int,
    store: Path,
    target: str | None,
    output: Output,
) -> None:
    """Show the plans that statements ran with, from PostgreSQL's log with auto_explain; what changed comes first.

    The plans that were read are stored beside the target's snapshots, without values. Without --log, the stored plans
    are shown. With --trace, latencies come from a recording; reports of snapshots then show them.

    \b
    dbdyno snap plans --log postgresql.log
    dbdyno snap plans --log /var/log/postgresql
    dbdyno snap plans --log postgresql.csv --from 2026-11-21T00:30 -o plans.html
    dbdyno snap plans --from 2026-11-21
    dbdyno snap plans --trace runs/now
    dbdyno snap plans --from-server postgresql://admin@db1/app
    dbdyno snap plans --from-server postgresql://admin@db1/app --generic 8342006184126112
    """
    from dbdyno.snapshot.plans.command import (
        PlanOptions,
        page_of_logs,
        page_of_recordings,
        page_of_server,
        page_of_stored_plans,
    )
    from dbdyno.snapshot.store.folder import Store

    logs = (*logs, *more)
    if generic is not None and (from_server is None or logs):
        raise click.UsageError("--generic needs --from-server DSN and excludes --log")
    if sum(map(bool, (logs, runs, from_server))) > 1:
        raise click.UsageError("give one of --log, --trace and --from-server")
    asked = PlanOptions(_moment(since, "--from"), _moment(until, "--to"), target, keep, redact, top)
    holder, zone = Store(store), zone_of(timezone)
    if generic is not None and from_server is not None:
        from dbdyno.snapshot.plans.server import generic_plan_page as generic_plan

        model = generic_plan(from_server, generic)
    elif from_server is not None:
        model = page_of_server(holder, from_server, asked, limit=most << 20, prefix=line_prefix, zone=zone)
    elif runs:
        model = page_of_recordings(holder, runs, asked)
    elif logs:
        model = page_of_logs(holder, logs, asked, prefix=line_prefix, zone=zone)
    else:
        model = page_of_stored_plans(holder, asked)
    show_page(model, output)


def _moment(text: str | None, name: str) -> int | None:
    """Return a time in microseconds since 1970, or None if the text is None."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r:.40} is not a time such as 2026-11-21T00:59", param_hint=name) from error
    return round((at.replace(tzinfo=UTC) if at.tzinfo is None else at).timestamp() * 1e6)
