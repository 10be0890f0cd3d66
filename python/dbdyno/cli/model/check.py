"""`dbdyno model check`: check whether a machine file is valid."""

from __future__ import annotations

import json

import click

from dbdyno.base.errors import ModelError


@click.command("check")
@click.argument("name", metavar="FILE|NAME")
@click.option(
    "--format", "form", type=click.Choice(("table", "json")), help="Output format; --json is short for --format json."
)
def command(name: str, form: str | None) -> None:
    """Check a machine file. A mistake is reported with its line, its key and what is allowed; exit 2.

    \b
    dbdyno model check my.toml
    """
    from dbdyno.model.machine import machine_of

    try:
        machine = machine_of(name)
    except ModelError as error:
        if form != "json":
            raise
        refusal = {"ok": False, "where": error.where, "message": error.message, "next_step": error.next_step}
        click.echo(json.dumps(refusal, indent=1, ensure_ascii=False))
        raise click.exceptions.Exit(2) from error
    given = sum(bool(parameter["given"]) for parameter in machine.parameters)
    if form == "json":
        told = {
            "ok": True,
            "title": machine.title,
            "parts": len(machine.parts),
            "given": given,
            "parameters": len(machine.parameters),
        }
        click.echo(json.dumps(told, indent=1, ensure_ascii=False))
        return
    click.echo(
        f"{name} is valid: {machine.title}; {len(machine.parts)} parts, {given} of"
        f" {len(machine.parameters)} parameters are set, the others have their defaults"
    )
