"""Options shared by the commands on snapshots: store, target, output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dbdyno.base.limits import DAY_S, Number
from dbdyno.cli.parameters import FOLDER, F, option_group, option_with_default
from dbdyno.snapshot.engines.view import Options

if TYPE_CHECKING:
    from dbdyno.snapshot.store.folder import Store

store_option = option_with_default(
    "--store", type=FOLDER, default=Path("snaps"), envvar="DBDYNO_SNAPS", help="Folder with the snapshots."
)

name_option = click.option(
    "--target", metavar="NAME", help="Target in the store, if it has several (see `dbdyno snap list`)."
)


def target_options(function: F) -> F:
    """Add --target and the options that select what is read from the target."""
    return _target_options(function, required=True)


def target_or_fleet_options(function: F) -> F:
    """Add the options of `target_options`, but with --target optional, because a file may name the targets."""
    return _target_options(function, required=False)


def _target_options(function: F, *, required: bool) -> F:
    """Add the options of a target, which the function receives as `dsn`, `options` and `note`."""

    @functools.wraps(function)
    def command(
        *given: Any,
        name: str | None,
        databases: tuple[str, ...],
        all_databases: bool,
        redact: bool,
        statement_timeout: float,
        lock_timeout: float,
        plans: int,
        **rest: Any,
    ) -> Any:
        options = Options(
            ("*",) if all_databases else databases or None,
            redact,
            round(statement_timeout * 1000),
            round(lock_timeout * 1000),
            name,
            plans=plans,
        )
        return function(*given, options=options, **rest)

    add = option_group(
        click.option(
            "--target",
            "dsn",
            required=required,
            metavar="DSN",
            envvar="DBDYNO_TARGET",
            help="Connection string of the server: postgresql://user@host/database",
        ),
        click.option("--name", metavar="NAME", help="Name of the target in the store (default: host:port)."),
        click.option(
            "--database",
            "databases",
            multiple=True,
            metavar="NAME",
            help="Also read the objects (such as tables and indexes) of this database; repeatable.",
        ),
        click.option(
            "--all-databases", is_flag=True, help="Read the objects (such as tables and indexes) of every database."
        ),
        click.option("--redact", is_flag=True, help="Store no text of any statement."),
        _timeout_option("--statement-timeout", 5.0, "Timeout for each query that dbdyno sends."),
        _timeout_option("--lock-timeout", 0.5, "Timeout for each lock that dbdyno waits for."),
        click.option(
            "--plans",
            type=click.IntRange(0, 200),
            default=0,
            metavar="N",
            help="PostgreSQL: also store the generic plans of the N statements with the most time. The statements are "
            "not executed.",
        ),
        click.option("--note", default="", help="A name for the snapshot, such as 'before batch'."),
    )
    return cast("F", add(command))


def _timeout_option(name: str, default: float, text: str) -> Callable[[F], F]:
    return option_with_default(name, type=Number(0.01, DAY_S), default=default, metavar="SECONDS", help=text)


def report_damage(store: Store) -> None:
    """Print a line to stderr for each snapshot left out because its manifest cannot be read."""
    for number, error in sorted(store.damaged.items()):
        click.echo(f"dbdyno: snapshot {number} is left out: {error}", err=True)
