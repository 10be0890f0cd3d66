"""`dbdyno snap top`: what a server does right now, refreshed, in any terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from dbdyno import visible
from dbdyno.cli import screen
from dbdyno.cli.output import echo_own
from dbdyno.errors import SnapshotError

FOOT = "q quits, space refreshes now"


@click.command("top")
@click.option(
    "--target",
    "dsn",
    required=True,
    metavar="DSN",
    envvar="DBDYNO_TARGET",
    help="Connection string: postgresql://user@host/database, mariadb://user@host/",
)
@click.option("--every", default="2s", show_default=True, metavar="TIME", help="The refresh.")
@click.option(
    "--sample",
    default="100ms",
    show_default=True,
    metavar="TIME",
    help="Look at the sessions so often.",
)
@click.option(
    "--frames",
    type=click.IntRange(1),
    metavar="N",
    help="End after so many refreshes (default: 1 where the output is no terminal).",
)
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="So many statements.")
def command(dsn: str, every: str, sample: str, frames: int | None, top: int) -> None:
    """Show load, active sessions by class and top SQL of the last seconds, again and again.

    Nothing is stored. Works over plain SSH; q or Ctrl-C ends. Piped, or with TERM=dumb, each
    refresh is printed once, below the one before.

    \b
    dbdyno snap top --target postgresql://monitor@db1/app
    dbdyno snap top --target mariadb://monitor@db2/ --every 5s --frames 3 | cat
    """
    from dbdyno.trace.units import length_ns

    every_s = length_ns(every, "--every") / 1e9
    sample_s = length_ns(sample, "--sample") / 1e9
    if screen.usable():
        _on_screen(dsn, every_s, sample_s, frames, top)
        return
    with _Watched(dsn, sample_s) as watched:
        try:
            for at in range(frames or 1):
                time.sleep(every_s)
                text = _text(watched.frame(top), 100, None)
                echo_own(f"{text}\n" if at == 0 else f"\n{text}\n")
        except BrokenPipeError:  # nobody reads on: click itself would call that a failure
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            return


class _Watched:
    """The live side of a target with its sampler running; frames between two readings."""

    def __init__(self, dsn: str, sample_s: float) -> None:
        from dbdyno.snapshot.live import open_live
        from dbdyno.snapshot.view import Options

        self._live = open_live(dsn, Options())
        try:
            self._sampler = self._live.sampler(sample_s)
            self._before = self._live.read()
            self._sampler.start()
        except BaseException:
            self._live.__exit__()
            raise

    def frame(self, top: int) -> dict[str, Any]:
        """What happened since the last call."""
        from dbdyno.snapshot.live import frame

        now = self._live.read()
        made = frame(self._live, self._before, now, self._sampler.take(), top)
        self._before = now
        at = datetime.now(UTC).strftime("%H:%M:%S UTC")
        problem = self._sampler.problem
        notes = [f"sessions: {problem}", *made["notes"]] if problem else made["notes"]
        return {**made, "at": at, "notes": notes}

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *ending: object) -> None:
        self._sampler.stop()
        self._live.__exit__()


def _on_screen(dsn: str, every_s: float, sample_s: float, frames: int | None, top: int) -> None:
    """Until q, Ctrl-C, or so many frames. A server that goes away is tried again."""
    shown = 0
    with _Watched(dsn, sample_s) as first, screen.Screen() as page:
        page.draw(f"{FOOT}; the first numbers in {every_s:g} s")
        try:
            for made in _frames(first, dsn, sample_s, page, every_s, top):
                if made is None:
                    return
                size = shutil.get_terminal_size()
                page.draw(made if isinstance(made, str) else _text(made, size.columns, size.lines, foot=FOOT))
                shown += 1
                if frames is not None and shown >= frames:
                    return
        except KeyboardInterrupt:
            return


def _frames(
    watched: _Watched, dsn: str, sample_s: float, page: screen.Screen, every_s: float, top: int
) -> Iterator[dict[str, Any] | str | None]:
    """A frame per refresh; a sentence where the server is away; None at the user's wish."""
    current: _Watched | None = watched
    try:
        while True:
            if page.wait(every_s) in ("q", "Q", "\x1b", "\x03", "\x04"):
                yield None
                return
            try:
                if current is None:
                    current = _Watched(dsn, sample_s)
                    page.wait(min(every_s, 1.0))
                yield current.frame(top)
            except SnapshotError as error:
                if current is not None and current is not watched:
                    current.__exit__()
                current = None
                yield f"{visible.text(error)}\n\ntried again every {every_s:g} s; {FOOT}"
    finally:
        if current is not None and current is not watched:
            current.__exit__()


def _text(frame: dict[str, Any], width: int, height: int | None, foot: str = "") -> str:
    from dbdyno.report.live import render_frame

    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"
    return render_frame(frame, width=width, height=height, color=color, foot=foot)
