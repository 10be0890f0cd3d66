"""`dbdyno model replay`: a block trace on a modelled device."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.limits import Number
from dbdyno.cli.output import Output, seed_option
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import PATH, option_with_default


@click.command("replay")
@click.argument("trace", metavar="TRACE", type=PATH)
@click.option(
    "--device",
    "name",
    required=True,
    metavar="NAME|FILE",
    help="Modelled device: a file, or a name from `dbdyno device list`.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a parameter of the device; may be repeated."
)
@option_with_default(
    "--speed", default=1.0, type=Number(1e-6, 1e6), help="Speed factor: with 2, requests arrive twice as fast."
)
@seed_option
@page_options
def command(
    trace: Path,
    name: str,
    settings: tuple[str, ...],
    speed: float,
    seed: int | None,
    output: Output,
) -> None:
    """Replay the reads and writes of TRACE on a modelled device, in virtual time.

    TRACE is an iolog or a latency log of fio, the text output of blkparse, or a CSV in MSR Cambridge's format. Requests
    arrive at the times in the trace, even if earlier requests are not complete. If the trace has response times, the
    page compares them with the modelled ones.

    \b
    dbdyno model replay blkparse.txt --device gp3
    dbdyno model replay io.log --device ./mine.toml --speed 2
    dbdyno model replay blkparse.txt --device nvme-2024 --set channels=4 --format json
    """
    from dbdyno.device.block_trace import read_block_trace
    from dbdyno.device.catalogue import device_of, settings_of
    from dbdyno.device.replay import replay_page, replayed_ns

    device = device_of(name)
    changed = settings_of(device, settings)
    read = read_block_trace(trace).faster(speed)
    found = replayed_ns(read, device.machine.toml, changed, seed or 0)
    shown = device.name + (f", {', '.join(settings)}" if settings else "")
    title = f"{trace.name} on {shown}" + (f", at {speed:g} times its speed" if speed != 1 else "")
    show_page(replay_page(read, found, device=device.name, title=title), output)
