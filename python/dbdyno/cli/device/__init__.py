"""`dbdyno device`: modelled devices under real programs, one file per command."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "list": ("dbdyno.cli.device.list", "The devices that come with dbdyno, or those that are mounted."),
    "show": ("dbdyno.cli.device.show", "A device: every parameter with its source."),
    "mount": ("dbdyno.cli.device.mount", "Mount a folder whose I/O takes the device's time."),
    "status": ("dbdyno.cli.device.status", "Requests of a mounted folder, their times and how late they were."),
    "fit": ("dbdyno.cli.device.fit", "Fit a device to what fio or a block trace measured."),
    "cut": ("dbdyno.cli.device.cut", "Cut the power under an engine, again and again; every commit must be there."),
    "unmount": ("dbdyno.cli.device.unmount", "Unmount a folder; its data stay in the folder below."),
}


@click.group("device", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Run real programs on storage that you do not have: I/O in a folder takes as long as on a modelled device.

    NAME is a device that comes with dbdyno (`dbdyno device list`) or a TOML file of your own.
    """
