"""`dbdyno model list`: the built-in machines."""

from __future__ import annotations

import click

from dbdyno.base.errors import ModelError, PlanError
from dbdyno.cli.output import FORMATS, Output, form_of, format_options, show_rows


@click.command("list")
@format_options
def command(output: Output) -> None:
    """List the machines that come with dbdyno: name, title, parts, and the studies that suit them."""
    from dbdyno.model.describe import list_machines

    form_of(output, FORMATS)  # refuses a file before the studies are tried
    rows = [{**row, "suits": ", ".join(_suits(row["name"]))} for row in list_machines()]
    show_rows(rows, output)


def _suits(name: str) -> list[str]:
    """Return the studies that can run on this machine with the defaults of their factors."""
    from dbdyno.bench.model.bench import check_on_model
    from dbdyno.model.machine import machine_of
    from dbdyno.study.library import STUDIES

    machine = machine_of(name)
    found = []
    for study in STUDIES.values():
        try:
            plan = study.plan({}, quick=True, target=f"model:{name}")
            check_on_model(plan, machine)
        except (ModelError, PlanError):
            continue
        found.append(study.name)
    return found
