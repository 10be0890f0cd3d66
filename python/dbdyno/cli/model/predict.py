"""`dbdyno model predict`: predicted and measured values for every arm of a run."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import Output, folder_option
from dbdyno.cli.pages import page_options, show_page


@click.command("predict")
@click.argument("run_name", metavar="RUN")
@click.option(
    "--machine", "-m", required=True, metavar="FILE", help="Machine file that `dbdyno model calibrate` wrote."
)
@click.option("--arm", multiple=True, metavar="NAME", help="Predict only this arm; may be repeated.")
@page_options
@folder_option
def command(run_name: str, machine: str, arm: tuple[str, ...], output: Output, folder: Path) -> None:
    """Predict every arm of a RUN on PostgreSQL or MariaDB with a calibrated machine, and show the measured values too.

    It shows throughput, mean, p50, p90 and p99, and the waits of a transaction by class; measured values have their 95
    % interval over blocks. What the model does not cover (other settings, statements without costs) is stated for each
    arm.

    \b
    dbdyno model calibrate last --arm s1 -o mine.toml
    dbdyno model predict last --machine mine.toml
    dbdyno model predict last --machine mine.toml -o prediction.html
    """
    from dbdyno.base.errors import ModelError
    from dbdyno.cli.model.progress import progress
    from dbdyno.evidence.run import find_run
    from dbdyno.model.machine import machine_of
    from dbdyno.study.analysis.measured.measures import measure
    from dbdyno.study.prediction.compare import CalibratedMachine, predict

    run = find_run(run_name, folder)
    given = CalibratedMachine.from_machine(machine_of(machine))
    names = [str(about["name"]) for about in run.manifest.arms]
    if missing := [name for name in arm if name not in names]:
        raise ModelError(
            f"has no arm {missing[0]!r}", where=run.id, next_step=f"name one of its arms: {', '.join(names)}"
        )
    with progress() as tell:
        page = predict(run, measure(run), given, only=arm, on_progress=tell)
    show_page(page, output)
