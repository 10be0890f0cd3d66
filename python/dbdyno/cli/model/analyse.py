"""`dbdyno model analyse`: compare analytic answers with the simulation."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default


@click.command("analyse")
@click.argument("machine", metavar="FILE")
@option_with_default(
    "--sessions", default="1..32", metavar="N1,N2|FROM..TO", help="Numbers of sessions to compute results for."
)
@page_options
def command(machine: str, sessions: str, output: Output) -> None:
    """Compare queueing theory with the simulation of a calibrated machine, for several numbers of sessions.

    It shows mean value analysis of the cores, group commit as a Markov chain, M/G/1 for commits that are each flushed
    separately, the bounds, and the operational laws, and explains where the answers differ.

    \b
    dbdyno model analyse mine.toml
    dbdyno model analyse mine.toml --sessions 1,4,16
    """
    from dbdyno.base.errors import ModelError
    from dbdyno.model.machine import machine_of
    from dbdyno.study.prediction.analytic import analyse
    from dbdyno.study.prediction.axes import axes_of
    from dbdyno.study.prediction.compare import CalibratedMachine

    given = CalibratedMachine.from_machine(machine_of(machine))
    (axis,) = axes_of([f"sessions={sessions}"])
    if not all(level.isdigit() and 0 < int(level) <= 65_535 for level in axis.levels):
        raise ModelError(
            "sessions must be whole numbers from 1 to 65535",
            where=f"--sessions {sessions}",
            next_step="write for example --sessions 1,2,4",
        )
    show_page(analyse(given, [int(level) for level in axis.levels]), output)
