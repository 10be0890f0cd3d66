"""`dbdyno device mount`: a folder whose reads, writes and flushes take the time of a modelled device."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.device_types import DeviceSpec
from dbdyno.cli.output import seed_option
from dbdyno.cli.parameters import PATH


@click.command("mount")
@click.argument("name", metavar="NAME|FILE")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--back", type=PATH, help="Folder that holds the data.  [default: DIR.data]")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a parameter of the device; may be repeated."
)
@click.option("--direct-io", is_flag=True, help="Bypass the kernel's cache: each read and write reaches the device.")
@click.option(
    "--poll", is_flag=True, help="Poll for requests on a dedicated processor: the times are exact, but cost a core."
)
@click.option(
    "--fail", "faults", multiple=True, metavar="KIND[:KEY=VALUE,...]", help="Inject a fault; may be repeated."
)
@seed_option
def command(
    name: str,
    folder: Path,
    back: Path | None,
    settings: tuple[str, ...],
    direct_io: bool,
    poll: bool,
    faults: tuple[str, ...],
    seed: int | None,
) -> None:
    """Mount the empty folder DIR: its reads, writes and flushes take the time of the device.

    A process in the background serves it until `dbdyno device unmount DIR`. The data are plain files in --back, and
    stay there. The time that a request takes in the kernel is measured first and subtracted; a device that is faster
    than that is refused.

    \b
    dbdyno device mount gp3 /mnt/slow
    dbdyno device mount gp3 /mnt/slow --set iops=16000 --set throughput_mb_s=1000
    dbdyno device mount nvme-2024 /mnt/bad --fail eio:path=pg_wal/*,operation=write,after=1000,count=1
    """
    from dbdyno.device.catalogue import device_of, settings_of
    from dbdyno.device.faults import fault_rule
    from dbdyno.device.server import start_server

    device = device_of(name)
    spec: DeviceSpec = {
        "device": device.name,
        "folder": str(folder.absolute()),
        "back": str((back or folder.with_name(folder.name + ".data")).absolute()),
        "toml": device.machine.toml,
        "settings": settings_of(device, settings),
        "seed": seed or 0,
        "direct_io": direct_io,
        "polls": poll,
        "faults": [fault_rule(text) for text in faults],
    }
    made = back is None and not Path(spec["back"]).exists()
    if made:
        Path(spec["back"]).mkdir(mode=0o755, parents=True)
    try:
        state = start_server(spec)
    except BaseException:
        if made:
            Path(spec["back"]).rmdir()
        raise
    click.echo(f"{folder} is on {device.name}: {device.machine.title}")
    click.echo(f"  data in {spec['back']}, process {state['process']}, seed {spec['seed']}")
    keeps = "the kernel caches writes until a sync" if state["kernel_writeback"] else "the kernel caches nothing"
    click.echo(f"  {state['floor_ns'] / 1e3:.1f} us of each request are kernel time and are subtracted; {keeps}")
