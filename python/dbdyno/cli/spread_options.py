"""Options that spread the work of a command over many hosts: `--scheduler`, or `--hosts` over SSH."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import PlanError
from dbdyno.cli.parameters import option_group

if TYPE_CHECKING:
    from dbdyno.hosts.workers import Workers


spread_options = option_group(
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Spread the work over the workers of this Dask scheduler: tcp://HOST:PORT.",
    ),
    click.option(
        "-H",
        "--hosts",
        multiple=True,
        metavar="HOSTS",
        help="Spread the work over these hosts, by SSH: comma-separated names, name[01-14], @FILE, USER@HOST:PORT.",
    ),
)
"""Adds --scheduler and --hosts; `workers_of` connects to the hosts."""


@contextlib.contextmanager
def workers_of(scheduler: str | None, hosts: tuple[str, ...]) -> Iterator[Workers | None]:
    """Yield the workers that the options name, or None if the command uses only this machine.

    Raises:
        PlanError: Both options are given.
        TargetError: The scheduler or a host cannot be reached.
    """
    if scheduler is None and not hosts:
        yield None
        return
    if scheduler is not None and hosts:
        raise PlanError(
            "--scheduler and --hosts exclude each other: both name the hosts", next_step="give one of the two"
        )
    from dbdyno.cells.hosts import hosts_of
    from dbdyno.hosts.workers import open_workers

    with open_workers(scheduler, hosts_of(hosts) if hosts else ()) as workers:
        yield workers
