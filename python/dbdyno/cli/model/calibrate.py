"""`dbdyno model calibrate`: fit a machine to an arm of a run or to this host, or a device to measured latencies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import ModelError
from dbdyno.base.limits import Count
from dbdyno.base.sql_text import literal
from dbdyno.cli.output import Output, folder_option
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.probe.redo import parse_time

if TYPE_CHECKING:
    from dbdyno.cli.stats.source import Source

HOST_NS, SCALE = 20 * 10**9, 10
UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


@click.command("calibrate")
@click.argument("operand", metavar="[RUN|FILE]", required=False)
@click.option("--host", is_flag=True, help="Fit a machine to this host; no database is needed yet.")
@click.option(
    "--folder",
    "place",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="With --host: folder on the disk that will hold the database's log.",
)
@click.option(
    "--for", "length_ns", type=parse_time, metavar="TIME", help="With --host: duration of the probes.  [default: 20s]"
)
@click.option(
    "--scale", type=Count(), metavar="N", help="With --host: scale factor of the modelled TPC-B script.  [default: 10]"
)
@click.option("--event", help="With a run: fit only the waits for this event, such as WALSync.")
@click.option("--calls", "kind", metavar="KIND", help="With a run: fit only calls of this kind, such as commit.")
@click.option("--arm", metavar="NAME", help="With a run: fit only this arm; required if there are several.")
@click.option("--column", "-y", help="With a file: column with the latencies.")
@click.option(
    "--unit",
    type=click.Choice(list(UNITS)),
    help="Unit of the column (default: as the suffix of its name says, such as _ms).",
)
@click.option("--where", metavar="SQL", help="Use only rows for which this SQL condition holds.")
@option_with_default("--name", default="measured", help="Name for the device.")
@page_options
@folder_option
def command(
    operand: str | None,
    host: bool,
    place: Path | None,
    length_ns: int | None,
    scale: int | None,
    event: str | None,
    kind: str | None,
    arm: str | None,
    column: str | None,
    unit: str | None,
    where: str | None,
    name: str,
    output: Output,
    folder: Path,
) -> None:
    """Fit a whole machine to an arm of a RUN or to this host, or a device to latencies of a RUN or FILE.

    A run on PostgreSQL with only --arm gives a machine: device, CPU of statements, client and kernel, delays, commits.
    It needs waits that were timed or read (`waits = "exact"` under [watch] of the plan). A run on MariaDB gives a
    machine from the times of its commits. With --event or --calls, or from a column of a CSV or Parquet file, only a
    device is fitted.

    With --host the machine is made without a database: syncs of a log in --folder, wake-ups and round trips
    are measured here, and the CPU of statements is a default scaled by a CPU probe.

    Latencies are used in the order of the rows, which should be the order in which they were measured. From a run, only
    what counts is used: no warm-up, one arm, and no sampled waits. -o FILE.toml writes the machine or the device.

    \b
    dbdyno model calibrate last --arm s1 -o mine.toml
    dbdyno model calibrate --host --folder /var/lib -o mine.toml
    dbdyno model calibrate last --calls commit --arm base
    dbdyno model calibrate latencies.csv --column write_us -o device.toml
    """
    from dbdyno.cli.stats import source as stats_source
    from dbdyno.model.calibrate import calibration

    if host:
        given = {"RUN or FILE": operand, "--event": event, "--calls": kind, "--arm": arm, "--column": column}
        _refuse_beside_host({**given, "--where": where, "--unit": unit})
        show_page(_host(place, length_ns, scale), output)
        return
    if operand is None:
        raise click.UsageError("name a RUN or a FILE, or add --host for a machine without a database")
    if names := [word for word, one in (("--folder", place), ("--for", length_ns), ("--scale", scale)) if one]:
        raise click.UsageError(f"{names[0]} works only with --host")
    if event and kind:
        raise ModelError("--event and --calls exclude each other", next_step="give --event or --calls, not both")
    if not (event or kind) and stats_source.is_run(operand, folder):
        show_page(_machine(operand, folder, arm), output)
        return
    if arm is not None and not (event or kind):
        raise ModelError("--arm works only with a run", where=operand, next_step="name a run, or leave --arm out")
    if event or kind:
        conditions = [f"event = {literal(event)}" if event else f"kind = {literal(str(kind))}"]
        conditions += [f"arm = {literal(arm)}"] if arm is not None else []
        conditions += [f"({where})"] if where else []
        where = " and ".join(conditions)
        operand = f"{operand}:{'waits' if event else 'calls'}"
    source = stats_source.resolve(operand, folder)
    where = _counted_condition(source, where)
    _refuse_mixtures(source, where)
    column = column or stats_source.default_column(stats_source.columns_of(source))
    ending = column.rpartition("_")[2]
    if unit is None and ending not in UNITS:
        raise ModelError(
            f"the column {column!r} does not show its unit", next_step=f"add --unit with one of {', '.join(UNITS)}"
        )
    values = stats_source.read_columns(source, [column], where=where).numbers[0] * UNITS[unit or ending]
    title = f"{column} of {operand}" + (f" where {where}" if where else "")
    show_page(calibration(values, name=name, title=title), output)


def _refuse_beside_host(given: dict[str, str | None]) -> None:
    """Raise `click.UsageError` for options that apply only to a run or a file and are given together with --host."""
    if names := [name for name, value in given.items() if value is not None]:
        raise click.UsageError(f"--host measures this host itself: leave {names[0]} out")


def _host(place: Path | None, length_ns: int | None, scale: int | None) -> dict[str, object]:
    """Return the page about the machine fitted to this host."""
    from dbdyno.bench.host.speed import measure_host
    from dbdyno.cli.model.progress import progress
    from dbdyno.study.prediction.host import calibrate_host
    from dbdyno.study.prediction.page import host_page_of

    if place is None:
        raise click.UsageError("--host needs --folder DIR, on the disk that will hold the database's log")
    with progress() as tell:
        speed = measure_host(place, length_ns or HOST_NS, tell)
    return host_page_of(calibrate_host(speed, scale=scale or SCALE), speed)


def _machine(operand: str, folder: Path, arm: str | None) -> dict[str, object]:
    """Return the page about the machine fitted to an arm.

    Raises:
        ModelError: The run is not on PostgreSQL or MariaDB, no arm was chosen, or the arm cannot be used.
    """
    from dbdyno.cli.model.progress import progress
    from dbdyno.evidence.run import find_run
    from dbdyno.study.analysis.measured.measures import measure
    from dbdyno.study.prediction.fit import calibrate
    from dbdyno.study.prediction.observation import engine_of, observe, timed_waits
    from dbdyno.study.prediction.page import page_of

    run = find_run(operand, folder)
    if not engine_of(run):
        raise ModelError(
            "the run has several kinds of latencies: choose one",
            where=run.id,
            next_step="add --event 'NAME' or --calls commit; to fit a whole machine, name a run on"
            " PostgreSQL or MariaDB",
        )
    names = [str(about["name"]) for about in run.manifest.arms]
    if arm is None and len(names) > 1:
        raise ModelError(
            f"a machine is fitted to one arm, but the run has {len(names)}: {', '.join(names[:6])}",
            where=run.id,
            next_step=f"add --arm {names[0]!r}, or fit only a device with --event 'NAME' or --calls commit",
        )
    seen = timed_waits(observe(run, measure(run), arm if arm is not None else names[0]))
    with progress() as tell:
        return page_of(calibrate(seen, tell), seen)


def _counted_condition(source: Source, where: str | None) -> str | None:
    """Return `where` as the SQL condition; for a run's waits, extend it to exclude blocks that do not count."""
    if (
        source.run is None
        or source.table != "waits"
        or not any(block.kind != "measure" for block in source.run.blocks())
    ):
        return where
    counts = "block in (select block from slices where counts)"
    return f"{where} and {counts}" if where else counts


def _refuse_mixtures(source: Source, where: str | None) -> None:
    """Raise `ModelError` for values that are not measured latencies, or that mix several arms."""
    from dbdyno.cli.stats import source as stats_source

    known = stats_source.columns_of(source)
    words = [name for name in ("fidelity", "arm") if name in known]
    taken = stats_source.read_columns(source, [], words, where) if words and source.form != "csv" else None
    found = dict(zip(words, (names for _, names in taken.words), strict=True)) if taken else {}
    if sampled := [name for name in found.get("fidelity", []) if name != "exact"]:
        raise ModelError(
            f"the duration of these waits is not measured ({sampled[0]}): each seems to last as long as the time "
            "between two samples",
            where=source.label,
            next_step="fit calls, which are timed one by one (--calls commit), or waits of a trace",
        )
    if source.run is not None and len(arms := found.get("arm", [])) > 1:
        raise ModelError(
            f"{len(arms)} arms are too many, because a device is fitted to one: {', '.join(arms[:6])}",
            where=source.label,
            next_step=f"add --arm {arms[0]!r}",
        )
