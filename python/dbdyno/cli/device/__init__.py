"""`dbdyno device`: modelled devices under real programs, one file per command."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "list": ("dbdyno.cli.device.list", "The devices that come with dbdyno, or those that are mounted."),
    "show": ("dbdyno.cli.device.show", "A device: every parameter with its source."),
    "mount": ("dbdyno.cli.device.mount", "Mount a folder whose I/O takes the device's time."),
    "status": ("dbdyno.cli.device.status", "Show the requests of a mounted folder, their times and their delays."),
    "fit": ("dbdyno.cli.device.fit", "Fit a device to what fio or a block trace measured."),
    "cut": ("dbdyno.cli.device.cut", "Cut the power of an engine repeatedly; no commit may be lost."),
    "unmount": ("dbdyno.cli.device.unmount", "Unmount a folder; its data remains in the data folder."),
}


@click.group("device", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Run real programs on storage that you do not have: I/O in a folder takes as long as on a modelled device.

    NAME is a device that comes with dbdyno (`dbdyno device list`) or a TOML file of your own.
    """
