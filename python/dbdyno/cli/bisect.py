"""`dbdyno bisect`: find the commit that made a program slower."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.limits import Number
from dbdyno.cli.output import Output, out_option, seed_option
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import FILE, FOLDER, option_with_default


@click.command("bisect")
@click.argument("plan", metavar="PLAN.toml", type=FILE)
@click.option("--good", required=True, metavar="COMMIT", help="A commit that was fast enough.")
@option_with_default("--bad", default="HEAD", metavar="COMMIT", help="A later commit that is slower.")
@click.option(
    "--build",
    "build",
    default="",
    metavar="COMMAND",
    help="Shell command that builds the program; it is run in the top folder of a worktree.",
)
@click.option(
    "--repository",
    type=FOLDER,
    default=Path(),
    metavar="DIR",
    help="The git repository (default: the one that contains the current folder).",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="Metric to compare: throughput, mean, p50, p90, p99 or p99.9 (default: the plan's metric).",
)
@option_with_default(
    "--blocks", type=click.IntRange(6, 100_000), default=100, help="Maximum number of blocks per test."
)
@option_with_default(
    "--error", "alpha", type=Number(0.0001, 0.5), default=0.05, help="Maximum probability that the answer is wrong."
)
@click.option(
    "--cache",
    type=FOLDER,
    metavar="DIR",
    help="Folder for the builds (default: a folder per repository in ~/.cache/dbdyno/builds).",
)
@click.option("--clean", is_flag=True, help="At the end, remove the builds of this repository from the cache.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; change nothing.")
@out_option
@seed_option
@page_options
def command(
    plan: Path,
    good: str,
    bad: str,
    build: str,
    repository: Path,
    metric: str | None,
    blocks: int,
    alpha: float,
    cache: Path | None,
    clean: bool,
    dry_run: bool,
    out: Path,
    seed: int | None,
    output: Output,
) -> None:
    """Find the commit, between a good and a bad one, that made a program slower or faster.

    PLAN has one arm and names the folder of a build as {build}, in a command, a script, a variable, or in the server of
    the arm. Each commit is built once, in a separate git worktree, and kept for the next search; a commit that does not
    build or run is skipped. A test runs good, bad and tested commit in the same blocks, in random order, and ends as
    soon as it can tell. Of merges, only the first parents are searched.

    Exit 0 if one commit was found, 1 if several remain or it is not known whether the two ends differ.

    \b
    dbdyno bisect plan.toml --good v1.4 --bad HEAD --build 'make -j4'
    dbdyno bisect plan.toml --good 3f2a91c --build './configure && make' -o bisect.html
    """
    from dbdyno.base.signals import Interrupted
    from dbdyno.builds.bisect.cache import BuildCache, default_cache
    from dbdyno.builds.bisect.commits import first_parent_chain
    from dbdyno.builds.bisect.measure import Laboratory
    from dbdyno.builds.bisect.search import CommitSearch
    from dbdyno.stats.bisection import Bisection
    from dbdyno.stats.metrics import metric_named
    from dbdyno.study.run.progress import progress_for

    if metric is not None:
        metric_named(metric)
    commits = first_parent_chain(repository, good, bad)
    progress = progress_for()
    folder = cache if cache is not None else default_cache(repository)
    builds = BuildCache(repository, folder.absolute(), build, progress.note)
    laboratory = Laboratory(plan, out, blocks, progress, seed, metric)
    if dry_run:
        planned = Bisection(len(commits), alpha).planned_tests + 1
        click.echo(f"{len(commits)} commits from {commits[0].short} to {commits[-1].short}: about {planned} tests")
        click.echo(f"builds in {folder}: {build or 'nothing to build'}\nnothing was built or run")
        return
    try:
        with builds.locked():
            model = CommitSearch(commits, builds, laboratory, alpha).run(str(plan))
            if clean:
                builds.clear()
    except Interrupted as stop:
        progress.end()
        click.echo("interrupted: builds are kept for the next search", err=True)
        raise click.exceptions.Exit(130) from stop
    if output.path is not None:
        click.echo(model["verdict"]["headline"], err=True)
    show_page(model, output)
    if len(model["suspects"]) != 1:
        raise click.exceptions.Exit(1)
