"""`dbdyno model whatif`: what a change would bring."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import ModelError
from dbdyno.base.files import user_file_toml
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import EXISTING_FILE, option_with_default


@click.command("whatif")
@click.argument("machine", metavar="FILE")
@click.option(
    "--set",
    "settings",
    multiple=True,
    required=True,
    metavar="NAME=V1,V2|FROM..TO",
    help="Values to try for device, data_device, shared_buffers, sessions, cores or a parameter; may be repeated.",
)
@click.option(
    "--cost",
    type=EXISTING_FILE,
    metavar="FILE.toml",
    help="File with prices per hour: `server`, `core`, and a table `devices` with the price of each device.",
)
@option_with_default(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=1,
    help="Seed of the random parameters from which the uncertainty band is computed.",
)
@page_options
def command(machine: str, settings: tuple[str, ...], cost: Path | None, seed: int, output: Output) -> None:
    """Simulate a calibrated machine with other devices, sessions, cores or settings.

    For every combination of levels it shows throughput and p99 with a band for the uncertainty of the fit, the
    bottleneck, the knee of each curve over sessions, and how far this is outside the calibrated range. In a range
    FROM..TO each level is twice the previous one.

    \b
    dbdyno model whatif mine.toml --set sessions=1..64
    dbdyno model whatif mine.toml --set device=gp3,io2,nvme-2024 --set sessions=1..256 -o whatif.html
    dbdyno model whatif mine.toml --set data_device=gp3,nvme-2024 --set shared_buffers=1GB,8GB
    dbdyno model whatif mine.toml --set cores=2..64 --cost prices.toml
    """
    from dbdyno.cli.model.progress import progress
    from dbdyno.model.machine import machine_of
    from dbdyno.study.prediction.axes import axes_of
    from dbdyno.study.prediction.compare import CalibratedMachine
    from dbdyno.study.prediction.whatif import whatif

    given = CalibratedMachine.from_machine(machine_of(machine))
    axes = axes_of(settings)
    prices = _prices(cost) if cost is not None else None
    with progress() as tell:
        page = whatif(given, axes, prices=prices, seed=seed, on_progress=tell)
    show_page(page, output)


def _prices(path: Path) -> dict[str, object]:
    """Return the prices that a file contains.

    Raises:
        ModelError: The file is not TOML, or a price is not a number of 0 or more.
    """
    found = user_file_toml(path, ModelError)
    devices = found.get("devices", {})
    flat = {
        **{name: found.get(name, 0.0) for name in ("server", "core")},
        **(devices if isinstance(devices, dict) else {}),
    }
    wrong = [name for name, price in flat.items() if not isinstance(price, int | float) or not price >= 0]
    unknown = [name for name in found if name not in ("server", "core", "devices")]
    if wrong or unknown or not isinstance(devices, dict):
        raise ModelError(
            f"{(wrong or unknown or ['devices'])[0]!r} is not a price",
            where=str(path),
            next_step="give prices per hour, such as server = 0.1, core = 0.04, and [devices] with gp3 = 0.01",
        )
    return found
