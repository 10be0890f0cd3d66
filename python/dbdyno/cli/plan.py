"""`dbdyno plan`: write an example plan, show what a plan would do, print the schema of plans."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import PlanError
from dbdyno.cli.output import write_text
from dbdyno.cli.parameters import FILE


@click.group("plan")
def command() -> None:
    """Write an example plan; show what a plan would do."""


@command.command("new")
@click.argument("file", type=FILE, default=Path("plan.toml"))
@click.option("--force", is_flag=True, help="Overwrite the file.")
def new(file: Path, force: bool) -> None:
    """Write a commented example plan to FILE (default plan.toml; '-' for stdout)."""
    from dbdyno.study.plan.example import example_plan

    if str(file) == "-":
        click.echo(example_plan(), nl=False)
        return
    if file.exists() and not force:
        raise PlanError("exists already", where=str(file), next_step="choose another name, or add --force")
    write_text(file, example_plan())
    click.echo(f"wrote {file}; next: dbdyno plan check {file}", err=True)


@command.command("check")
@click.argument("file", type=FILE)
@click.option("--target", help="Engine or model to use instead of the plan's target.")
def check(file: Path, target: str | None) -> None:
    """Show what a plan would do on its engine; change nothing."""
    from dbdyno.study.plan.file import read_plan
    from dbdyno.study.plan.targets import plan_on_target
    from dbdyno.study.run.check import describe

    click.echo(describe(plan_on_target(read_plan(file), target)), nl=False)


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of plan.toml, with which editors complete and check plans.

    \b
    dbdyno plan schema > plan.schema.json
    Then begin a plan with the line:  #:schema ./plan.schema.json
    """
    import json

    from dbdyno.study.plan.schema import plan_schema

    click.echo(json.dumps(plan_schema(), indent=2, ensure_ascii=False))
