"""Parts shared by the commands on traces: options, opening of files, progress, output, exit codes."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import click

from dbdyno.base.escaping import unwrap_stream
from dbdyno.base.limits import Count, Number
from dbdyno.cli.output import Output, show_line
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import F, option_group, option_with_default

if TYPE_CHECKING:
    from dbdyno.trace.job import Options, Progress
    from dbdyno.trace.source import Traces

SHOWN_S = 1.0
"""Time between two lines about a program that runs [s]."""
_UNIT = "dbdyno.trace.tim_unit_ns"

files_argument = click.argument("files", nargs=-1, required=True, metavar="FILES")

fold_option = option_with_default(
    "--share",
    type=Number(0, 100),
    default=0.5,
    metavar="PERCENT",
    help="In trees, collapse branches that take less than this percentage of the time; 0 shows all.",
)


def _keep_unit(context: click.Context, _: click.Parameter, text: str | None) -> None:
    from dbdyno.trace.units import length_ns

    if text:
        context.meta[_UNIT] = length_ns(text, "--tim-unit")


reading_options = option_group(
    option_with_default(
        "--think-time",
        default="1s",
        metavar="TIME",
        help="A wait for the client that takes this long or longer is think time.",
    ),
    click.option(
        "--tim-unit",
        metavar="TIME",
        expose_value=False,
        callback=_keep_unit,
        help="Unit of the trace's times, if its header and timestamps do not state it correctly: 1us, 1.024us (9i), "
        "10ms (8i).",
    ),
)
"""Adds --think-time and --tim-unit, which control how commands read FILES; `options_of` returns both."""
selection_options = option_group(
    click.option(
        "--where", metavar="CONDITION", help="Use only rows that match this condition, such as \"module = 'app'\"."
    ),
    click.option("--from", "begin", metavar="TIME", help="Use only calls and waits that end at or after this time."),
    click.option("--to", "end", metavar="TIME", help="Use only calls and waits that begin before this time."),
    click.option("--depth", type=Count(0), help="Use only calls up to this recursion depth."),
)
"""Adds --where, --from, --to and --depth, which select calls and waits."""


@dataclass(frozen=True)
class TraceSelection:
    """The trace files that a command reads, how it reads them, and the calls and waits that it selects."""

    files: Sequence[str]
    think_time: str
    where: str | None = None
    begin: str | None = None
    end: str | None = None
    depth: int | None = None


def whole_traces(function: F) -> F:
    """Add FILES and the options for reading and for the page; the command gets a `TraceSelection`, form, output."""

    @functools.wraps(function)
    def command(files: tuple[str, ...], think_time: str, **rest: Any) -> None:
        function(TraceSelection(files, think_time), **rest)

    return cast("F", files_argument(reading_options(page_options(command))))


def selected_traces(function: F) -> F:
    """Add what `whole_traces` adds, and the options that select calls and waits."""

    @functools.wraps(function)
    def command(
        chosen: TraceSelection, where: str | None, begin: str | None, end: str | None, depth: int | None, **rest: Any
    ) -> None:
        function(TraceSelection(chosen.files, chosen.think_time, where, begin, end, depth), **rest)

    return selection_options(whole_traces(cast("F", command)))


def options_of(think_time: str, *, binds: bool = False) -> Options:
    """Return the options with which traces are read, from the command line."""
    from dbdyno.trace.job import Options
    from dbdyno.trace.units import length_ns

    context = click.get_current_context(silent=True)
    unit = context.meta.get(_UNIT) if context else None
    return Options(length_ns(think_time, "--think-time"), binds, tim_unit_ns=unit)


def time_range(begin: str | None, end: str | None) -> tuple[int | None, int | None]:
    """Return the values of --from and --to in ns since 1970, None for those that are missing."""
    from dbdyno.trace.units import moment_ns

    return (
        moment_ns(begin, "--from") if begin else None,
        moment_ns(end, "--to") if end else None,
    )


@contextlib.contextmanager
def open_selection(chosen: TraceSelection, *, binds: bool = False) -> Iterator[Traces]:
    """Open the traces restricted to the selection, report refused files, and yield the traces."""
    from dbdyno.trace.conditions import restrict
    from dbdyno.trace.source import open_traces

    with progress() as shown, open_traces(chosen.files, options_of(chosen.think_time, binds=binds), shown) as traces:
        if shown is not None:
            shown(0, 0)
        report_refused(traces.refused)
        from_ns, to_ns = time_range(chosen.begin, chosen.end)
        restrict(traces, where=chosen.where, from_ns=from_ns, to_ns=to_ns, depth=chosen.depth)
        yield traces


def show_traces(
    chosen: TraceSelection,
    page_of: Callable[[Traces], Mapping[str, Any]],
    output: Output,
    *,
    binds: bool = False,
) -> None:
    """Show the page of the traces; exit with 2 if some of them could not be read."""
    with open_selection(chosen, binds=binds) as traces:
        show_page(page_of(traces), output)
        end_with(traces.refused, traces.broken, traces.torn)


def wait_for(
    is_over: Callable[[], bool],
    line: Callable[[], str | None],
    *,
    look: Callable[[], object] = lambda: None,
    every_s: float = 0.1,
) -> None:
    """Wait until a program ends or Ctrl-C, checking it now and then; on a terminal show a line each second."""
    shows, shown_at = sys.stderr.isatty(), time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        while not is_over():
            time.sleep(every_s)
            look()
            if shows and time.monotonic() - shown_at >= SHOWN_S:
                shown_at = time.monotonic()
                if (text := line()) is not None:
                    show_line(text)
    if shows:
        show_line()


def report_refused(refused: Sequence[dict[str, str]]) -> None:
    """Print a line for each file that could not be read."""
    from dbdyno.trace.names import refusal

    for entry in refused:
        click.echo(f"dbdyno: {refusal(entry)}", err=True)


def end_with(refused: Sequence[Any], broken: Sequence[Any] = (), torn: int = 0) -> None:
    """Exit with 2 if some input failed (a file, a part or a record); the rest has been processed."""
    if refused or broken or torn:
        raise click.exceptions.Exit(2)


@contextlib.contextmanager
def progress() -> Iterator[Progress | None]:
    """Yield a function that shows the reading progress on stderr, or None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    started = time.monotonic()
    written = False

    def show(done: int, total: int) -> None:
        nonlocal written
        seconds = time.monotonic() - started
        if total <= 0:
            text = ""
        elif seconds < 0.5:
            return
        else:
            text = f"reading {done / total:4.0%}, {done / seconds / 1e6:.0f} MB/s"
        if text or written:
            unwrap_stream(sys.stderr).write(f"\r{text:<40}" + ("\r" if not text else ""))
            sys.stderr.flush()
            written = bool(text)

    try:
        yield show
    finally:
        show(0, 0)
