"""`dbdyno device`: modelled devices under real programs, one file per command."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "device",
    package=__name__,
    rows={
        "list": "The devices that come with dbdyno, or those that are mounted.",
        "show": "A device: every parameter with its source.",
        "mount": "Mount a folder whose I/O takes the device's time.",
        "status": "Show the requests of a mounted folder, their times and their delays.",
        "fit": "Fit a device to what fio or a block trace measured.",
        "cut": "Cut the power of an engine repeatedly; no commit may be lost.",
        "unmount": "Unmount a folder; its data remains in the data folder.",
    },
    help="""Run real programs on storage that you do not have: I/O in a folder takes as long as on a modelled device.

    NAME is a device that comes with dbdyno (`dbdyno device list`) or a TOML file of your own.
    """,
)
