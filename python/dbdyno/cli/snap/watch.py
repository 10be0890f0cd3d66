"""`dbdyno snap watch`: a snapshot per period with sessions sampled in between, for one target or a fleet."""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.processes import child_environment
from dbdyno.cli.output import share_option
from dbdyno.cli.parameters import FILE, option_with_default
from dbdyno.cli.snap.options import store_option, target_or_fleet_options

if TYPE_CHECKING:
    from dbdyno.base.errors import Error
    from dbdyno.snapshot.engines.view import Options
    from dbdyno.snapshot.sending.alerts import Alerts
    from dbdyno.snapshot.store.folder import Snapshot, Store
    from dbdyno.snapshot.taking.fleet import Fleet, Target


@click.command("watch")
@click.argument("fleet", required=False, metavar="[FLEET.toml]", type=FILE)
@target_or_fleet_options
@option_with_default("--every", default="60s", metavar="TIME", help="Time between two snapshots.")
@click.option("--for", "length", metavar="TIME", help="Stop after this time (default: until Ctrl-C).")
@option_with_default(
    "--sample", default="1s", metavar="TIME", help="Sampling interval for sessions; 0 disables sampling."
)
@click.option(
    "--alert",
    "rules",
    metavar="RULES.toml",
    type=FILE,
    help="File with alert rules for the metrics of each sub-interval, and a command or webhook to call; exit 1 if a "
    "metric violated a rule.",
)
@share_option
@store_option
def command(
    fleet: Path | None,
    dsn: str | None,
    options: Options,
    note: str,
    every: str,
    length: str | None,
    sample: str,
    rules: Path | None,
    store: Path,
) -> None:
    """Take a snapshot now and one per period; print each number.

    Ctrl-C takes a last snapshot and ends the command; a second Ctrl-C ends it at once. Failures are reported, and
    watching continues. A FLEET.toml names many targets: one process watches them all, with a thread and a store folder
    for each.

    \b
    dbdyno snap watch --target postgresql://monitor@db1/app --every 60s --for 1h
    dbdyno snap watch fleet.toml --alert rules.toml
    """
    from dbdyno.trace.units import length_ns

    for_s = length_ns(length, "--for") / 1e9 if length else None
    alerts, left = _alerts(rules), False
    try:
        if fleet is not None:
            failed, left = _watch_fleet(fleet, for_s, alerts)
        elif dsn is None:
            raise click.UsageError("name a target with --target DSN, or a file with several targets: FLEET.toml")
        else:
            every_s = length_ns(every, "--every") / 1e9
            sample_s = None if sample.strip("0.s ") == "" else length_ns(sample, "--sample") / 1e9
            failed = _watch_one(dsn, store, options, (every_s, for_s, sample_s), note, alerts)
    finally:
        if alerts is not None:
            alerts.close()
    if left:  # a thread that hangs in a driver cannot be stopped, and would disturb the interpreter's shutdown
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(2)
    if failed:
        raise click.exceptions.Exit(2)
    if alerts is not None and alerts.fired:
        raise click.exceptions.Exit(1)


def _alerts(rules: Path | None) -> Alerts | None:
    if rules is None:
        return None
    from dbdyno.snapshot.sending.alerts import Alerts, read_rules

    found = read_rules(rules)
    for rule in found:
        does = [f"runs {' '.join(rule.command)}"] if rule.command else []
        does += [f"posts to {rule.webhook}"] if rule.webhook else []
        click.echo(f"dbdyno: rule {rule.name}: {' and '.join(does) or 'says so here'}", err=True)
    return Alerts(found, lambda line: click.echo(f"dbdyno: {line}", err=True), child_environment())


class SourceReporter:
    """Reporter of how the sessions of a target are sampled: as soon as this is known, and when it changes."""

    def __init__(self) -> None:
        self.said = ""

    def report(self, result: Snapshot | Error, name: str = "") -> None:
        """Report how the sessions of a new snapshot were sampled if that has changed; failed snapshots are ignored."""
        from dbdyno.base.errors import Error
        from dbdyno.snapshot.sessions.samples import Source

        cost = {} if isinstance(result, Error) else result.manifest["cost"]
        if "sessions_by" not in cost:
            return
        said = Source(cost["sessions_by"], cost.get("not_by_memory")).sentence()
        if said != self.said:
            self.said = said
            click.echo(f"dbdyno: {name}{said}", err=True)


class FailureReporter:
    """Reports of a target's failure: when it begins, when its message changes, and when it is over."""

    def __init__(self) -> None:
        self.said, self.times = "", 0

    def report(self, result: Snapshot | Error, name: str = "") -> None:
        """Report a new or changed error, or the first success after errors."""
        from dbdyno.base.errors import Error

        if isinstance(result, Error):
            if result.message != self.said:
                click.echo(f"dbdyno: {name}{result}", err=True)
            self.said, self.times = result.message, self.times + 1
        elif self.times:
            click.echo(f"dbdyno: {name}answers again; failures before: {self.times}", err=True)
            self.said, self.times = "", 0


def _watch_one(
    dsn: str,
    folder: Path,
    options: Options,
    times: tuple[float, float | None, float | None],
    note: str,
    alerts: Alerts | None,
) -> bool:
    """Watch one target; return True if the last snapshot failed."""
    from dbdyno.base.errors import SnapshotError
    from dbdyno.base.signals import StopSignals
    from dbdyno.snapshot.store.folder import Snapshot, Store
    from dbdyno.snapshot.taking.take import watch

    every_s, for_s, sample_s = times
    stop, holder, target, failed = threading.Event(), Store(folder), options.name or "", False
    failing, sources = FailureReporter(), SourceReporter()
    with StopSignals() as stopping:
        stopping.on_ask = stop.set
        for made in watch(dsn, holder, options, every_s=every_s, for_s=for_s, sample_s=sample_s, note=note, stop=stop):
            failed = isinstance(made, SnapshotError)
            failing.report(made)
            sources.report(made)
            if isinstance(made, Snapshot):
                target = made.target
                click.echo(made.number)
            if alerts is not None:
                alerts.evaluate(holder, target, made)
    return failed


def _watch_fleet(path: Path, for_s: float | None, alerts: Alerts | None) -> tuple[bool, bool]:
    """Watch several targets; return whether any failed at the end, and whether any thread is still running."""
    import time

    from dbdyno.base.errors import Error
    from dbdyno.base.signals import StopSignals
    from dbdyno.snapshot.taking.fleet import Fleet, environment, read_fleet

    folder, targets = read_fleet(path, environment())

    failing: dict[str, FailureReporter] = defaultdict(FailureReporter)
    sources: dict[str, SourceReporter] = defaultdict(SourceReporter)

    def tell(target: Target, holder: Store, result: Snapshot | Error) -> None:
        """Report a snapshot or an error; a repeated error is shown only in the status line of its target."""
        failing[target.name].report(result, f"{target.name}: ")
        sources[target.name].report(result, f"{target.name}: ")
        if not isinstance(result, Error):
            click.echo(f"{target.name} {result.number}")
        if alerts is not None:
            alerts.evaluate(holder, target.name, result)

    stop = threading.Event()
    fleet = Fleet(folder, targets, tell, stop=stop)
    with StopSignals() as stopping:
        stopping.on_ask = stop.set
        left = fleet.run(for_s, lambda: _show(fleet, time.monotonic()))
    _show(fleet, time.monotonic())
    for name in left:
        click.echo(f"dbdyno: {name}: no answer yet; not waiting any longer", err=True)
    return any(one.problem for one in fleet.status.values()), bool(left)


def _show(fleet: Fleet, now: float) -> None:
    """Print the state of each target to stderr, one line per target."""
    for one in fleet.status.values():
        word = one.word(now)
        why = f": {one.problem}" if word == "failing" else f" for {now - one.since:.0f} s" if word == "silent" else ""
        number = "-" if one.number is None else one.number
        click.echo(f"{one.name:<24} {word:<8} {one.taken:>6} taken, last {number}{why}", err=True)
