"""`dbdyno device status`: the activity of a mounted folder."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import format_options, show_rows


@click.command("status")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@format_options
def command(folder: Path, form: str | None, output: Path | None) -> None:
    """Show the requests of a mounted folder: counts, modelled times, and delays of replies.

    `late` is the time between the modelled and the real completion: a p99 that is not small against the
    times above it says that this machine is too busy, or the device too fast for it.
    """
    from dbdyno.device.mounts import status

    state = status(folder)
    kinds = {"read": state["read"], "write": state["write"], "flush": state["flush"], "late": state["late"]}
    rows = [
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
        f"{folder} on {state['device']}, data in {state['back']}, floor {state['floor_ns'] / 1e3:.1f} us, "
        f"{state['used_bytes'] >> 20} of {state['capacity_bytes'] >> 20} MB, {state['faults']} faults"
    )
    show_rows(rows, form, output, title=title)
