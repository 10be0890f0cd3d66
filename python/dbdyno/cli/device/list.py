"""`dbdyno device list`: the built-in devices, or the mounted folders."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output, format_options, show_rows


@click.command("list")
@click.option("--mounted", is_flag=True, help="List the folders that are mounted, and the process that serves each.")
@format_options
def command(mounted: bool, output: Output) -> None:
    """List the devices: name, time of a read and a write of 4 KB on the idle device."""
    if mounted:
        from dbdyno.device.mounts import mounted_folders

        found = [
            {
                "folder": str(row.folder),
                "process": row.process() or ("dead: unmount it" if row.is_dead() else "of another user"),
            }
            for row in mounted_folders()
        ]
        show_rows(found, output)
        return
    from dbdyno.device.catalogue import list_devices

    show_rows(list_devices(), output)
