"""`dbdyno snap check`: check and repair a store."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import Output, format_options, show_rows
from dbdyno.cli.snap.options import store_option


@click.command("check")
@click.option(
    "--repair",
    "mend",
    is_flag=True,
    help="Rename damaged files to *.torn, and delete incomplete files that killed processes left behind.",
)
@click.option(
    "--target",
    "dsn",
    metavar="DSN",
    help="Check this Oracle instance instead of a store: does it accept each query? No row is read.",
)
@store_option
@format_options
def command(mend: bool, dsn: str | None, store: Path, output: Output) -> None:
    """Check every manifest and file of a store, and their checksums.

    Only the snapshots in a torn file are lost. --repair renames the file to *.torn and deletes nothing that can be
    read. Exit 1 if something is wrong, or after a repair if something is still wrong.

    \b
    dbdyno snap check
    dbdyno snap check --repair
    dbdyno snap check --target oracle://perf@db1/ORCLPDB1
    """
    if dsn is not None:
        _check_target(dsn, output)
        return
    from dbdyno.snapshot.store.check import check, repair
    from dbdyno.snapshot.store.folder import Store

    holder = Store(store)
    numbers = holder.numbers()
    if not numbers:
        raise click.UsageError(f"there is no store in {store}/; name one with --store")
    faults = check(holder)
    stay = repair(holder, faults) if mend and faults else faults
    rows = [
        {
            "where": fault.where,
            "what": fault.what,
            "snapshots": ", ".join(map(str, fault.costs)),
            "repair": ("done: " if mend else "") + fault.repair if fault.repair else "restore it from a copy",
        }
        for fault in faults
    ]
    if rows or output.form not in (None, "table"):
        show_rows(rows, output)
    if not faults:
        click.echo(f"{store}/: {sum(1 for _ in holder)} snapshots, nothing wrong", err=True)
    elif not mend and any(fault.repair for fault in faults):
        click.echo("next: dbdyno snap check --repair", err=True)
    if stay:
        raise click.exceptions.Exit(1)


def _check_target(dsn: str, output: Output) -> None:
    from dbdyno.snapshot.engines.oracle.check import check
    from dbdyno.snapshot.engines.registry import engine_of

    if engine_of(dsn) != "oracle":
        raise click.UsageError(
            "--target works only with oracle://: check other engines with `dbdyno doctor --target DSN`"
        )
    rows = check(dsn)
    show_rows(rows, output)
    if any(row["answer"] != "ok" for row in rows):
        raise click.exceptions.Exit(1)
