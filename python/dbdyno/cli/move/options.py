"""Options shared by the commands of `dbdyno move`: sizes, workers, progress."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from dbdyno.base.errors import MoveError
from dbdyno.base.escaping import unwrap_stream
from dbdyno.cli.parameters import FILE, FOLDER, option_group, option_with_default
from dbdyno.move.reading.progress import Show
from dbdyno.move.reading.run import MEMORY_BYTES, JobOptions

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZE = re.compile(r"\s*+(\d++(?:\.\d++)?)\s*+([kmg]?i?b?)\s*+", re.IGNORECASE)
STEP_S = 0.5


class Size(click.ParamType[int]):
    """A number of bytes with a unit: 64MB, 1.5GiB; a rate may end in /s."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the value to bytes."""
        if isinstance(value, int):
            return value
        text = str(value).removesuffix("/s")
        found = _SIZE.fullmatch(text)
        unit = found[2].lower() if found else ""
        unit = unit if unit.endswith("b") or not unit else f"{unit}b"
        size = round(float(found[1]) * _UNITS[unit]) if found and unit in _UNITS else 0
        if size <= 0:
            self.fail(f"{value!r} is not a size: write 64MB, 1GiB or a number of bytes", param, ctx)
        return size


def job_folder(other_options: Mapping[str, Any]) -> Path:
    """Return the job's folder: the one given by --job, or a new one in jobs/, which is reported on stderr."""
    if other_options["job"] is not None:
        return Path(other_options["job"])
    table = next(iter(other_options["tables"]), "") or "tables"
    name = re.sub(r"\W+", "_", table).strip("_")[:40] or "tables"
    folder = Path("jobs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}"
    folder.parent.mkdir(exist_ok=True)
    say(f"job: {folder}; if it is interrupted: dbdyno move resume {folder}")
    return folder


worker_options = option_group(
    option_with_default(
        "--workers",
        type=click.IntRange(1, 64),
        default=2,
        help="Number of workers; each has a session of its own.",
    ),
    click.option(
        "--memory",
        type=Size(),
        default=MEMORY_BYTES,
        help="Memory for the rows of all workers together [256MiB].",
    ),
    click.option("--rate-limit", type=Size(), help="Rate limit for all workers together, such as 50MB/s."),
)
"""Adds --workers, --memory and --rate-limit."""


job_argument = click.argument("job", type=FOLDER)
verify_option = option_with_default(
    "--verify",
    "level",
    type=click.Choice(["counts", "files", "source", "target"]),
    default="counts",
    help="What to verify at the end. counts: compare row counts; files: also read the files again; source: also read "
    "the source again in the same snapshot, or for a load the staged rows; target: also read the loaded rows before "
    "the commit.",
)

result_option = click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json")),
    help="Output format for a job that moves a whole database (--database) [text].",
)


load_options = option_group(
    click.option(
        "--mode",
        type=click.Choice(["insert", "replace", "replace-partitions", "update", "merge"]),
        help="How to load rows into a table. insert: add them; replace: empty the table first; "
        "replace-partitions: replace each partition that receives rows; update: change rows with the same key; "
        "merge: change them and add the others.",
    ),
    click.option(
        "--key",
        help="Columns that identify a row, comma-separated: for --mode update and merge; into Cassandra, the "
        "partition key.",
    ),
    click.option("--create", is_flag=True, help="Create the table from the types recorded in the files."),
    click.option(
        "--defer-indexes",
        is_flag=True,
        help="Drop indexes and constraints first and create them again at the end, in the same transaction.",
    ),
    click.option(
        "--rejects",
        type=FILE,
        help="File to create for rejected rows; each is written with its position and the reason.",
    ),
    click.option(
        "--max-rejects",
        type=click.IntRange(1, 1_000_000),
        help="Stop the load after this number of rejected rows [100].",
    ),
)
"""Adds the options for loading."""


def job_options(workers: int, memory: int, rate_limit: int | None, piece: int | None = None) -> JobOptions:
    """Return the options for the work on a job, including a progress display if stderr is a terminal."""
    return JobOptions(workers, memory, rate_limit, piece, progress=meter(), say=say)


def meter() -> Show | None:
    """Return a progress display that starts now, or None if stderr is not a terminal."""
    return _Progress() if sys.stderr.isatty() else None


@contextlib.contextmanager
def report_interruption(folder: Path) -> Iterator[None]:
    """If a signal ends the work on a job, report what is kept and how to resume the job."""
    try:
        yield
    except KeyboardInterrupt as stop:
        from dbdyno.move.ledger.folder import Ledger
        from dbdyno.move.ledger.next_steps import resume_command

        try:
            next_step = f"next: `{resume_command(Ledger.open(folder))}`"
        except MoveError:
            raise KeyboardInterrupt("the job had not begun") from stop
        raise KeyboardInterrupt(f"finished chunks are kept; {next_step}") from stop


def say(line: str) -> None:
    """Print a line to stderr, so that it is not mixed with data on stdout."""
    click.echo(line, err=True)


class _Progress:
    """One progress line on a terminal: share done, bytes done and in total, rate, time left."""

    def __init__(self) -> None:
        self.begun = self.shown = time.monotonic()

    def __call__(self, share: float, copied: int, expected: int) -> None:
        now = time.monotonic()
        if now - self.shown < STEP_S and share < 1:
            return
        self.shown = now
        spent = now - self.begun
        rate = copied / spent / 1e6 if spent else 0.0
        whole = f" of {'about ' if share < 1 else ''}{expected / 1e6:,.0f}" if expected else ""
        left = f", {(expected - copied) / rate / 1e6:,.0f} s left" if share < 1 and expected and rate else ""
        end = "\n" if share >= 1 else ""
        stream = unwrap_stream(sys.stderr)
        stream.write(f"\r{share:4.0%}  {copied / 1e6:,.0f}{whole} MB  {rate:,.0f} MB/s{left}\x1b[K{end}")
        stream.flush()
