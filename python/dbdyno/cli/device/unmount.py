"""`dbdyno device unmount`: unmount a folder and end its process."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.parameters import PATH


@click.command("unmount")
@click.argument("folder", metavar="DIR", type=PATH)
def command(folder: Path) -> None:
    """Unmount a folder, even if its process is dead; its data stay in the underlying folder."""
    from dbdyno.device.mounts import MountedFolder, unmount

    was_dead = MountedFolder(folder).is_dead()
    unmount(folder)
    click.echo(f"{folder} is unmounted" + ("; its process was dead" if was_dead else ""))
