"""`dbdyno trace replay`: replay of a proxy's capture."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.json_types import JsonObject
from dbdyno.cli.output import Output, form_of, key_file_option, with_output
from dbdyno.cli.parameters import FILE, FOLDER, option_with_default
from dbdyno.cli.trace.options import wait_for

if TYPE_CHECKING:
    from dbdyno.trace.proxy.replay import ReplayOptions, RunningReplay

_FORMATS = ("text", "json")
_STATEMENTS = 5
"""Maximum number of statements with differences that the text form lists; JSON lists all of them."""
_LOOK_S = 0.05
_DIFFERENCES = {
    "rows_differ": "times a different number of rows",
    "fails_now": "times failed",
    "failed_then": "times failed only in the capture",
    "fails_otherwise": "times another SQLSTATE",
}
_MEASURED = {"wal": "WAL", "temp": "temporary files", "checkpoints": "checkpoints", "waits": "waits"}


@click.command("replay")
@click.argument("run", type=FOLDER)
@click.option(
    "--target",
    "dsn",
    required=True,
    metavar="DSN",
    help="Server to replay on; all sessions log in with this connection string.",
)
@option_with_default(
    "--speed", default="1", metavar="N|max", help="Speed factor, such as 2 or 2x; max removes all think time."
)
@option_with_default(
    "--order",
    type=click.Choice(("none", "commit")),
    default="none",
    help="With commit, send statements only after the commits that preceded them in the capture.",
)
@click.option(
    "--writes", is_flag=True, help="Allow writes; use it only on a target that is a copy (default: read-only sessions)."
)
@click.option(
    "--from",
    "begin",
    metavar="TIME",
    help="Replay only transactions that begin at least this long after the first message.",
)
@click.option(
    "--to",
    "end",
    metavar="TIME",
    help="Replay only transactions that begin less than this long after the first message.",
)
@key_file_option
@click.option("--format", "form", type=click.Choice(_FORMATS), help="Output format; --json is short for --format json.")
@click.option("-o", "--output", type=FILE, help="Write to this file; its suffix selects the format (txt, json).")
@with_output
def command(
    run: Path,
    dsn: str,
    speed: str,
    order: str,
    writes: bool,
    begin: str | None,
    end: str | None,
    key_file: Path | None,
    output: Output,
) -> None:
    """Run again what `trace proxy --binds` or `trace import --log` captured in RUN: sessions, messages, think times.

    Numbers of rows and SQLSTATEs are compared with those in the capture. If INSERT ... RETURNING returns another key
    than in the capture, the new key is sent wherever a statement compares or writes the old one, and nowhere else. Exit
    1 if answers differ.

    \b
    dbdyno trace replay runs/now --target postgresql://localhost/copy --writes
    dbdyno trace replay runs/now --target postgresql://localhost/copy --writes --speed max --order commit
    dbdyno trace replay runs/now --target postgresql://localhost/copy --from 10min --to 12min -o replay.json
    """
    from dbdyno.bench.postgres.keys.plan import key_plan
    from dbdyno.bench.postgres.replay_watch import watch_server
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.evidence.capture_keys import KeyPlan
    from dbdyno.evidence.captures import open_capture
    from dbdyno.evidence.encryption import messages_of
    from dbdyno.trace.proxy.replay import ReplayOptions, count_differences, run_replay, speed_of

    kind = form_of(output, _FORMATS, "text")
    wanted = ReplayOptions(speed_of(speed), order == "commit", writes, *_part(begin, end))
    target = Postgres.open(dsn)
    if writes:
        target.refuse_live()
    with messages_of(open_capture(run), key_file) as path:
        # Sessions that are read-only generate no keys.
        keys = key_plan(target, path, wanted.from_ns, wanted.to_ns) if writes else KeyPlan()
        with watch_server(target) as watch, run_replay(run, target.conninfo(), wanted, keys, path) as it:
            wait_for(it.is_over, lambda: _line(it), look=watch.sample, every_s=_LOOK_S)
    report = {**it.report, "server": watch.report}
    text = (
        f"{json.dumps(report, indent=1)}\n"
        if kind == "json"
        else "".join(f"{line}\n" for line in _lines(report, wanted))
    )
    output.echo(text)
    if count_differences(report):
        raise click.exceptions.Exit(1)


def _lines(report: JsonObject, options: ReplayOptions) -> Iterator[str]:
    """Yield the lines of a report as text."""
    from dbdyno.trace.proxy.replay import sentences

    yield from sentences(report, options)
    yield from _server(report["server"])
    for one in report["differing"][:_STATEMENTS]:
        counted = ", ".join(
            f"{count:,} {_DIFFERENCES[key]}" for key, count in one.items() if key in _DIFFERENCES and count
        )
        yield f"{counted}: {one['statement']}"
    told: Counter[str] = Counter(report["told"])
    for line, count in told.items():
        yield f"  {line}" + (f" ({count} times)" if count > 1 else "")


def _server(report: JsonObject) -> Iterator[str]:
    """Yield sentences about the server's activity during the replay."""
    from dbdyno.stats.wording import size

    parts = []
    if "wal_bytes" in report:
        parts.append(f"{size(report['wal_bytes'])} of WAL")
    if "temp_bytes" in report:
        parts.append(f"{size(report['temp_bytes'])} of temporary files in this database")
    if "checkpoints_timed" in report:
        parts.append(f"{report['checkpoints_timed']} timed and {report['checkpoints_requested']} requested checkpoints")
    if parts:
        yield f"Meanwhile on the target's server: {', '.join(parts)}."
    if active := sum(report["waits"].values()):
        shares = ", ".join(f"{name} {count / active:.0%}" for name, count in report["waits"].items())
        mean = f"{active / report['samples']:.1f} on average in {report['samples']:,} samples"
        yield f"Active sessions: {mean}; {shares}."
    for name, why in report["missing"].items():
        yield f"Not known for the target: {_MEASURED[name]} ({why})."


def _part(begin: str | None, end: str | None) -> tuple[int | None, int | None]:
    from dbdyno.trace.units import length_ns

    from_ns = length_ns(begin, "--from") if begin else None
    to_ns = length_ns(end, "--to") if end else None
    if from_ns is not None and to_ns is not None and from_ns >= to_ns:
        raise click.UsageError(f"--from {begin} is not before --to {end}")
    return from_ns, to_ns


def _line(it: RunningReplay) -> str:
    at = it.read_progress()
    said = f"{at['turns']:,} of {at['turns_all']:,} round trips, {at['sessions']} sessions"
    return f"{said}, {at['differing']} differ"
