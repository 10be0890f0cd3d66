"""`dbdyno device fit`: fit a device to measurements by fio or a probe, or to a block trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from dbdyno.base.limits import Number
from dbdyno.cli.output import Output, folder_option, seed_option
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default

if TYPE_CHECKING:
    from dbdyno.device.job import MeasuredJob


@click.command("fit")
@click.argument("operands", metavar="FILE|RUN...", nargs=-1, required=True)
@option_with_default("--name", default="measured", help="Name for the device.")
@option_with_default(
    "--capacity-gb", default=100.0, type=Number(0.001, 1e6), help="Capacity of the device in GB, which is not measured."
)
@click.option(
    "--path",
    type=click.IntRange(1, 2),
    help="For a redo probe with two paths: number of the path to fit.  [default: 1]",
)
@seed_option
@page_options
@folder_option
def command(
    operands: tuple[str, ...],
    name: str,
    capacity_gb: float,
    path: int | None,
    seed: int | None,
    output: Output,
    folder: Path,
) -> None:
    """Fit a device to fio's JSON, blkparse's text, a CSV in MSR Cambridge's format, or a RUN of `dbdyno probe`.

    Service times are those of requests that had the device to themselves; the number of requests that it serves at once
    follows from the throughput of jobs, or from replays of the trace. The page shows the error of the fit at points
    that were not used for it. -o FILE.toml writes the device for `device mount` and `model replay`. Several runs of the
    flash probe, at several depths, make one device.

    \b
    fio --name=d1 --iodepth=1 --name=d32 --iodepth=32 … --output-format=json+ --output=fio.json
    dbdyno device fit fio.json -o mine.toml
    dbdyno probe flash /flash --depth 1 && dbdyno device fit last
    dbdyno device mount ./mine.toml /mnt/mine
    """
    from dbdyno.base.errors import DeviceError
    from dbdyno.device.block_trace import read_block_trace
    from dbdyno.device.fio import is_fio_json, read_fio_json
    from dbdyno.device.fit import fit_jobs, fit_trace

    if not name.isidentifier():
        raise DeviceError(f"{name!r} is not a valid name", where="--name", next_step="use letters, digits and _")
    if len(operands) == 1 and is_file(operands[0]):
        file = Path(operands[0])
        about: Naming = {"name": name, "title": f"fitted to {file.name}", "capacity_gb": capacity_gb}
        if is_fio_json(file):
            page = fit_jobs(read_fio_json(file), **about)
        else:
            page = fit_trace(read_block_trace(file), **about, seed=seed or 0)
    else:
        jobs, title, notes = _probe_jobs(operands, folder, path)
        page = fit_jobs(jobs, name=name, title=title, capacity_gb=capacity_gb, notes=notes)
    show_page(page, output)


class Naming(TypedDict):
    """Name, title and capacity of a fitted device."""

    name: str
    title: str
    capacity_gb: float


def is_file(text: str) -> bool:
    """Return True if `text` is the path of a file, or can only be meant as one."""
    path = Path(text)
    return path.is_file() or (path.suffix != "" and not path.exists())


def _probe_jobs(operands: Sequence[str], folder: Path, path: int | None) -> tuple[list[MeasuredJob], str, list[str]]:
    """Return the jobs that runs of a probe represent, the device's title, and sentences about the runs.

    Raises:
        DeviceError: An operand is a file or not the run of a probe, or not all of several operands are flash probes.
    """
    from dbdyno.base.errors import DeviceError
    from dbdyno.device.probe_run import is_flash_probe, probe_jobs, probe_run, redo_jobs

    if files := [text for text in operands if is_file(text)]:
        raise DeviceError("a device is fitted to only one file", where=files[0], next_step="name only this file")
    runs = [probe_run(text, folder) for text in operands]
    title = f"fitted to {', '.join(run.id for run in runs)}"
    if all(map(is_flash_probe, runs)):
        if path is not None:
            raise DeviceError("a flash probe has one path", where="--path", next_step="leave --path out")
        return probe_jobs(runs), title, []
    if len(runs) > 1:
        raise DeviceError(
            "only flash probes are fitted together", where=runs[0].id, next_step="name one run of the redo probe"
        )
    jobs, sizes = redo_jobs(runs[0], path or 1)
    return jobs, f"{title}, path {path or 1}", [sizes]
