"""`dbdyno device fit`: a device from measurements by fio or a block trace."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.limits import Number
from dbdyno.cli.output import seed_option
from dbdyno.cli.pages import page_options, show_page


@click.command("fit")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--name", default="measured", show_default=True, help="The device's name.")
@click.option(
    "--capacity-gb",
    default=100.0,
    show_default=True,
    type=Number(0.001, 1e6),
    help="The device's capacity, which is not measured.",
)
@seed_option
@page_options
def command(file: Path, name: str, capacity_gb: float, seed: int | None, form: str | None, output: Path | None) -> None:
    """Fit a device to FILE: JSON of fio, the text of blkparse, or a CSV of MSR Cambridge's form.

    Service times are those of requests that had the device to themselves; how many it serves at once follows
    from the jobs' throughput, or from replays of the trace. The page says how far it is off where it was not
    fitted. -o FILE.toml writes the device for `device mount` and `model replay`.

    \b
    fio --name=d1 --iodepth=1 --name=d32 --iodepth=32 … --output-format=json+ --output=fio.json
    dbdyno device fit fio.json -o mine.toml
    dbdyno device mount ./mine.toml /mnt/mine
    """
    from dbdyno.base.errors import DeviceError
    from dbdyno.device.block_trace import read_block_trace
    from dbdyno.device.fio import is_fio_json, read_fio_json
    from dbdyno.device.fit import fit_jobs, fit_trace

    if not name.isidentifier():
        raise DeviceError(f"{name!r} is not a valid name", where="--name", next_step="use letters, digits and _")
    if file.is_dir():
        raise DeviceError(
            "is a folder",
            where=str(file),
            next_step="name a file, or fit a device to the commits of a run with `dbdyno model calibrate RUN "
            "--calls commit`",
        )
    title = f"fitted to {file.name}"
    if is_fio_json(file):
        page = fit_jobs(read_fio_json(file), name=name, title=title, capacity_gb=capacity_gb)
    else:
        trace = read_block_trace(file)
        page = fit_trace(trace, name=name, title=title, capacity_gb=capacity_gb, seed=seed or 0)
    show_page(page, form, output)
