"""`dbdyno compare`: analyse one run again, or compare two runs or two sets of traces."""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dbdyno.base.errors import CellsError, TraceError
from dbdyno.base.limits import Number
from dbdyno.cli.output import FLAT, Output, echo_unchanged, folder_option, form_of, show_rows, write_text
from dbdyno.cli.pages import FORMATS, analysis_options, show_page, write_output
from dbdyno.cli.parameters import PATH, option_with_default
from dbdyno.evidence.run import Run, find_run

if TYPE_CHECKING:
    from dbdyno.study.analysis.contract.rows import Model
    from dbdyno.study.analysis.traces.options import ComparisonOptions

NAME_LONGEST = 24
CELLS = "cells"


@click.command("compare")
@click.argument("names", metavar="RUN|TRACES|SNAP [RUN|TRACES|SNAP]", nargs=-1, required=True)
@folder_option
@click.option("--event", metavar="NAME", help="Traces: judge only the waits for this event.")
@click.option(
    "--pair",
    metavar="REGEX",
    help="Traces: pair two files if this regular expression, or its group, matches the same text in both names, such "
    "as 'ms-(\\d+)'.",
)
@click.option("--merge-literals", is_flag=True, help="Traces: treat statements that differ only in literals as one.")
@option_with_default(
    "--think-time",
    default="1s",
    metavar="TIME",
    help="Traces: a wait for the client that takes this long or longer is think time.",
)
@option_with_default(
    "--threshold",
    type=Number(0.0001, 1),
    default=0.02,
    help="Smallest relative difference that matters, such as 0.02 for 2 %. For runs, the plan's threshold is used "
    "instead.",
)
@click.option(
    "--store",
    type=PATH,
    default=Path("snaps"),
    envvar="DBDYNO_SNAPS",
    help="Snapshots: folder that contains them (default: snaps).",
)
@click.option(
    "--accept-differences",
    is_flag=True,
    help="Give a verdict even if the periods come from two servers (snapshots), or if settings or versions differ "
    "(cells).",
)
@click.option(
    "--closed-loop",
    is_flag=True,
    help="Snapshots: the load came from sessions that never pause (a benchmark), so judge its throughput too.",
)
@click.option(
    "-m",
    "--mask",
    metavar="REGEX",
    help="Cells: compare only metrics whose whole name matches this regular expression.",
)
@click.option("--all", "everything", is_flag=True, help="Cells: also show metrics that do not differ.")
@analysis_options
def command(
    names: tuple[str, ...],
    folder: Path,
    event: str | None,
    pair: str | None,
    merge_literals: bool,
    think_time: str,
    threshold: float,
    store: Path,
    accept_differences: bool,
    closed_loop: bool,
    mask: str | None,
    everything: bool,
    output: Output,
) -> None:
    """Compare two runs, sets of traces, periods of snapshots, or recordings; or recompute one run.

    For two runs the base arms are compared; for everything else the second set is compared with the first.

    A set of traces is a folder, a file, a quoted pattern, or an imported run; a period of snapshots is
    snap:FIRST..LAST or snap:BASELINE; a recording is a run of `cells record`.

    Exit 1 if an arm is slower than the base or has no verdict because a check failed, when the second period is slower
    (the same statements take longer, sessions are blocked, work fails or was added), or when a metric of the second
    recording of cells is worse; 2 when every transaction of an arm failed.

    \b
    dbdyno compare last
    dbdyno compare before/ after/ -o verdict.html
    dbdyno compare good_ora_12.trc bad_ora_34.trc
    dbdyno compare before/ after/ --pair 'job-(\\d+)'
    dbdyno compare 'a/*.trc' 'b/*.trc' --event 'log file sync'
    dbdyno compare snap:1..12 snap:13..24
    """
    if len(names) > 2:
        raise click.UsageError(
            "compare takes one or two operands: quote a pattern, so that the shell does not expand it"
        )
    if any(name.startswith("snap:") for name in names):
        _compare_periods(names, store, (threshold, accept_differences, closed_loop), output)
        return
    sources = [_source(name, folder) for name in names]
    if any(isinstance(source, str) for source in sources):
        asked = (event, merge_literals, threshold, pair)
        _compare_traces(names, sources, asked, think_time, output)
        return
    runs = [source for source in sources if isinstance(source, Run)]
    if any(run.manifest.kind == CELLS for run in runs):
        shown = (threshold, mask, accept_differences, everything)
        _compare_cells(names, runs, shown, output)
        return
    _compare_runs(runs, output)


def _compare_runs(runs: list[Run], output: Output) -> None:
    from dbdyno.study.analysis.analyse import analyse
    from dbdyno.study.analysis.pair import analyse_pair

    analysis = analyse(runs[0]) if len(runs) == 1 else analyse_pair(*runs)
    show_analysis(analysis, output)
    end_with_verdict(analysis, "compare")


def _source(name: str, folder: Path) -> Run | str:
    """Return the run of an experiment, or for traces a name: an imported run, a file, a folder or a pattern."""
    path = Path(name)
    is_run = (path / "manifest.json").is_file()
    if not is_run and (path.exists() or glob.has_magic(name)):
        return name
    run = find_run(name, folder)
    return str(run.path) if run.manifest.kind == "trace" else run


def _compare_traces(
    names: tuple[str, ...],
    sources: list[Run | str],
    asked: tuple[str | None, bool, float, str | None],
    think_time: str,
    output: Output,
) -> None:
    from dbdyno.cli.trace.options import TraceSelection, end_with, open_selection
    from dbdyno.study.analysis.traces.compare import compare_traces
    from dbdyno.study.analysis.traces.options import ComparisonOptions

    paths = [source for source in sources if isinstance(source, str)]
    if len(paths) != 2:
        raise TraceError(
            "traces can be compared only with other traces",
            where=" ".join(names),
            next_step="name two sets of traces, or look at one set with `dbdyno trace profile`",
        )
    event, merge_literals, threshold, pair = asked
    base_side, other_side = (TraceSelection([path], think_time) for path in paths)
    with open_selection(base_side) as base, open_selection(other_side) as other:
        question: ComparisonOptions = ComparisonOptions(
            _short_names(names), event, merge_literals, threshold=threshold, pair=pair
        )
        analysis = compare_traces(base, other, question)
        show_analysis(analysis, output)
        end_with([*base.refused, *other.refused], [*base.broken, *other.broken])
    end_with_verdict(analysis, "compare")


def _compare_periods(
    names: tuple[str, ...],
    store: Path,
    asked: tuple[float, bool, bool],
    output: Output,
) -> None:
    from dbdyno.cli.snap.options import report_damage
    from dbdyno.judge.snapshots import compare
    from dbdyno.snapshot.reading.periods import period
    from dbdyno.snapshot.store.folder import Store

    if len(names) != 2:
        raise click.UsageError("name two periods, such as snap:1..12 snap:13..24")
    holder = Store(store)
    parts = [period(holder, name) for name in names]
    report_damage(holder)
    threshold, accept, closed_loop = asked
    model = compare(holder, *parts, threshold=threshold, decide=accept, closed_loop=closed_loop)
    show_page(model, output)
    if model["verdict"]["word"] == "worse":
        raise click.exceptions.Exit(1)


def _compare_cells(
    names: tuple[str, ...],
    runs: list[Run],
    asked: tuple[float, str | None, bool, bool],
    output: Output,
) -> None:
    from dbdyno.judge.cells_page import compare_page, recordings

    if len(runs) != 2 or any(run.manifest.kind != CELLS for run in runs):
        raise CellsError(
            "a recording of cells can be compared only with another recording",
            where=" ".join(names),
            next_step="name two recordings, or look at one with `dbdyno cells skew`",
        )
    threshold, mask, accept, everything = asked
    one, other = recordings((runs[0], runs[1]), _short_names(names), mask=mask)
    model = compare_page(one, other, threshold=threshold, decide=accept, everything=everything)
    if (output.form or (output.path.suffix.lower().removeprefix(".") if output.path else "")) in FLAT:
        show_rows(model["rows"], output)
    else:
        show_page(model, output)
    if model["verdict"]["word"] == "worse":
        raise click.exceptions.Exit(1)


def _short_names(names: tuple[str, ...]) -> tuple[str, str]:
    """Return short names of two sets: the shortest path ends that differ; long ones lose their common beginning."""
    parts = [Path(name).parts or (name,) for name in names[:2]]
    for length in range(1, max(len(part) for part in parts) + 1):
        short = [str(Path(*part[-length:])) for part in parts]
        if short[0] != short[1]:
            return _differing_ends(short[0], short[1])
    return f"{names[0]} (1)", f"{names[1]} (2)"


def _differing_ends(first: str, second: str) -> tuple[str, str]:
    """Return two names; if they are long, remove their common beginning up to its last separator."""
    if max(len(first), len(second)) <= NAME_LONGEST:
        return first, second
    pairs = zip(first, second, strict=False)
    common = first[: next((at for at, (a, b) in enumerate(pairs) if a != b), min(map(len, (first, second))))]
    cut = max(common.rfind(sign) for sign in "_-./ ") + 1
    return first[cut:], second[cut:]


def end_with_verdict(analysis: Model, command: Literal["run", "compare"]) -> None:
    """Exit with the verdict's exit code unless it is 0."""
    from dbdyno.base.decisions import exit_code

    if code := exit_code(analysis["verdict"], command):
        raise click.exceptions.Exit(code)


def requested_form(output: Output) -> str:
    """Return the output form of a verdict, given by name or else by the suffix of the file.

    Raises:
        Error: the suffix does not stand for any form.
    """
    return form_of(output, (*FORMATS, "junit"))


def show_analysis(analysis: Mapping[str, Any], output: Output) -> None:
    """Write an analysis in the requested form, given by name or else by the suffix of the file."""
    kind, path = requested_form(output), output.path
    from dbdyno.report.flat import rows
    from dbdyno.report.html import render_html, write_html

    if kind == "html" and path is not None:
        write_html(analysis, path)
        click.echo(str(path))
    elif kind == "html":
        echo_unchanged(render_html(analysis) + "\n")
    elif kind == "markdown":
        from dbdyno.report.markdown import render_markdown

        write_output(render_markdown(analysis), path)
    elif kind == "junit":
        from dbdyno.report.junit import render_junit

        write_output(render_junit(analysis), path)
    elif kind == "json":
        text = json.dumps(analysis, indent=1, ensure_ascii=False) + "\n"
        if path is None:
            echo_unchanged(text)
        else:
            write_text(path, text)
    elif kind == "table" and path is None:
        print_analysis(analysis)
    elif kind == "table" and path is not None:
        from dbdyno.report.terminal import render_text

        write_text(path, render_text(analysis, width=100, color=False))
    else:
        show_rows(rows(analysis), output.as_form(kind))


def print_analysis(analysis: Mapping[str, Any]) -> None:
    """Print the essentials of an analysis to stdout, in colour on a terminal."""
    from dbdyno.report.terminal import render_text

    terminal = sys.stdout.isatty()
    color = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns if terminal else 100
    echo_unchanged(render_text(analysis, width=width, color=color))
