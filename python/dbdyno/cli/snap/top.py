"""`dbdyno snap top`: current activity of a server, refreshed, in any terminal."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import textwrap
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base import escaping
from dbdyno.base.errors import SnapshotError
from dbdyno.base.limits import Count
from dbdyno.cli import screen
from dbdyno.cli.output import echo_unchanged
from dbdyno.cli.parameters import FOLDER, option_with_default
from dbdyno.cli.snap.top_keys import ScreenState, split

if TYPE_CHECKING:
    from dbdyno.snapshot.engines.live import Frame, Progress, Session

    class TopFrame(Frame):
        """A frame with its time, all sessions, and commands in progress."""

        at: str
        all_sessions: list[Session]
        progress: list[Progress]


ABOVE = 5
"""Number of sessions that stay visible above the selected one."""


@click.command("top")
@click.option(
    "--target",
    "dsn",
    required=True,
    metavar="DSN",
    envvar="DBDYNO_TARGET",
    help="Connection string of the server: postgresql://user@host/database or mariadb://user@host/",
)
@option_with_default("--every", default="2s", metavar="TIME", help="Time between two refreshes.")
@option_with_default("--sample", default="100ms", metavar="TIME", help="Sampling interval for sessions.")
@click.option(
    "--frames",
    type=Count(),
    metavar="N",
    help="Stop after this number of refreshes (default: 1 if the output is not a terminal).",
)
@option_with_default("--top", type=Count(), default=10, metavar="N", help="Show the top N statements.")
@click.option("--once", is_flag=True, help="Print one refresh and exit, also in a terminal.")
@click.option(
    "--record",
    type=FOLDER,
    metavar="FOLDER",
    help="Store the samples in this folder: with a snapshot now, one per minute, and one at the end.",
)
@click.option("--allow-cancel", is_flag=True, help="Allow the key c to cancel a statement; asks first.")
def command(
    dsn: str, every: str, sample: str, frames: int | None, top: int, once: bool, record: Path | None, allow_cancel: bool
) -> None:
    """Show load, active sessions by class, top SQL and sessions of the last seconds, and refresh them.

    Nothing is stored without --record, and no statement is cancelled without --allow-cancel. It works over plain SSH.
    Keys: 1 to 4 for the load, the sessions, who blocks whom, progress; arrows choose a session, e its plan, v its text;
    s sort, f filter, p pause, + and - the refresh, h all keys, q quit. If the output is piped, or with TERM=dumb, each
    refresh is printed below the previous one.

    \b
    dbdyno snap top --target postgresql://monitor@db1/app
    dbdyno snap top --target mariadb://monitor@db2/ --every 5s --frames 3 | cat
    """
    from dbdyno.trace.units import length_ns

    every_s = length_ns(every, "--every") / 1e9
    sample_s = length_ns(sample, "--sample") / 1e9
    source = _Source(dsn, sample_s, top, record)
    if screen.is_usable() and not once:
        _on_screen(source, frames, ScreenState(allow_cancel=allow_cancel, every_s=every_s))
        return
    with source.open() as watched:
        try:
            for at in range(1 if once else frames or 1):
                time.sleep(every_s)
                text = _text(visible_frame(watched.frame(), ScreenState(view="all")), 100, None)
                echo_unchanged(f"{text}\n" if at == 0 else f"\n{text}\n")
        except BrokenPipeError:  # the reader has closed the pipe; click itself would report a failure
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            return


@dataclass(frozen=True)
class _Source:
    """The target to watch and how to watch it, so that it can be opened again when the server is back."""

    dsn: str
    sample_s: float
    top: int
    record: Path | None

    def open(self) -> _Watched:
        """Connect to the server.

        Raises:
            SnapshotError: the server does not answer.
        """
        return _Watched(self)


class _Watched:
    """A connected target with its sampler running; makes each frame from two successive readings."""

    def __init__(self, source: _Source) -> None:
        from dbdyno.snapshot.engines.live import open_live
        from dbdyno.snapshot.engines.view import Options
        from dbdyno.snapshot.taking.recorder import Recorder

        self._top = source.top
        self._recorder = Recorder(source.dsn, source.record) if source.record is not None else None
        self.live = open_live(source.dsn, Options())
        try:
            self._sampler = self.live.sampler(source.sample_s)
            self._before = self.live.read()
            self._sampler.start()
        except BaseException:
            self.live.__exit__()
            raise

    def frame(self) -> TopFrame:
        """Return what happened since the last call."""
        from dbdyno.snapshot.engines.live import frame

        now = self.live.read()
        seen = self._sampler.take()
        made = frame(self.live, self._before, now, seen, self._top)
        self._before = now
        problems = [f"sessions: {self._sampler.problem}"] if self._sampler.problem else []
        sources = [self._sampler.source.sentence()] if self._sampler.source else []
        if self._recorder is not None:
            problems += self._recorder.add(seen, self._sampler.source)
        return {
            **made,
            "at": datetime.now(UTC).strftime("%H:%M:%S UTC"),
            "notes": [*problems, *made["notes"], *sources],
            "all_sessions": self.live.sessions(),
            "progress": self.live.progress(),
        }

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *ending: object) -> None:
        self._sampler.stop()
        if self._recorder is not None:
            self._recorder.end(self._sampler.take(), self._sampler.source)
        self.live.__exit__()


def visible_frame(frame: TopFrame, desk: ScreenState) -> dict[str, object]:
    """Return a frame with the view, order and filter of the screen's state applied."""
    from dbdyno.snapshot.engines.live_sessions import blocking_tree, select_sessions

    rows = select_sessions(frame["all_sessions"], desk.sort, desk.words)
    trees = blocking_tree(frame["all_sessions"])
    desk.listed = [row["pid"] for _, row in trees] if desk.view == "blocking" else [row["pid"] for row in rows]
    at = desk.listed.index(desk.chosen) if desk.chosen in desk.listed else 0
    first = max(at - ABOVE, 0) if desk.view == "sessions" else 0
    about = f", by {desk.sort}" + (f", only with {desk.words!r}" if desk.words else "")
    return {
        **frame,
        "view": desk.view,
        "plan": list(desk.plan),
        "sessions": rows[first:],
        "listed": about + (f", from the {first + 1}. on" if first else ""),
        "tree": trees,
        "chosen": desk.chosen,
    }


def _on_screen(source: _Source, frames: int | None, desk: ScreenState) -> None:
    """Refresh until q, Ctrl-C, or the given number of frames; if the server goes away, keep trying to reconnect."""
    try:
        with screen.Screen() as page, _Session(source, desk, page) as session:
            page.draw(f"{desk.foot()}; first figures in {desk.every_s:g} s")
            with contextlib.suppress(KeyboardInterrupt):
                session.run(frames)
    except OSError as error:  # EIO: the terminal was closed
        if error.errno != errno.EIO:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Session:
    """One use of the screen, from opening to closing it."""

    def __init__(self, source: _Source, desk: ScreenState, page: screen.Screen) -> None:
        self._source = source
        self._desk = desk
        self._page = page
        self._watched: _Watched | None = source.open()
        self._shown: TopFrame | str = ""

    def run(self, frames: int | None) -> None:
        """Refresh and respond to keys."""
        done = 0
        due = time.monotonic() + self._desk.every_s
        while frames is None or done < frames:
            keys = self._page.wait(max(0.0, due - time.monotonic()))
            action = "read" if keys is None else self._handle_keys(keys)
            if action == "quit":
                return
            if action == "read" and (keys is not None or not self._desk.paused):
                self._read()
                done += 1
            if action == "read":
                due = time.monotonic() + self._desk.every_s
            self._draw()

    def _handle_keys(self, typed: str) -> str:
        """Do what the keys request; return the last action that remains to be done."""
        action = "draw"
        for key in split(typed):
            action = self._desk.press(key)
            if action == "quit":
                return action
            if action in ("plan", "statement", "cancel"):
                self._do(action)
        return action

    def _read(self) -> None:
        try:
            if self._watched is None:
                self._watched = self._source.open()
                self._page.wait(min(self._desk.every_s, 1.0))
            self._shown = self._watched.frame()
        except SnapshotError as error:
            self.__exit__()
            self._shown = f"{escaping.escape_text(error)}\n\ntried again every {self._desk.every_s:g} s"

    def _do(self, action: str) -> None:
        """Show a plan or statement, or carry out a confirmed cancel; a refusal is shown in the last line."""
        if self._watched is None:
            return
        pid = self._desk.pid
        try:
            if action == "plan":
                self._desk.plan = (f"Plan of session {pid}; press any key to go back", *self._watched.live.plan(pid))
            elif action == "statement":
                self._desk.plan = self._statement(pid)
            else:
                took = self._watched.live.cancel(pid)
                self._desk.message = f"session {pid}: " + ("asked to cancel" if took else "the server refused")
        except SnapshotError as error:
            self._desk.message = escaping.escape_text(error.message)

    def _statement(self, pid: int) -> tuple[str, ...]:
        """Return a session's facts and its whole statement.

        Raises:
            SnapshotError: the session is not on the screen.
        """
        rows = [] if isinstance(self._shown, str) else self._shown["all_sessions"]
        row = next((row for row in rows if row["pid"] == pid), None)
        if row is None:
            raise SnapshotError(
                f"there is no session {pid} on the screen", next_step="type the number of a session on the screen"
            )
        facts = [f"{name} {row[name]}" for name in ("user", "database", "application", "client", "state") if row[name]]
        width = shutil.get_terminal_size().columns
        lines = [part for line in str(row["query"] or "").splitlines() for part in textwrap.wrap(line, width) or [""]]
        return (
            f"Statement of session {pid}; press any key to go back",
            *textwrap.wrap(", ".join(facts), width),
            "",
            *lines,
        )

    def _draw(self) -> None:
        size = shutil.get_terminal_size()
        foot = self._desk.foot()
        if isinstance(self._shown, str):
            self._page.draw(f"{self._shown}; {foot}")
        else:
            self._page.draw(_text(visible_frame(self._shown, self._desk), size.columns, size.lines, foot=foot))

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *ending: object) -> None:
        if self._watched is not None:
            self._watched.__exit__()
            self._watched = None


def _text(frame: dict[str, object], width: int, height: int | None, foot: str = "") -> str:
    from dbdyno.report.live import render_frame

    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"
    return render_frame(frame, width=width, height=height, color=color, foot=foot)
