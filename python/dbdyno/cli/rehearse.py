"""`dbdyno rehearse`: effects of an upgrade, a setting or an index on the user's own statements."""

from __future__ import annotations

import math
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.fail_on import fail_on_option
from dbdyno.cli.log_options import log_options, logs_option, zone_of
from dbdyno.cli.mask_option import mask_key_of, mask_key_option, mask_option
from dbdyno.cli.output import Output, key_file_option, out_option, seed_option, show_line
from dbdyno.cli.pages import analysis_options
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.rehearse_load import LoadOptions, is_capture, load_of
from dbdyno.cli.snap.options import store_option

if TYPE_CHECKING:
    from dbdyno.move.database.masks import Mask
    from dbdyno.rehearse.request import ReplayRequest
    from dbdyno.rehearse.side import Side

_LIMIT_MOST_MS = 2**31 - 1
FAILING = ("regression", "failure", "answer")
_DECISIONS = {"regression": "slower", "failure": "fails", "answer": "differs"}


@click.command("rehearse")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="[NEW]", required=False)
@click.option(
    "--load",
    required=True,
    metavar="CAPTURE|LOGS|snap:FIRST..LAST|statements|mariadb://HOST",
    help="Source of the statements: a capture (trace proxy --binds, trace import --log), server logs, snapshots, "
    "'statements' (OLD's pg_stat_statements), or a MariaDB server (its performance schema).",
)
@logs_option(
    "Server logs, with --load statements or snap:…; parameter values that auto_explain logged there are used instead "
    "of generated values."
)
@log_options
@store_option
@key_file_option
@click.option(
    "--privacy",
    is_flag=True,
    help="Do not store or print any parameter value of the load: not in the run, not on its page, not on the terminal.",
)
@click.option(
    "--change",
    "changes",
    multiple=True,
    metavar="SQL",
    help="SQL that makes the new side differ: SET applies to its sessions, any other statement runs in a copy of the "
    "database. Repeatable.",
)
@click.option(
    "--new",
    "programs",
    metavar="bindir=DIR|version=N",
    help="Create the new side: start a server from the programs in this folder or of this version, with OLD's settings "
    "and a copy of its database.",
)
@click.option(
    "--upgrade",
    metavar="copy=DIR|link=DIR",
    help="With --new: create the new server's data with pg_upgrade from this data folder. No server may be running on "
    "the folder, which is unusable afterwards.",
)
@mask_option
@mask_key_option
@option_with_default("--for", "length", default="2min", metavar="TIME", help="Stop after this time.")
@click.option(
    "--replay",
    metavar="all|TIME",
    help="Afterwards replay the capture, or its first TIME, with concurrent sessions, alternately on copies of both "
    "sides.",
)
@click.option(
    "--speed",
    "speeds",
    metavar="N,...|max",
    help="Also replay at these speeds until a side falls behind: 2,4 or 2,4,max. Implies --replay all.",
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="NAME",
    help="Rehearse statements that use this function or table, although a rollback "
    "does not undo their effects. Repeatable.",
)
@option_with_default("--threshold", default="10%", help="Smallest slowdown that matters.")
@option_with_default(
    "--sets",
    default=5,
    type=click.IntRange(1, 20),
    help="Number of sets of parameter values to execute each statement with.",
)
@option_with_default("--timeout", default="30s", metavar="TIME", help="Time limit for each execution of a statement.")
@fail_on_option(FAILING, "Exit 1 if a statement is slower, fails, or answers differently.")
@seed_option
@out_option
@analysis_options
def command(
    old: str,
    new: str | None,
    load: str,
    logs: tuple[Path, ...],
    line_prefix: str | None,
    timezone: str | None,
    store: Path,
    key_file: Path | None,
    privacy: bool,
    changes: tuple[str, ...],
    programs: str | None,
    upgrade: str | None,
    masks: tuple[str, ...],
    mask_key_file: Path | None,
    length: str,
    replay: str | None,
    speeds: str | None,
    allowed: tuple[str, ...],
    threshold: str,
    sets: int,
    timeout: str,
    fail_on: tuple[str, ...],
    seed: int | None,
    out: Path,
    output: Output,
) -> None:
    """Execute your own statements on OLD and NEW; report which become slower, fail or answer differently.

    OLD and NEW are copies that nobody uses; a server that looks like production is refused. Each transaction is rolled
    back. Without NEW the new side is OLD with --change, or a server that --new makes. Exit 1 if a condition of
    --fail-on is met, or if there is no verdict.

    \b
    dbdyno rehearse postgresql://copy-13/app postgresql://copy-17/app --load runs/monday
    dbdyno rehearse postgresql://copy/app --new version=17 --load runs/monday
    dbdyno rehearse postgresql://copy-13/app --new version=17 --upgrade link=/srv/expendable/data --load runs/monday
    dbdyno rehearse postgresql://copy/app --change 'create index on orders (customer)' --load runs/monday
    dbdyno rehearse postgresql://copy/app --change 'set random_page_cost = 1.1' --load statements
    dbdyno rehearse OLD NEW --load runs/monday --replay 10min --speed 2,4
    dbdyno rehearse OLD NEW --load runs/monday --fail-on regression --fail-on failure -o verdict.md    in a build
    """
    from dbdyno.base.signals import Interrupted, StopSignals
    from dbdyno.cli.compare import requested_form
    from dbdyno.move.database.masks import read_masks
    from dbdyno.rehearse.budget import Budget
    from dbdyno.rehearse.job import run_rehearsal
    from dbdyno.rehearse.request import Request
    from dbdyno.trace.units import length_ns

    requested_form(output)
    _refuse((new, changes, programs), upgrade, masks, is_replayed=bool(replay or speeds))
    share, masked = _share(threshold), read_masks(masks)
    mask_key = mask_key_of(mask_key_file, masked)
    options = LoadOptions(load, sets, store, key_file, privacy, logs, masked, line_prefix, zone_of(timezone))
    seconds, limit_ms = length_ns(length, "--for") / 1e9, _limit_ms(timeout)
    played = _replay(load, replay, speeds)
    seed = secrets.randbelow(10**9) if seed is None else seed
    with StopSignals() as stopping:
        show = _show if sys.stderr.isatty() else _quiet
        budget = Budget(seconds, show, stopping.is_requested)
        stopping.on_ask = _interrupt
        with (
            _sides(old, new, changes, (programs, upgrade), show, stopping.is_requested, masked, mask_key) as (
                before,
                after,
            ),
            _messages(played, key_file) as played,
        ):
            stopping.on_ask = None
            for side in (before, after):
                side.timeout_ms, side.stop, side.private = limit_ms, stopping.is_requested, privacy
            given = load_of(options, before.server)
            request = Request(_title(before, after, changes), share, seed, out, changes, played, allowed)
            budget.start()
            try:
                run, model = run_rehearsal(given, before, after, request, budget)
            finally:
                _end()
        if stopping.asked:
            click.echo(f"interrupted: what was measured is in {run.path}", err=True)
            raise click.exceptions.Exit(130) from Interrupted()
    _output(run.path, model, output)
    raise click.exceptions.Exit(_exit(model, fail_on))


def _refuse(sides: tuple[object, ...], upgrade: str | None, masks: Sequence[str], *, is_replayed: bool) -> None:
    """Raise `click.UsageError` for options that exclude or need each other; `sides` is NEW, --change and --new."""
    programs = sides[-1]
    if sum(map(bool, sides)) != 1:
        raise click.UsageError("name the second side: give NEW, --change or --new")
    if upgrade and not programs:
        raise click.UsageError("--upgrade prepares the data for the server of --new: give both options")
    if masks and (not programs or upgrade or is_replayed):
        raise click.UsageError("--mask works only with the copy that --new makes, without --upgrade and --replay")


@contextmanager
def _sides(
    old: str,
    new: str | None,
    changes: tuple[str, ...],
    made: tuple[str | None, str | None],
    show: Callable[[str], None],
    stop: Callable[[], bool],
    masks: Sequence[Mask],
    mask_key: str,
) -> Iterator[tuple[Side, Side]]:
    from dbdyno.rehearse.sides import (
        open_two_servers,
        open_with_change,
        open_with_new_server,
        open_with_upgrade,
        refuse_mariadb,
    )

    programs, upgrade = made
    refuse_mariadb(old, new)
    if new is not None:
        opened = open_two_servers(old, new)
    elif programs is not None and upgrade is not None:
        opened = open_with_upgrade(old, programs, upgrade, show)
    elif programs is not None:
        opened = open_with_new_server(old, programs, show, masks, mask_key)
    else:
        opened = open_with_change(old, changes, show, stop)
    with opened as sides:
        yield sides


def _replay(load: str, length: str | None, speeds: str | None) -> ReplayRequest | None:
    """Return how the capture is replayed; None if it is not replayed.

    Raises:
        TraceError: A speed is not valid.
    """
    from dbdyno.rehearse.request import ReplayRequest
    from dbdyno.trace.proxy.replay import speed_of
    from dbdyno.trace.units import length_ns

    if length is None and speeds is None:
        return None
    if not is_capture(load):
        raise click.UsageError(f"--replay needs the sessions of a capture, which --load {load} does not have")
    words = [word.strip() for word in (speeds or "").split(",") if word.strip()]
    asked = {speed_of(word if word == "max" else word.removesuffix("x")) for word in words} - {1.0}
    until_ns = None if length in (None, "all") else length_ns(str(length), "--replay")
    return ReplayRequest(Path(load), tuple(sorted(asked, key=lambda speed: speed or math.inf)), until_ns)


@contextmanager
def _messages(played: ReplayRequest | None, key_file: Path | None) -> Iterator[ReplayRequest | None]:
    """Yield the request with the folder of the capture's messages, decrypted in memory if they are encrypted."""
    if played is None:
        yield None
        return
    from dbdyno.evidence.captures import open_capture
    from dbdyno.evidence.encryption import messages_of

    with messages_of(open_capture(played.capture), key_file) as folder:
        yield replace(played, messages=folder)


def _title(old: Side, new: Side, changes: tuple[str, ...]) -> str:
    if changes:
        return f"{old.server.libpq_parameters()['dbname']}: {'; '.join(changes)}"
    return f"{_place(old)} → {_place(new)}"


def _place(side: Side) -> str:
    known = side.server.libpq_parameters()
    host = "" if known["host"].startswith("/") else f"{known['host']}:"
    return f"{known['dbname']} on {host or 'port '}{known['port']}"


def _share(text: str) -> float:
    """Return a slowdown as a share; from 100 % on it needs a per cent sign, because 5 probably means 5 %, not 500 %."""
    number, is_percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if is_percent else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < (10 if is_percent else 1):
        meant = f"; for {number} percent write {number}%" if share >= 1 and not is_percent else ""
        raise click.UsageError(f"--threshold {text}: expected a share of the time, such as 10% or 0.1{meant}")
    return share


def _limit_ms(text: str) -> int:
    """Return the time limit of an execution [ms], within the range of PostgreSQL's statement_timeout (0 means none)."""
    from dbdyno.trace.units import length_ns

    limit_ms = length_ns(text, "--timeout") // 1_000_000
    if not 1 <= limit_ms <= _LIMIT_MOST_MS:
        raise click.UsageError(f"--timeout {text}: expected a time from 1ms to 596h")
    return limit_ms


def _output(folder: Path, model: Mapping[str, Any], output: Output) -> None:
    from dbdyno.cli.pages import show_page, write_output
    from dbdyno.report.html import write_html
    from dbdyno.report.junit import render_junit

    write_html(model, folder / "report.html")
    form, path = output.form, output.path
    if form == "junit" or (form is None and path is not None and path.suffix == ".xml"):
        write_output(render_junit(model), path)
        return
    show_page(model, output)
    if form is None and path is None:
        click.echo(f"report: {folder / 'report.html'}")


def _exit(model: Mapping[str, Any], fail_on: tuple[str, ...]) -> int:
    found = {row["decision"] for row in model["statements"]}
    found |= {"slower"} if model["verdict"]["decision"] == "slower" else set()
    failed = any(_DECISIONS[name] in found for name in fail_on)
    return int(failed or model["verdict"]["decision"] == "no verdict")


def _interrupt() -> None:
    """End the creation of a side immediately; a running rehearsal ends by itself, so that measurements are kept.

    Raises:
        KeyboardInterrupt: Always.
    """
    raise KeyboardInterrupt


def _show(words: str) -> None:
    show_line(words)


def _quiet(words: str) -> None:
    del words


def _end() -> None:
    if sys.stderr.isatty():
        show_line()
