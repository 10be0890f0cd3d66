"""`dbdyno advise`: what to change, with supporting figures, the expected effect and what would refute it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.errors import AdviceError
from dbdyno.base.files import read_user_file
from dbdyno.base.json_types import JsonObject
from dbdyno.base.limits import Number
from dbdyno.cli.output import Output, folder_option, show_rows
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import FILE, FOLDER
from dbdyno.cli.snap.options import store_option

if TYPE_CHECKING:
    from dbdyno.advise.experiments import Load
    from dbdyno.advise.facts import Facts
    from dbdyno.advise.rule import Rule

_LEVELS = ("critical", "warning", "hint")
_ARTICLE = {"stack": "a stack", "host": "a host", "recording": "storage cells", "trace": "a trace"}
_SCHEMES = ("postgresql://", "postgres://")


@click.command("advise")
@click.argument("on", required=False, metavar="[DSN|snap:FIRST..LAST|RUN|RECORDING|TRACE.trc|STACK.toml|host|rules]")
@click.option("--only", multiple=True, metavar="RULE", help="Evaluate only this rule or family of rules; repeatable.")
@click.option("--skip", multiple=True, metavar="RULE", help="Leave out this rule or family of rules; repeatable.")
@click.option(
    "--fail-on",
    type=click.Choice(_LEVELS),
    help="Exit 1, to fail a CI job, if a finding has this level or a worse one.",
)
@click.option(
    "--fast-gb",
    type=Number(0.001, 1e6),
    metavar="GB",
    help="With snap:FIRST..LAST or MariaDB: choose tables and indexes for a fast device of this size [GB].",
)
@click.option(
    "--plan",
    "plans",
    type=FOLDER,
    metavar="DIR",
    help="Write a plan for each finding that can be tested by changing a setting.",
)
@click.option(
    "--workload",
    metavar="SCRIPT.sql|MIX",
    help="Workload for the plans: a script or a built-in mix (default: a mix that the setting affects).",
)
@click.option("--force", is_flag=True, help="Overwrite plans in DIR.")
@click.option(
    "--machine",
    "-m",
    "machine",
    type=FILE,
    metavar="FILE",
    help="For PostgreSQL: predict effects with this machine file, written by `dbdyno model calibrate`.",
)
@click.option(
    "--sessions",
    type=click.IntRange(1, 65_535),
    help="With --machine: number of active sessions to assume (default: the mean number in the evidence).",
)
@click.option(
    "--prove",
    "advice",
    metavar="PLAN.toml|RULE|NUMBER",
    help="Test a recommendation: run its plan on --target and record the result: proved, refuted, or cannot tell.",
)
@click.option(
    "--target",
    metavar="DSN|postgres|NAME",
    help="With --prove: the server to run on; postgres means an embedded server. With snap:FIRST..LAST: the target in "
    "the store.",
)
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    help="With --prove: run the plan without asking, even if it was changed or comes from elsewhere.",
)
@folder_option
@store_option
@page_options
def command(
    on: str | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    fail_on: str | None,
    fast_gb: float | None,
    plans: Path | None,
    workload: str | None,
    force: bool,
    machine: Path | None,
    sessions: int | None,
    advice: str | None,
    target: str | None,
    yes: bool,
    folder: Path,
    store: Path,
    output: Output,
) -> None:
    """Judge a server, snapshots, a run, a recording of cells, a trace, a storage stack or this host.

    Each finding has its figures and their place, the expected effect, the fix, its risk, its source, and what would
    disprove it. Fixes are printed, never run: a server is only read, with limits on every statement and lock. Rules
    that could not be judged are listed with the reason. Only --prove runs anything, on the --target named.

    \b
    dbdyno advise postgresql://me@db1/app
    dbdyno advise snap:1..12 --skip schema -o advice.html
    dbdyno advise last
    dbdyno advise orders.trc
    dbdyno advise stack.toml
    dbdyno advise host
    dbdyno advise snap:1..12 --fast-gb 100
    dbdyno advise postgresql://me@db1/app --fail-on critical
    dbdyno advise postgresql://me@db1/app --plan plans --workload report.sql
    dbdyno advise postgresql://me@db1/app --machine mine.toml --sessions 16
    dbdyno advise --prove plans/advise-01-work_mem.toml --target postgresql://me@copy/app
    dbdyno advise rules
    """
    from dbdyno.advise.judge import choose_rules, worst_findings
    from dbdyno.cli.advise.prove import load_of, plan_of, prove, write_plans

    _refuse(on, advice, target, plans)
    asked = choose_rules(only, skip)
    if on == "rules":
        _show_rules(asked, output)
        return
    load = load_of(workload)
    if advice is not None and target is not None and _is_file(advice):
        prove(_text(Path(advice)), advice, target, folder, yes, output)
        return
    if on is None:
        raise click.UsageError("name what to judge: a server, snapshots or a run")
    facts = _with_device(_facts(on, folder, store, None if advice else target), on, fast_gb)
    facts = _with_machine(facts, machine, sessions, load)
    model = _judge(facts, asked, on if only else "")
    if advice is not None and target is not None:
        prove(plan_of(model, advice, load), f"advice {advice}", target, folder, yes, output)
        return
    show_page(model, output)
    if plans is not None:
        write_plans(model, plans, load, force)
    if fail_on is not None and (found := worst_findings(model, fail_on)):
        for line in found:
            click.echo(f"failed on {fail_on}: {line}", err=True)
        raise click.exceptions.Exit(1)


def _with_device(facts: Facts, on: str, fast_gb: float | None) -> Facts:
    """Return the evidence, extended by the requested fast device.

    Raises:
        AdviceError: the evidence does not show how much was read.
    """
    from dataclasses import replace

    from dbdyno.advise.placement import FastDevice
    from dbdyno.advise.snapshot_advice import without_device

    if fast_gb is None:
        return without_device(facts)
    if facts.kind != "snapshots" and facts.engine != "mariadb":
        raise AdviceError(
            "--fast-gb works only with snapshots or a MariaDB server",
            where=on,
            next_step="run for example `dbdyno advise snap:1..12 --fast-gb 100`",
        )
    return replace(facts, rows={**facts.rows, FastDevice: [FastDevice(round(fast_gb * 1024**3))]})


def _with_machine(facts: Facts, machine: Path | None, sessions: int | None, load: Load | None) -> Facts:
    """Return the evidence with a calibrated machine's predictions, or with the reason why there are none."""
    from dbdyno.advise.predictions import with_machine, without_machine

    if machine is not None:
        return with_machine(facts, machine, sessions, load)
    if sessions is not None:
        raise click.UsageError("--sessions works only with --machine")
    return without_machine(facts)


def _refuse(on: str | None, advice: str | None, target: str | None, plans: Path | None) -> None:
    """Raise `click.UsageError` for options that cannot be combined."""
    if advice is None:
        return
    if target is None:
        raise click.UsageError("--prove changes settings and runs load: name the server with --target")
    if plans is not None:
        raise click.UsageError("--plan and --prove exclude each other: give one of the two")
    if _is_file(advice) and on is not None:
        raise click.UsageError(f"a plan file names what it tests: leave {on} out")


def _is_file(advice: str) -> bool:
    return advice.endswith(".toml") or "/" in advice


def _text(path: Path) -> str:
    try:
        return read_user_file(path)
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else f"it is not UTF-8 text at byte {error.start}"
        raise AdviceError(
            f"cannot be read: {said}",
            where=str(path),
            next_step="name a readable plan file; write one with `dbdyno advise DSN --plan DIR`",
        ) from error


def _judge(facts: Facts, rules: tuple[Rule, ...], named_on: str) -> JsonObject:
    """Judge the evidence, and return the advice as data for its page.

    Raises:
        AdviceError: rules were named, but none of them applies to this subject.
    """
    from dbdyno.advise.judge import applicable_rules, judge
    from dbdyno.advise.proofs import stored_proofs

    if named_on and not applicable_rules(facts, rules):
        raise AdviceError(
            f"none of the named rules is for {_ARTICLE.get(facts.kind, 'a database')}",
            where=named_on,
            next_step="see what each rule reads with `dbdyno advise rules --format csv`",
        )
    return judge(facts, rules, stored_proofs())


def _show_rules(rules: tuple[Rule, ...], output: Output) -> None:
    from dbdyno.advise.judge import list_rules

    if output.form in ("html", "markdown"):
        raise click.UsageError(
            "the rules can be written only as a table: give --format table, csv, json, jsonl or arrow"
        )
    rows = list(list_rules(rules))
    if output.is_screen:
        rows = [{name: row[name] for name in ("rule", "family", "title", "versions")} for row in rows]
    show_rows(rows, output)


def _facts(on: str, folder: Path, store: Path, target: str | None) -> Facts:
    """Return the evidence about the named subject."""
    found = None if on.startswith("snap:") else _evidence_of_place(on)
    return found or _recorded_evidence(on, folder, store, target)


def _evidence_of_place(on: str) -> Facts | None:
    """Return the evidence from a server, host or description, or None if the name refers to a recording."""
    if on == "host":
        from dbdyno.advise.host.read import read as read_host

        return read_host()
    if on.endswith(".toml"):
        from dbdyno.advise.stack.read import read as read_stack

        return read_stack(Path(on))
    if on.startswith(("mariadb://", "mysql://")):
        from dbdyno.advise.engines.mariadb.read import read as read_mariadb

        return read_mariadb(on)
    if on.startswith(_SCHEMES) or "=" in on:
        from dbdyno.advise.engines.postgres.read import read as read_live

        return read_live(on)
    return None


def _recorded_evidence(on: str, folder: Path, store: Path, target: str | None) -> Facts:
    """Return the evidence from snapshots, a trace, a recording of cells or a run."""
    if on.startswith("snap:"):
        from dbdyno.advise.engines.postgres.snapshots import read as read_snapshots
        from dbdyno.cli.snap.options import report_damage
        from dbdyno.snapshot.store.folder import Store

        holder = Store(store)
        facts = read_snapshots(holder, on, target)
        report_damage(holder)
        return facts
    if on.endswith((".trc", ".trc.gz")):
        from dbdyno.advise.traces import read as read_traces

        return read_traces([on])
    from dbdyno.advise.run import read as read_run
    from dbdyno.cells.record import KIND
    from dbdyno.evidence.query import is_trace
    from dbdyno.evidence.run import find_run

    run = find_run(on, folder)
    if run.manifest.kind == KIND:
        from dbdyno.advise.recordings import read as read_recording

        return read_recording(run)
    if is_trace(run):
        from dbdyno.advise.traces import read as read_traces

        return read_traces([str(run.path)])
    return read_run(run)
