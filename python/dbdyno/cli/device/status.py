"""`dbdyno device status`: the activity of a mounted folder."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import Output, format_options, show_rows
from dbdyno.cli.parameters import PATH


@click.command("status")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--faults", is_flag=True, help="List the faults that happened, each with time, file and offset.")
@click.option("--wear", is_flag=True, help="List the wear of the flash: block erasures, and pages written and trimmed.")
@format_options
def command(folder: Path, faults: bool, wear: bool, output: Output) -> None:
    """Show the requests of a mounted folder: counts, modelled times, and delays of replies.

    `late` is the time between the modelled and the real completion: if its p99 is not small compared with the times
    above it, this machine is too busy, or the device is too fast for it. The floor is the time that a request spends in
    the kernel: its median is subtracted from each request, so programs see a p99 that is longer by the difference
    between the floor's p99 and its median. The wake-up is the time to start a program on a processor that has become
    idle: it is subtracted where one program waits alone. Discards have a row once the device has taken one.
    """
    from dbdyno.device.mounts import status, transport

    state = status(folder)
    if faults:
        show_rows(state["faults"], output, title=f"{folder} on {state['device']}: faults")
        return
    if wear:
        rows = [
            {**row, "write_amplification": round(row["programmed_pages"] / max(row["host_pages"], 1), 3)}
            for row in state["wear"]
        ]
        if not rows:
            click.echo(f"{state['device']} has no flash, so it has no wear", err=True)
        show_rows(rows, output, title=f"{folder} on {state['device']}: wear of flash")
        return
    kinds = {"read": state["read"], "write": state["write"], "flush": state["flush"]}
    if state["discard"]["count"]:
        kinds["discard"] = state["discard"]
    kinds["late"] = state["late"]
    times_of = [
        {
            "kind": kind,
            "count": times["count"],
            "p50_us": round(times["p50_ns"] / 1e3, 1),
            "p99_us": round(times["p99_ns"] / 1e3, 1),
            "max_us": round(times["max_ns"] / 1e3, 1),
        }
        for kind, times in kinds.items()
    ]
    title = (
        f"{folder} on {state['device']}, data in {state['back']}, floor {state['floor_ns'] / 1e3:.1f} us"
        f" (p99 {state['floor_p99_ns'] / 1e3:.1f} us), "
        f"wake-up {state['wake_ns'] / 1e3:.1f} us, "
        f"{state['used_bytes'] >> 20} of {state['capacity_bytes'] >> 20} MB, {len(state['faults'])} faults, "
        f"{transport(state)}"
    )
    show_rows(times_of, output, title=title)
