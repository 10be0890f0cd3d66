"""`dbdyno`: the top-level command, its conventions, and lazy loading of the commands.

stdout is for data; progress, warnings and errors go to stderr. Exit codes: 0 done; 1 done and something was found; 2 an
error; 130 interrupted. A closed pipe ends the command silently. `--debug` shows tracebacks.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

import click

from dbdyno.base import escaping
from dbdyno.base.errors import Error
from dbdyno.base.processes import child_environment

COMMANDS = {
    "advise": "What to change, with the figures that show why.",
    "bisect": "The commit that made a program slower.",
    "cells": "Storage cells over SSH, all at once.",
    "ci": "Workflows for CI services: a change against its base.",
    "client": "External clients: list them, and check whether one follows the protocol.",
    "compare": "Analyse a run again, or compare two runs, traces, periods or recordings.",
    "device": "Folders on modelled devices under real programs; power cuts.",
    "doctor": "Check server, role and machine.",
    "flow": "Data flows: the plan as written and as executed, side by side.",
    "help": "Topics: targets, times, output, exit codes, files, verdicts.",
    "model": "Modelled machines: show, check, fit, validate against published results.",
    "move": "Move tables to Parquet: exact under writers, restartable, proved.",
    "plan": "Write an example plan; show what a plan would do.",
    "probe": "Measure log-write latency on real files.",
    "rehearse": "Your own statements on an old and a new server: slower, failing, different.",
    "report": "Write the report of a run: HTML, text, figures.",
    "restore": "Restore server settings that a killed run left changed.",
    "results": "Results of runs kept as small files: in a folder or a branch of git.",
    "run": "Run a study or a plan: arms in random order, every latency kept.",
    "runs": "List the runs; import those of other programs.",
    "snap": "Snapshots of a live engine, and what happened between two.",
    "sql": "Query the evidence of a run.",
    "stats": "Statistics on any evidence, CSV or Parquet.",
    "studies": "List the built-in studies, or show one.",
    "trend": "All runs of a plan over time, and where it changed.",
    "tune": "Race many arms: worse arms drop out, the winner is confirmed.",
    "trace": "Oracle traces: where the time went, accounted for to the microsecond.",
    "ui": "Runs, servers and their history as pages in a browser.",
    "wide": "Wide tables of Cassandra, queried with SQL.",
}


EXTRA_PACKAGES = {"dbdyno_rig": "dbdyno-rig"}
"""Further packages that provide commands."""
DRIVERS = ("psycopg", "pymysql", "oracledb", "cassandra")
"""Drivers whose uncaught errors mean that a server became unreachable during a command."""


FORMER_OPTIONS = {
    "--dsn": ("--target",),
    "--to": ("--target", "--directory"),
    "--since": ("--from",),
    "--until": ("--to",),
    "--machine": ("--ran-on",),
    "--out": ("--output",),
}
"""Former option names, accepted for one version, each with its current names; also `--out` of commands without runs."""


def current_names(command: click.Command, args: Sequence[str]) -> list[str]:
    """Return the arguments of a command with former names of options replaced, and --json as --format json."""
    known = {name: option for option in command.params for name in (*option.opts, *option.secondary_opts)}
    # A group's subcommand may have --out itself.
    kept = {*known, "--out"} if isinstance(command, click.Group) else {*known}
    found: list[str] = []
    for place, word in enumerate(args):
        if word == "--":
            return [*found, *args[place:]]
        name, sign, value = word.partition("=")
        new = next((one for one in FORMER_OPTIONS.get(name, ()) if one in known), None) if name not in kept else None
        if word == "--json" and name not in known and _has_json(known.get("--format")):
            found += ["--format", "json"]
        else:
            found.append(word if new is None else f"{new}{sign}{value}")
    return found


def _has_json(option: click.Parameter | None) -> bool:
    return option is not None and isinstance(option.type, click.Choice) and "json" in option.type.choices


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, not when help is printed.

    `rows` maps the name of each command to its help line. A command's module has its name and is in `package`, except
    those `elsewhere`.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        package: str = "dbdyno.cli",
        rows: Mapping[str, str] = COMMANDS,
        elsewhere: Mapping[str, str] | None = None,
        **attrs: Any,
    ) -> None:
        super().__init__(name, **attrs)
        self.package, self.rows, self.elsewhere = package, rows, elsewhere or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.rows:
            return None
        name = "imports" if cmd_name == "import" else cmd_name.replace("-", "_")  # a keyword names no module
        command: click.Command = _module(self.elsewhere.get(cmd_name, f"{self.package}.{name}")).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.rows.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.rows and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.rows, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            path = ctx.command_path
            ctx.fail(f"No command {args[0]!r}.{hint} `{path} --help` lists the commands.")
        name, found, rest = super().resolve_command(ctx, args)
        return name, found, rest if found is None else current_names(found, rest)


def _module(name: str) -> ModuleType:
    """Return the module of a command.

    Raises:
        Error: it is in an extra package that is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRA_PACKAGES:
            raise
        raise Error(
            f"this command is in the package {EXTRA_PACKAGES[error.name]}, which is not installed",
            next_step=f"run pip install {EXTRA_PACKAGES[error.name]} (or its wheel)",
        ) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dbdyno")
@click.option("--debug", is_flag=True, help="Show Python tracebacks.")
def cli(debug: bool) -> None:
    """Measure databases and the storage under them: a performance laboratory.

    Does this change make my database faster, by how much, and why? Start with `dbdyno run
    redo-size`, or with `dbdyno plan new` for a question of your own. `dbdyno help` lists topics.
    """


def entry() -> NoReturn:
    """Run the console script and turn every ending into an exit code."""
    from dbdyno.base.signals import INTERRUPTED, Listener

    debug = "--debug" in sys.argv
    escaping.escape_output()
    os.environ.update(child_environment())
    listener = Listener()
    try:
        listener.start()
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt) as stop:
        listener.mark_ended()
        words = str(stop.__cause__ or "") if isinstance(stop, click.exceptions.Abort) else str(stop)
        click.echo(f"interrupted: {words}" if words else "interrupted", err=True)
        code = INTERRUPTED
    except SystemExit as ending:  # click exits like this when the reader of a pipe has closed it, which is no error
        code = 0 if type(sys.stdout).__name__.endswith("PacifyFlushWrapper") else ending.code
    except click.ClickException as error:
        error.show()
        code = 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Error as error:
        if debug:
            raise
        click.echo(f"dbdyno: {error}", err=True)
        code = 2
    except BaseException as error:  # panics of the core are not subclasses of Exception
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        if listener.ended_query(error):
            listener.mark_ended()
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        if debug:
            raise
        if type(error).__module__.partition(".")[0] in DRIVERS:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            click.echo(
                f"dbdyno: the server closed the connection: {said}\n  next: check the server's log, then run again",
                err=True,
            )
            sys.exit(2)
        click.echo(
            f"dbdyno: internal error; please report it: {type(error).__name__}: {error}\n"
            "  next: run the command again with `dbdyno --debug ...` and report what it prints",
            err=True,
        )
        code = 2
    finally:
        listener.mark_ended()
    sys.exit(code if isinstance(code, int) else 0)
