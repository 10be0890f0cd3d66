"""`dbdyno run`: a study or a plan, from the first connection to the report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base import escaping
from dbdyno.base.errors import PlanError
from dbdyno.cli.cells.options import access_options
from dbdyno.cli.fail_on import NAMES, fail_on_option, met_conditions
from dbdyno.cli.output import Output, out_option, seed_option, share_option
from dbdyno.cli.pages import analysis_options
from dbdyno.cli.spread_options import spread_options, workers_of

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run
    from dbdyno.study.analysis.contract.rows import Model
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.run.progress import Progress


@click.command("run")
@click.argument("what", required=False, metavar="STUDY|PLAN.toml")
@click.option(
    "--target",
    help="What to run on: postgres or mariadb (embedded), postgres+device:NAME (on a modelled device), "
    "postgresql://user@host/db, mariadb://user@host/db, model:NAME, model:FILE.toml, host, or cells:HOST1,HOST2.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a factor. On a model, also a parameter of the machine: PATH=V1,V2. On a modelled device, also wal=, "
    "data= or a parameter of the device.",
)
@click.option(
    "--build",
    "builds",
    multiple=True,
    metavar="NAME=DIR",
    help="Make one arm per build from the plan's only arm; {build} in the plan stands for the build's folder.",
)
@click.option("--blocks", type=click.IntRange(2, 100_000), help="Number of measured blocks.")
@seed_option
@out_option
@share_option
@click.option("--quick", is_flag=True, help="Run fewer blocks, which gives wider intervals.")
@click.option("--full", is_flag=True, help="Run three times the blocks; a study also uses larger data.")
@click.option("--aa", is_flag=True, help="Compare one arm with itself, to measure the noise floor.")
@click.option("--resume", "resume_name", metavar="RUN", help="Finish a run that was interrupted.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; change nothing.")
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    help="Do not ask before changing the IORM plan of cells, or before resuming a run that was made elsewhere.",
)
@fail_on_option(NAMES, "Also exit 1 if an arm is slower, if the run cannot tell, or if any gate failed.")
@analysis_options
@spread_options
@access_options
def command(
    what: str | None,
    target: str | None,
    settings: tuple[str, ...],
    builds: tuple[str, ...],
    blocks: int | None,
    seed: int | None,
    out: Path,
    quick: bool,
    full: bool,
    aa: bool,
    resume_name: str | None,
    dry_run: bool,
    yes: bool,
    fail_on: tuple[str, ...],
    output: Output,
    scheduler: str | None,
    hosts: tuple[str, ...],
    **ways: Any,
) -> None:
    """Run a study or a plan: arms in random order, every latency kept, a verdict at the end.

    Exit 1 if a check withholds the verdict or a condition of --fail-on is met; 2 if every transaction of an arm failed.

    \b
    dbdyno run redo-size                      a built-in study on an embedded engine
    dbdyno run redo-size --target model:exadata-x2    the same study in virtual time
    dbdyno run redo-size --target postgres+device:gp3 --set wal=gp3,io2    a real engine on modelled devices
    dbdyno run plan.toml                      a plan of your own (see dbdyno plan new)
    dbdyno run --aa plan.toml                 the noise floor of that plan
    dbdyno run --resume RUN                   what an interrupted run has not yet run
    dbdyno run flash-log --target cells:@cell_group --set database=SALES    on storage cells
    dbdyno run redo-size --target model:exadata-x2 --scheduler tcp://desk:8786    blocks on many hosts
    dbdyno run plan.toml --fail-on slower -o verdict.md    in a build: a comment, and its exit code
    dbdyno run plan.toml --build base=../base --build change=.    two builds of a program
    """
    from dbdyno.base.signals import Interrupted
    from dbdyno.cli.cells.options import access_of
    from dbdyno.cli.compare import requested_form
    from dbdyno.study.run.progress import progress_for

    requested_form(output)  # before anything is run
    cut = None if resume_name is None else _cut(what, resume_name, out)
    plan = (
        None
        if cut is not None
        else _plan(*(what, _options(settings), target, _length(quick, full), blocks, aa, _builds(builds)))
    )
    reached = {"reach": lambda: access_of(ways), "user": ways["user"]}
    if dry_run:
        click.echo(_preview(plan, cut, target, out, reached), nl=False)
        return
    progress = progress_for()
    try:
        with workers_of(scheduler, hosts) as workers:
            run = _carried_out(plan, cut, target, out, seed, progress, {**reached, "workers": workers}, yes)
    except Interrupted as stop:
        progress.end()
        click.echo(_interruption_note(plan, cut), err=True)
        raise click.exceptions.Exit(130) from stop
    show(run, output, fail_on)


def _interruption_note(plan: Plan | None, cut: Run | None) -> str:
    from dbdyno.bench.kinds import kind_named, kind_of

    kind = kind_of(plan.dsn) if plan is not None else kind_named(cut.manifest.bench if cut else "")
    traits = kind.load_bench().traits
    goes_on = "" if traits.refuses_resume else ", `dbdyno run --resume last` finishes it"
    return f"interrupted: {traits.interrupted}; complete blocks are kept; `dbdyno runs` lists the run{goes_on}"


def _carried_out(
    plan: Plan | None,
    cut: Run | None,
    target: str | None,
    out: Path,
    seed: int | None,
    progress: Progress,
    ways: dict[str, object],
    yes: bool,
) -> Run:
    """Start a new run, or finish an interrupted one, and return it."""
    from dbdyno.study.run.execute import Declined, resume, start

    agree = None if yes else _ask
    try:
        if cut is not None:
            agreed = _agreed_to(cut, target, yes)
            return resume(cut, progress, target=target, ways=ways, agree=agree, agreed=agreed)
        assert plan is not None
        return start(plan, out, progress, seed=seed, ways=ways, agree=agree)
    except Declined as no:
        raise click.exceptions.Exit(2) from no


def _agreed_to(cut: Run, target: str | None, yes: bool) -> bool:
    """Show what resuming a changed run, or another user's, would do, and ask; return True if anything was shown."""
    from dbdyno.cli.cells.options import confirm
    from dbdyno.study.run.execute import plan_to_resume, side_effects

    plan_to_resume(cut)
    asked = side_effects(cut, target)
    if asked:
        click.echo(f"{cut.id} comes from elsewhere or was changed. Continuing it:", err=True)
        for order in asked:
            click.echo(f"  {escaping.escape_line(order, 400)}", err=True)
        if not yes:
            confirm()
    return bool(asked)


def _ask(page: str) -> bool:
    """Show what would be done, and ask; end the command if the answer is no."""
    from dbdyno.cli.cells.options import confirm

    click.echo(page, nl=False, err=True)
    confirm()
    return True


def _preview(plan: Plan | None, cut: Run | None, target: str | None, out: Path, ways: dict[str, object]) -> str:
    """Return a description of what a run would do."""
    from dbdyno.study.run.check import describe, describe_resume

    if cut is not None:
        return describe_resume(cut, target, ways)
    assert plan is not None
    return describe(plan, ways=ways, folder=out)


def _cut(what: str | None, name: str, out: Path) -> Run:
    from dbdyno.evidence.run import find_run

    if what is not None:
        raise PlanError("--resume and a plan exclude each other: leave the plan out")
    return find_run(name, out)


def _plan(
    what: str | None,
    options: dict[str, str],
    target: str | None,
    length: str,
    blocks: int | None,
    aa: bool,
    builds: dict[str, Path],
) -> Plan:
    from dbdyno.study.run.execute import aa_plan

    if what is None:
        raise PlanError(
            "expected a study or a plan file",
            next_step="list the studies with `dbdyno studies`, or write a plan with `dbdyno plan new`",
        )
    plan = _read(what, options, length, target, builds)
    if blocks:
        plan = replace(plan, schedule=replace(plan.schedule, blocks=blocks))
    return aa_plan(plan) if aa else plan


def _length(quick: bool, full: bool) -> str:
    """Return the run length that the options select: "quick", "full" or ""."""
    if quick and full:
        raise PlanError("--quick and --full exclude each other", next_step="give one of the two")
    return "quick" if quick else "full" if full else ""


def _builds(given: tuple[str, ...]) -> dict[str, Path]:
    """Return the folders of builds by name.

    Raises:
        PlanError: a text is not of the form NAME=DIR, or the folder does not exist.
    """
    found: dict[str, Path] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not (equals and name.strip()) or name in found or not Path(folder).is_dir():
            step = "write --build base=../base --build change=. with folders that exist, each name once"
            raise PlanError(f"{text!r} is not NAME=DIR", where="--build", next_step=step)
        found[name] = Path(folder)
    return found


def _read(what: str, options: dict[str, str], length: str, target: str | None, builds: dict[str, Path]) -> Plan:
    """Return the plan that a study or a file defines, for `target` if that is given."""
    from dbdyno.study.plan.study import full_plan
    from dbdyno.study.plan.targets import HOST, plan_on_target, refuse_without_plans

    if what.endswith(".toml") or "/" in what:
        from dbdyno.study.plan.builds import plan_of_builds
        from dbdyno.study.plan.devices import plan_on_devices
        from dbdyno.study.plan.file import read_plan

        if target != HOST:  # where a plan may have commands
            refuse_without_plans(target, what)
        plan = plan_of_builds(Path(what), builds) if builds else read_plan(Path(what))
        schedule = plan.schedule
        if length == "quick":
            schedule = replace(schedule, blocks=min(schedule.blocks, 8), warmup_blocks=1)
        plan = plan_on_target(replace(plan, schedule=schedule), target)
        if options and not any(map(plan.device_of, plan.arms)):
            raise PlanError("--set changes only the factors of a study: change the values of a plan in its file")
        plan = plan_on_devices(plan, options)
        return full_plan(plan) if length == "full" else plan
    from dbdyno.study.library import find_study

    if builds:
        raise PlanError("a study has no builds", where=what, next_step="name a plan file with {build} in it")
    return find_study(what).plan(options, quick=length == "quick", full=length == "full", target=target)


_PARTS = re.compile(r",(?=(?:data|wal)(?:\.\w+)?=)")
"""Pattern that finds where the second setting begins in a text such as `wal=io2,data=gp3`."""


def _options(settings: tuple[str, ...]) -> dict[str, str]:
    options = {}
    for setting in [one for text in settings for one in _PARTS.split(text)]:
        name, equals, value = setting.partition("=")
        if not equals:
            raise PlanError(
                f"{setting!r} is not NAME=VALUE", where="--set", next_step="write for example --set sessions=8"
            )
        options[name] = value
    return options


def run_plan(plan: Plan, out: Path) -> Run:
    """Run a plan and return the new run; after Ctrl-C the command exits with code 130."""
    from dbdyno.base.signals import Interrupted
    from dbdyno.study.run.execute import start
    from dbdyno.study.run.progress import progress_for

    progress = progress_for()
    try:
        return start(plan, out, progress)
    except Interrupted as stop:
        progress.end()
        click.echo(_interruption_note(plan, None), err=True)
        raise click.exceptions.Exit(130) from stop


def show(run: Run, output: Output, fail_on: tuple[str, ...] = ()) -> None:
    """Analyse a run, write its report, and print the verdict in the requested form.

    The command exits with 1 if there is no verdict because a check failed, or if a condition of `fail_on` is met, and
    with 2 if every transaction of an arm failed.
    """
    from dbdyno.cli.compare import end_with_verdict

    analysis = write_report(run, output)
    end_with_verdict(analysis, "run")
    if fail_on and (said := met_conditions(run, analysis, fail_on)):
        click.echo(f"--fail-on: {'; '.join(said)}", err=True)
        raise click.exceptions.Exit(1)


def write_report(run: Run, output: Output) -> Model:
    """Analyse a run, write its report and print the verdict; return the analysis."""
    from dbdyno.cli.compare import show_analysis
    from dbdyno.report.html import write_html
    from dbdyno.study.analysis.analyse import analyse

    analysis = analyse(run)
    report = run.path / "report.html"
    write_html(analysis, report)
    show_analysis(analysis, output)
    # Output for a program must be alone on stdout.
    click.echo(f"report: {report}", err=output.form not in (None, "table"))
    return analysis
