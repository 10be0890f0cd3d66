"""`dbdyno doctor`: check server, role and machine, and report what dbdyno can and cannot do with them."""

from __future__ import annotations

from dataclasses import asdict

import click

from dbdyno.base.json_types import TableRow
from dbdyno.cli.output import Output, format_options, show_rows


@click.command("doctor")
@click.option("--target", help="The server, e.g. postgresql://user@host/db, mariadb. Default: embedded PostgreSQL.")
@format_options
def command(target: str | None, output: Output) -> None:
    """Check server, role and machine: what dbdyno can do with them, and what it cannot.

    A role without superuser and a server without OS access are normal cases.
    """
    from dbdyno.base.errors import TargetError
    from dbdyno.bench.doctor import examine_server

    _show_dead_mounts()
    try:
        checks = [asdict(check) for check in examine_server(target)]
    except TargetError:
        _show_unrestored()
        raise
    if output.is_screen:
        click.echo(_page(checks), nl=False)
    else:
        show_rows(checks, output)


def _show_unrestored() -> None:
    """Print the settings still to be restored on any server; the checked server cannot report them itself."""
    from dbdyno.bench.engine.unrestored_settings import all_records
    from dbdyno.bench.postgres.leftovers import describe

    for record in all_records().values():
        click.echo(f"not restored: {describe(record)}", err=True)


def _show_dead_mounts() -> None:
    """Print mounted devices whose process is dead; programs that use them get errors."""
    from dbdyno.device.mounts import mounted_folders

    for mount in mounted_folders():
        if mount.is_dead():
            click.echo(f"dead mount: {mount.folder}: dbdyno device unmount {mount.folder}", err=True)


def _page(checks: list[TableRow]) -> str:
    lines = []
    for check in checks:
        mark = {True: "yes", False: "no ", None: "-  "}[check["ok"]]
        lines.append(f"{mark}  {check['name']}: {check['found']}")
        if check["ok"] is not True:
            lines += [f"       {check[key]}" for key in ("consequence", "next") if check[key]]
    return "\n".join(lines) + "\n"
