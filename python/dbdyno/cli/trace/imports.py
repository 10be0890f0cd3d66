"""`dbdyno trace import`: import traces as evidence."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from dbdyno.base.errors import TraceError
from dbdyno.cli.log_options import log_options, logs_option, zone_of
from dbdyno.cli.output import key_file_option, share_option
from dbdyno.cli.parameters import FOLDER
from dbdyno.cli.trace.options import (
    end_with,
    options_of,
    progress,
    reading_options,
    report_refused,
)
from dbdyno.evidence.manifest import Section

if TYPE_CHECKING:
    from dbdyno.evidence.log_sources import LogSources


@click.command("import")
@click.argument("files", nargs=-1, metavar="FILES")
@logs_option(
    "Server logs to import for `trace replay`. PostgreSQL: csvlog, jsonlog, text, syslog, JSON from a log service; "
    "MariaDB: slow log, general log; plain or .gz. Name a file, a folder or a quoted pattern; FILES are then also read "
    "as logs."
)
@click.option(
    "--target",
    "server",
    metavar="DSN",
    help="MariaDB server from whose performance schema to import the recent statements.",
)
@click.option("--out", required=True, type=FOLDER, metavar="RUN", help="Run folder to create.")
@share_option
@click.option("--title", default="", help="Title of the import.")
@click.option("--binds", is_flag=True, help="Keep bind values, which are often personal data.")
@click.option("--force", is_flag=True, help="Replace an earlier import once this one is complete.")
@click.option("--database", metavar="NAME", help="With --log: import only the sessions of this database.")
@key_file_option
@log_options
@reading_options
def command(
    files: tuple[str, ...],
    logs: tuple[Path, ...],
    server: str | None,
    out: Path,
    title: str,
    binds: bool,
    force: bool,
    database: str | None,
    key_file: Path | None,
    line_prefix: str | None,
    timezone: str | None,
    think_time: str,
) -> None:
    """Import FILES once into the run folder RUN.

    Every command on traces, and any other tool, can read the Parquet files of RUN. With --log, FILES are logs of a
    PostgreSQL or MariaDB server, and RUN is a capture that `trace replay` can send again, with the values that clients
    sent.

    \b
    dbdyno trace import traces/ --out runs/batch
    dbdyno sql "select event, count(*) from waits group by event" --run runs/batch
    dbdyno trace import --log postgresql*.csv --out runs/monday
    dbdyno trace import --log /var/log/mysql/mariadb-slow.log --out runs/monday
    dbdyno trace import --target mariadb://app@db1/shop --out runs/monday
    dbdyno trace replay runs/monday --target postgresql://localhost/copy --writes
    """
    of_logs, of_text = {"database": "--database", "key_file": "--key-file"}, {"line_prefix": "--line-prefix"}
    of_text |= {"timezone": "--timezone"}
    if logs or server:
        _refuse_given("--log or --target", {"think_time": "--think-time", "tim_unit": "--tim-unit"})
        if server:
            _refuse_given("--target", {"logs": "--log", "files": "FILES", **of_text})
        with _sources(server, [*logs, *map(Path, files)], line_prefix, timezone) as (sources, named):
            _import_logs(sources, out, title or named, force, (database, key_file))
        return
    _refuse_given("no --log", {**of_logs, **of_text})
    if not files:
        raise click.UsageError("expected FILES or --log FILE")
    from dbdyno.trace.names import torn_records
    from dbdyno.trace.source import import_traces

    options = options_of(think_time, binds=binds)
    replace = _may_replace(out, force)
    with progress() as shown:
        run, refused = import_traces(files, out, options=options, title=title, progress=shown, replace=replace)
    report_refused(refused)
    totals = (run.manifest.totals or Section()).get("account") or {}
    counted = ", ".join(f"{totals[n]} {n}" for n in ("calls", "waits") if n in totals)
    click.echo(f"{out}" + (f": {counted}" if counted else ""))
    click.echo(f"next: dbdyno trace profile {out}", err=True)
    end_with(refused, torn=torn_records(run.manifest.unread))


def _refuse_given(why: str, options: Mapping[str, str]) -> None:
    """Refuse options that would have no effect here."""
    context = click.get_current_context()
    for name, option in options.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} has no effect with {why}")


@contextmanager
def _sources(
    server: str | None, paths: Sequence[Path], line_prefix: str | None, timezone: str | None
) -> Iterator[tuple[LogSources, str]]:
    """Yield the logs to import, and a title; statements kept by a server become a temporary log in memory."""
    from dbdyno.base.memory_folder import memory_folder
    from dbdyno.snapshot.engines.mariadb.history import read_history, write_history
    from dbdyno.snapshot.plans.log_files import recognize_logs

    if server is None:
        yield recognize_logs(paths, prefix=line_prefix, zone=zone_of(timezone)), ""
        return
    history = read_history(server)
    with memory_folder() as folder:
        yield write_history(history, folder / "performance_schema.json"), f"what {history.server} remembers"


def _import_logs(sources: LogSources, out: Path, title: str, force: bool, kept: tuple[str | None, Path | None]) -> None:
    from dbdyno.trace.proxy.log_import import import_logs

    replace = _may_replace(out, force)
    database, key_file = kept
    with progress() as shown:
        done = import_logs(
            sources, out, database=database, title=title, replace=replace, progress=shown, key_file=key_file
        )
    report = done.report
    for sentence in done.refused:
        click.echo(f"dbdyno: {sentence}", err=True)
    for note in done.notes:
        click.echo(f"  {note}", err=True)
    failed = f", {report['failed']:,} of them failed" if report["failed"] else ""
    counted = f"{_number(report['executions'], 'statement')} of {_number(report['sessions'], 'session')}"
    click.echo(f"{out}: {counted}{failed}")
    step = f"profile {out}" if sources.is_mariadb else f"replay {out} --target DSN"
    click.echo(f"next: dbdyno trace {step}", err=True)
    if done.is_flawed:
        raise click.exceptions.Exit(2)


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def _may_replace(out: Path, force: bool) -> bool:
    """Return True if there is an earlier import that may be replaced, because `force` is set or the user confirms."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    if not _is_import(out):
        raise TraceError(
            "already exists, and is not an imported trace", where=str(out), next_step="choose another folder with --out"
        )
    if not force:
        if not sys.stdin.isatty():
            raise TraceError(
                "exists already", where=str(out), next_step="choose another folder with --out, or add --force"
            )
        click.confirm(f"{out} contains an earlier import; replace it?", abort=True, err=True)
    return True


def _is_import(out: Path) -> bool:
    from dbdyno.base.errors import EvidenceError
    from dbdyno.evidence.run import Run

    try:
        return Run.open(out).manifest.kind == "trace"
    except EvidenceError:
        return False
