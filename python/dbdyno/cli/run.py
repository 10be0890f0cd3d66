"""`dbdyno run`: a study or a plan, from the first connection to the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno import visible
from dbdyno.cli.cells_options import way_options
from dbdyno.cli.output import share_option
from dbdyno.errors import PlanError

if TYPE_CHECKING:
    from dbdyno.evidence import Run
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.run.progress import Progress


@click.command("run")
@click.argument("what", required=False, metavar="STUDY|PLAN.toml")
@click.option(
    "--target",
    help="postgres (embedded), postgresql://user@host/db, model:NAME, model:FILE.toml, host, or cells:HOST1,HOST2.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a factor; on a model also a parameter of the machine: PATH=V1,V2.",
)
@click.option("--blocks", type=click.IntRange(2, 100_000), help="Blocks that count.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Replays an order of arms.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder for the run.",
)
@share_option
@click.option("--quick", is_flag=True, help="A short run: fewer blocks, wider intervals.")
@click.option("--aa", is_flag=True, help="One arm against itself: the noise floor.")
@click.option("--resume", "resume_name", metavar="RUN", help="Finish a run that was cut short.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, do nothing.")
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    help="Do not ask before the plan of cells is changed, or a run from elsewhere is resumed.",
)
@way_options
def command(
    what: str | None,
    target: str | None,
    settings: tuple[str, ...],
    blocks: int | None,
    seed: int | None,
    out: Path,
    quick: bool,
    aa: bool,
    resume_name: str | None,
    dry_run: bool,
    yes: bool,
    **ways: Any,
) -> None:
    """Run a study or a plan: arms in random order, every latency kept, a verdict at the end. Exit 1
    when a check failed that withholds the verdict, 2 when every transaction of an arm failed.

    \b
    dbdyno run redo-size                      a built-in study on an embedded engine
    dbdyno run redo-size --target model:exadata-x2    the same study in virtual time
    dbdyno run plan.toml                      a plan of your own (see dbdyno plan new)
    dbdyno run --aa plan.toml                 the noise floor of that plan
    dbdyno run --resume RUN                   what an interrupted run has not yet run
    dbdyno run flash-log --target cells:@cell_group --set database=SALES    on storage cells
    """
    from dbdyno.cli.run_cells import INTERRUPTED, plan_on_cells, resume_on_cells, start_on_cells
    from dbdyno.study.plan.cells import is_cells
    from dbdyno.study.run.progress import for_stream
    from dbdyno.study.run.stopping import Interrupted

    cut = None if resume_name is None else _cut(what, resume_name, out)
    on_cells = is_cells(target) if cut is None else "iorm" in cut.manifest
    progress = for_stream()
    try:
        if cut is not None and on_cells:
            run = resume_on_cells(cut, target, ways, progress, dry_run, yes)
        elif on_cells:
            plan = plan_on_cells(what, target or "", _options(settings), quick, blocks, aa)
            run = start_on_cells(plan, ways, out, progress, seed, dry_run, yes)
        elif dry_run:
            click.echo(_foretold(what, settings, target, quick, blocks, aa, cut), nl=False)
            return
        elif cut is not None:
            run = _resume(cut, target, progress, yes)
        else:
            run = _start(what, settings, target, quick, blocks, aa, out, seed, progress)
    except Interrupted as stop:
        progress.end()
        click.echo(INTERRUPTED if on_cells else _INTERRUPTED, err=True)
        raise click.exceptions.Exit(130) from stop
    if run is not None:
        show(run)


_INTERRUPTED = (
    "interrupted: the engine is as it was; whole blocks are kept; "
    "`dbdyno runs` lists the run, `dbdyno run --resume last` finishes it"
)


def _foretold(
    what: str | None,
    settings: tuple[str, ...],
    target: str | None,
    quick: bool,
    blocks: int | None,
    aa: bool,
    cut: Run | None,
) -> str:
    """What a run on an engine or a model would do."""
    from dbdyno.study.plan.check import describe

    if target == "host" or cut is not None:
        raise PlanError(
            "foretells a new run on an engine, a model or cells",
            where="--dry-run",
            next_step="a run on this host changes nothing but files of its own",
        )
    return describe(_plan(what, settings, target, quick, blocks, aa))


def _start(
    what: str | None,
    settings: tuple[str, ...],
    target: str | None,
    quick: bool,
    blocks: int | None,
    aa: bool,
    out: Path,
    seed: int | None,
    progress: Progress,
) -> Run:
    """A new run: of log writers on this host, or of a plan on an engine or a model."""
    if target == "host":
        from dbdyno.study.plan.host import host_study
        from dbdyno.study.run.host import start_on_host

        on_host = host_study(what or "", _options(settings), quick=quick, blocks=blocks)
        return start_on_host(on_host.same_twice() if aa else on_host, out, progress, seed=seed)
    from dbdyno.study.run.execute import start

    plan = _plan(what, settings, target, quick, blocks, aa)
    return start(plan, out, progress, seed=seed)


def _cut(what: str | None, name: str, out: Path) -> Run:
    from dbdyno.evidence import find_run

    if what is not None:
        raise PlanError("--resume takes the run alone, without a plan")
    return find_run(name, out)


def _resume(run: Run, target: str | None, progress: Progress, yes: bool) -> Run:
    from dbdyno.cli.cells_options import confirm
    from dbdyno.study.run.execute import orders, refuse_ended, resume

    refuse_ended(run)
    asked = orders(run, target)
    if asked:
        click.echo(f"{run.id} comes from elsewhere or was changed. Going on with it:", err=True)
        for order in asked:
            click.echo(f"  {visible.line(order, 400)}", err=True)
        if not yes:
            confirm()
    return resume(run, progress, target=target, agreed=bool(asked))


def _plan(
    what: str | None,
    settings: tuple[str, ...],
    target: str | None,
    quick: bool,
    blocks: int | None,
    aa: bool,
) -> Plan:
    from dbdyno.study.run.execute import same_twice

    if what is None:
        raise PlanError(
            "name a study or a plan file",
            next_step="`dbdyno studies` lists studies, `dbdyno plan new` writes a plan",
        )
    plan = _read(what, settings, quick, target)
    if blocks:
        plan = replace(plan, schedule=replace(plan.schedule, blocks=blocks))
    return same_twice(plan) if aa else plan


def _read(what: str, settings: tuple[str, ...], quick: bool, target: str | None) -> Plan:
    """The plan of a study or a file, on `target` where it is named."""
    from dbdyno.study.plan.plan import on_target

    if what.endswith(".toml") or "/" in what:
        from dbdyno.study.plan.file import read_plan

        if settings:
            raise PlanError("--set changes a study's factors; a plan's values stand in its file")
        plan = read_plan(Path(what))
        schedule = plan.schedule
        if quick:
            schedule = replace(schedule, blocks=min(schedule.blocks, 8), warmup_blocks=1)
        return on_target(replace(plan, schedule=schedule), target)
    from dbdyno.study.library import find_study

    return find_study(what).plan(_options(settings), quick=quick, target=target)


def _options(settings: tuple[str, ...]) -> dict[str, str]:
    options = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise PlanError(f"{setting!r} is not NAME=VALUE", where="--set")
        options[name] = value
    return options


def show(run: Run) -> None:
    """Analyses a run, writes its report, and prints the verdict; exit 1 where there is none because
    a check failed, 2 where every transaction of an arm failed."""
    from dbdyno.cli.compare import end_with_verdict, print_analysis
    from dbdyno.report.html import write_html
    from dbdyno.study.analysis.analyse import analyse

    analysis = analyse(run)
    report = run.path / "report.html"
    write_html(analysis, report)
    print_analysis(analysis)
    click.echo(f"report: {report}")
    end_with_verdict(analysis, "run")
