"""The command `dbdyno model cells`: modelled storage cells behind SSH, which are used like real ones."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.limits import Number

if TYPE_CHECKING:
    from dbdyno_rig.rack import Load, Rack
    from dbdyno_rig.serve import RackAccess

SLOW = 0.8


@click.command("cells")
@click.option(
    "--model",
    "name",
    default="exadata-x2",
    show_default=True,
    metavar="NAME|FILE",
    help="Modelled machine whose storage cells are served.",
)
@click.option(
    "--cells", "count", type=click.IntRange(1, 1000), help="Number of cells (default: as many as the machine has)."
)
@click.option("--listen", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65_000),
    metavar="BASE",
    help="Port of the first cell; the other cells get the ports after it (default: any free ports).",
)
@click.option(
    "--speed",
    default=60.0,
    show_default=True,
    type=Number(0.01, 100_000),
    help="Speed of the virtual time: virtual seconds per real second.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    default=("mixed",),
    show_default=True,
    metavar="NAME|KIND[,KEY=VALUE...]",
    help="Continuous load on the database: quiet, mixed, or a workload of the model. Repeat to run several at once.",
)
@click.option(
    "--sessions",
    type=click.IntRange(1, 10_000),
    help="Number of sessions for a workload that does not set it (default: 8).",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PARAMETER=VALUE",
    help="Change a parameter of the machine, named by its path or the last part of the path.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option(
    "--keys",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Public keys that may log in (default: those of a new key pair).",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for keys and known_hosts (default: a temporary folder).",
)
def command(
    name: str,
    count: int | None,
    listen: str,
    port: int,
    speed: float,
    workloads: tuple[str, ...],
    sessions: int | None,
    settings: tuple[str, ...],
    seed: int,
    keys: Path | None,
    folder: Path | None,
) -> None:
    """Serve modelled storage cells, which answer like real ones over SSH, until Ctrl-C.

    Each cell is an SSH server. Behind the cells, the model runs a workload in scaled real time: counters move, the
    cache is empty after `drop flashcache`, and with `flashLog=off` log writes go only to disk. The clocks of the cells
    run at the same speed. The command prints the exact options for reaching the cells.

    \b
    dbdyno model cells --cells 3 --model exadata-x2
    dbdyno model cells --workload commit-loop,think_ms=5,sessions=20 --speed 10
    """
    from dbdyno_rig.loads import load_of, pair
    from dbdyno_rig.rack import Rack

    given = dict(pair(text, "--set") for text in settings)
    if count is not None:
        given.setdefault("cells.count", str(count))
    load = load_of(workloads, sessions=sessions, seed=seed, settings=given)
    rack = Rack(f"model:{name}", load, speed=speed)
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dbdyno-cells-")))
        folder.mkdir(parents=True, exist_ok=True)
        stack.enter_context(_run_clock(rack))
        asyncio.run(_serve(rack, load, folder, listen, port, keys))


@contextlib.contextmanager
def _run_clock(rack: Rack) -> Iterator[None]:
    """Let time pass in the rack, in a separate thread."""
    stop = threading.Event()
    thread = threading.Thread(target=rack.run, args=(stop,), name="dbdyno cells")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


async def _serve(rack: Rack, load: Load, folder: Path, listen: str, port: int, keys: Path | None) -> None:
    from dbdyno_rig.cell import Cell
    from dbdyno_rig.serve import Servers

    ended = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, ended.set)
    cells = [Cell(rack, number) for number in range(len(rack.names))]
    async with Servers(cells, folder, listen=listen, port=port, keys=keys) as served:
        _tell(rack, load, served)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), 10)
        if not ended.is_set() and rack.reached < SLOW * rack.speed:
            click.echo(
                f"dbdyno: the model reaches {rack.reached:.1f} virtual seconds per second, not {rack.speed:g}; for "
                f"less load: --workload quiet, fewer sessions, or think_ms",
                err=True,
            )
        await ended.wait()


def _tell(rack: Rack, load: Load, served: RackAccess) -> None:
    loads = [(load.sessions, load.workload), *load.beside]
    does = ", ".join(f"{sessions} sessions of {workload['kind']}" for sessions, workload in loads)
    click.echo(f"{len(rack.names)} cells of {rack.title}, modelled", err=True)
    for text in (f"{rack.database}: {does}", *rack.beside):
        click.echo(f"  {text}", err=True)
    click.echo(
        f"their clocks run {rack.speed:g} times as fast as real time: one collection every {60 / rack.speed:.3g} s, if "
        f"the model keeps up",
        err=True,
    )
    for name, port in zip(rack.names, served.ports, strict=True):
        click.echo(f"  {name}  {served.listen}:{port}", err=True)
    click.echo(f"dbdyno cells show {served.reach} --mask 'FL_.*'")
    config = shlex.quote(str(served.config))
    click.echo(f"At a prompt: ssh -F {config} -t {rack.names[0]} cellcli", err=True)
    click.echo("Ctrl-C ends it.", err=True)
