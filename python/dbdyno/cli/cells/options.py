"""Options shared by the commands on cells (which cells, and how to reach them), and messages about problems."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.limits import DAY_S, Number
from dbdyno.cli.parameters import EXISTING_FILE, FILE, option_group, option_with_default

if TYPE_CHECKING:
    from dbdyno.cells.collection import Collection, Column
    from dbdyno.cells.hosts import Host
    from dbdyno.cells.selection import Selection
    from dbdyno.cells.ssh import Access


by_option = option_with_default(
    "--by",
    type=click.Choice(("cell", "object", "both")),
    default="cell",
    help="Show one value per cell (over its objects), per object (over all cells), or per object of each cell (both).",
)
mask_option = click.option(
    "-m", "--mask", metavar="REGEX", help="Show only metrics whose whole name matches this regular expression."
)


access_options = option_group(
    click.option("-l", "--user", metavar="NAME", help="User name for the login on the cells."),
    click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="FILE",
        type=EXISTING_FILE,
        help="Private key (default: the keys of the SSH agent and of the SSH configuration).",
    ),
    click.option("--known-hosts", type=FILE, help="File with the cells' host keys, instead of your known_hosts."),
    click.option(
        "--ssh-config",
        metavar="FILE",
        type=EXISTING_FILE,
        help="SSH configuration file to use instead of yours, as with ssh -F.",
    ),
    click.option("--jump", metavar="[USER@]HOST[:PORT]", help="Connect through this host (ssh -J)."),
    option_with_default(
        "--timeout",
        default=30.0,
        metavar="S",
        type=Number(0.1, DAY_S),
        help="Time limit for the answer of a cell [s].",
    ),
    option_with_default(
        "--parallel",
        default=64,
        type=click.IntRange(1, 1000),
        help="Maximum number of cells to query at the same time.",
    ),
)
"""Adds the options for reaching cells that are not named by --hosts; `access_of` reads these options."""
reach_options = option_group(
    click.option(
        "-H",
        "--hosts",
        multiple=True,
        metavar="HOSTS",
        help="Cells: comma-separated names, name[01-14], @FILE, USER@HOST:PORT.",
    ),
    click.option(
        "-g",
        "--group",
        "groups",
        multiple=True,
        metavar="FILE",
        help="Cells: a file that lists them, one name per line, as for dcli.",
    ),
    access_options,
)
"""Adds --hosts and the options for reaching the hosts; `access_of` and `hosts_from` read these options."""


def hosts_from(reach: Mapping[str, Any]) -> list[Host]:
    """Return the cells that the options added by `reach_options` name."""
    from dbdyno.cells.hosts import hosts_of

    groups = [f"@{file}" for file in reach.get("groups", ())]
    return hosts_of([*reach["hosts"], *groups], user=reach["user"])


def access_of(reach: Mapping[str, Any]) -> Access:
    """Return the access to the cells that the options specify."""
    from dbdyno.cells.ssh import Access

    return Access(
        keys=tuple(reach["keys"]),
        known_hosts=reach["known_hosts"],
        jump=reach["jump"],
        timeout_s=reach["timeout"],
        parallel=reach["parallel"],
        config=reach.get("ssh_config") or True,
    )


def confirm() -> None:
    """Ask whether to do what was shown; exit with code 2 if the answer is no or there is no answer."""
    try:
        agreed = click.confirm("Do it?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise  # Ctrl-C
        click.echo("\ndbdyno: nobody answered; nothing was sent\n  next: --yes answers", err=True)
        agreed = False
    if not agreed:
        raise click.exceptions.Exit(2)


selection_options = option_group(
    mask_option,
    click.option(
        "--exclude", metavar="REGEX", help="Leave out metrics whose whole name matches this regular expression."
    ),
    click.option(
        "--object",
        "item",
        metavar="REGEX",
        help="Show only objects whose whole name matches this regular expression, such as 'CD_03_.*'.",
    ),
    click.option("--database", "databases", metavar="NAMES", help="Show only these databases (comma-separated)."),
)
"""Adds --mask, --exclude, --object and --database; `selection_from` reads them."""


def selection_from(given: dict[str, Any]) -> Selection:
    """Return the selection given by `selection_options`, and remove these options from `given`."""
    from dbdyno.cells.selection import selection_of

    return selection_of(*(given.pop(name) for name in ("mask", "exclude", "item", "databases")))


def report_duplicates(collection: Collection) -> None:
    """Print a line for each cell that was named twice."""
    for sentence in collection.twice:
        click.echo(f"dbdyno: {sentence}", err=True)


def _name_and_address(host: Host) -> str:
    """Return the name that a cell gives itself, followed by its address if that differs."""
    from dbdyno.cells.identity import address_of

    way = address_of(host)
    return host.name if way in host.name else f"{host.name} ({way})"


def report_problems(columns: Sequence[Column]) -> bool:
    """Print a line for each cell with missing data; return True if there was one."""
    for column in columns:
        if column.problem:
            click.echo(f"dbdyno: {_name_and_address(column.host)}: {column.problem}", err=True)
            if column.next_step:
                click.echo(f"  next: {column.next_step}", err=True)
    return any(column.problem for column in columns)
