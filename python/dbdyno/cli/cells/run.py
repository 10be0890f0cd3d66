"""`dbdyno cells run` and `dbdyno cells script`: commands on every cell, with a check before changes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.json_types import TableRow
from dbdyno.cli.cells.options import access_of, confirm, hosts_from, reach_options
from dbdyno.cli.output import heading
from dbdyno.cli.parameters import FILE, option_group

if TYPE_CHECKING:
    from dbdyno.cells.commands import Command, Group
    from dbdyno.cells.hosts import Host
    from dbdyno.cells.ssh import Access, Answer


_run_options = option_group(
    click.option("--serial", is_flag=True, help="Run on one cell at a time."),
    click.option("--dry-run", is_flag=True, help="Show what would be sent; send nothing."),
    click.option("-y", "--yes", is_flag=True, help="Change the cells without asking."),
    click.option("--apart", is_flag=True, help="Print the answer of each cell separately; do not group equal answers."),
    click.option(
        "-r",
        "--regex-out",
        metavar="REGEX",
        help="Leave out lines that match this regular expression, and list the cells that printed them.",
    ),
    click.option("--format", "form", type=click.Choice(("text", "json")), default="text"),
)


@click.command()
@click.argument("text", metavar="COMMAND")
@reach_options
@click.option("--shell", is_flag=True, help="Run COMMAND in the shell, not in CellCLI.")
@_run_options
def command(text: str, shell: bool, **given: Any) -> None:
    """Run COMMAND on every cell, in CellCLI or, with --shell, in the shell.

    A command that does not begin with list, describe or help asks for confirmation first. Exit 2 if it failed on any
    cell.

    \b
    dbdyno cells run -H @cell_group 'list flashcache detail'
    dbdyno cells run -H @cell_group --shell uptime
    """
    from dbdyno.cells.commands import Command, command_of

    one = Command(text, "command", looks=False) if shell else command_of(text)
    _carry_out([one], shell=shell, **given)


@click.command()
@click.argument("file", type=FILE)
@reach_options
@click.option("--shell", is_flag=True, help="Run the lines of FILE in the shell, not in CellCLI.")
@_run_options
def script(file: Path, shell: bool, **given: Any) -> None:
    """Run the CellCLI commands of FILE on every cell in order; stop at the first that fails.

    \b
    dbdyno cells script -H @cell_group --dry-run flush.scl
    dbdyno cells script -H @cell_group --shell checks.sh
    """
    from dbdyno.cells.commands import script_of, shell_script_of

    _carry_out(shell_script_of(file) if shell else script_of(file), shell=shell, **given)


def _carry_out(
    commands: Sequence[Command],
    *,
    shell: bool,
    serial: bool,
    dry_run: bool,
    yes: bool,
    apart: bool,
    regex_out: str | None,
    form: str,
    **reach: Any,
) -> None:
    from dbdyno.cells.collect import pattern_of

    out = pattern_of(regex_out, "--regex-out")
    hosts, access = hosts_from(reach), access_of(reach)
    changing = [one for one in commands if not one.looks]
    if dry_run:
        for one in commands:
            word = "looks" if one.looks else "CHANGES"
            click.echo(f"{word:8}{one.text if shell else one.shell_command}")
        click.echo(f"on {', '.join(host.name for host in hosts)}", err=True)
        return
    if changing and not yes:
        _ask([one.text for one in changing], [host.name for host in hosts])
    apart_or_later = None if form == "json" else apart
    sent = asyncio.run(_send(commands, hosts, access, shell, serial, apart_or_later, out))
    bad = _any_failed(sent[-1][1])
    if form == "json":
        rows = [{"command": one.text, "answers": _rows(answers)} for one, answers in sent]
        shown = rows if len(commands) > 1 else rows[0]["answers"]
        click.echo(json.dumps(shown, indent=1, ensure_ascii=False))
    if bad and len(commands) > 1:
        click.echo(f"dbdyno: {sent[-1][0].where}: failed; the remaining commands were not sent", err=True)
    if bad:
        raise click.exceptions.Exit(2)


async def _send(
    commands: Sequence[Command],
    hosts: Sequence[Host],
    access: Access,
    shell: bool,
    serial: bool,
    apart: bool | None,
    out: re.Pattern[str] | None,
) -> list[tuple[Command, list[Answer]]]:
    """Send the commands in order until one fails on any cell, and return all answers.

    Answers are printed as they arrive, under the names that the cells give themselves, unless `apart` is None.
    Connections stay open between the commands.
    """
    from dbdyno.cells.commands import group_answers, names_of, remove_lines
    from dbdyno.cells.identity import renamed_answers
    from dbdyno.cells.ssh import Fleet

    sent: list[tuple[Command, list[Answer]]] = []
    own: dict[Host, str] = {}
    asked: set[Host] = set()
    async with Fleet(hosts, access) as fleet:
        for one in commands:
            answers = await fleet.run(one.text if shell else one.shell_command, serial=serial)
            sent.append((one, answers))
            if new := [a.host for a in answers if not a.problem and a.host not in asked]:
                own |= await fleet.own_names(new)
                asked.update(new)
            renamed_answers(answers, own)
            gone = remove_lines(out, answers) if out else {}
            if apart is not None:
                if len(commands) > 1:
                    heading(f"> {one.text}")
                _show(answers, group_answers(answers, own), apart)
                if out and gone:
                    lines = sum(gone.values())
                    click.echo(
                        f"{out.pattern}: {lines} line(s) of {names_of(list(gone), len(answers))} left out", err=True
                    )
            if _any_failed(answers):
                break
    return sent


def _any_failed(answers: Sequence[Answer]) -> bool:
    from dbdyno.cells.commands import failure

    return any(failure(answer) for answer in answers)


def _rows(answers: Sequence[Answer]) -> list[TableRow]:
    from dbdyno.cells.commands import failure
    from dbdyno.cells.identity import address_of

    return [
        {
            "cell": a.host.name,
            "address": address_of(a.host),
            "output": a.output,
            "errors": a.errors,
            "exit": a.code,
            "problem": failure(a),
            "seconds": round(a.seconds, 6),
        }
        for a in answers
    ]


def _ask(texts: Sequence[str], cells: Sequence[str]) -> None:
    click.echo(f"This is sent to {len(cells)} cell(s): {', '.join(cells)}", err=True)
    for text in texts:
        click.echo(f"  {text}", err=True)
    confirm()


def _show(answers: Sequence[Answer], groups: Sequence[Group], apart: bool) -> None:
    from dbdyno.cells.commands import names_of
    from dbdyno.cells.listing import visible

    for answer in answers:
        for line in visible(answer.output).rstrip().split("\n") if apart else ():
            click.echo(f"{answer.host.name}: {line.strip()}")
        for line in visible(answer.errors).rstrip().split("\n") if not answer.code else ():
            if line:
                click.echo(f"{answer.host.name}: {line.strip()}", err=True)
    for group in groups:
        if not apart:
            heading(names_of(group.cells, len(answers)))
            if group.output:
                click.echo(group.output)
        if group.problem:
            click.echo(f"dbdyno: {', '.join(group.cells)}: {group.problem}", err=True)
            if group.next_step:
                click.echo(f"  next: {group.next_step}", err=True)
