"""Display of a run's progress: a bar on a terminal, a line per block elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO

from dbdyno.base.escaping import escape_text as visible_text
from dbdyno.base.escaping import unwrap_stream


class Progress(Protocol):
    """Receiver of a runner's progress."""

    def begin(self, run: str, blocks: int, done: int, seconds: float | None) -> None:
        """Show that a run starts, or continues after `done` blocks; `seconds` is its predicted length if known."""

    def tick(self, block: int, kind: str, arm: str, transactions: int) -> None:
        """Show the current state, several times a second; `transactions` is the number since the start."""

    def block(self, block: int, kind: str, rates: dict[str, float], marks: list[str]) -> None:
        """Show that a block is complete; `rates` are transactions per second by arm."""

    def note(self, text: str) -> None:
        """Show a message without ending the display of progress."""

    def end(self) -> None:
        """Show that the run is over, successful or not."""


class SilentProgress:
    """Progress that shows nothing."""

    def begin(self, run: str, blocks: int, done: int, seconds: float | None) -> None: ...

    def tick(self, block: int, kind: str, arm: str, transactions: int) -> None: ...

    def block(self, block: int, kind: str, rates: dict[str, float], marks: list[str]) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self) -> None: ...


class LineProgress:
    """Progress as one line per block: for logs, pipes and CI."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.blocks = 0
        self.started = time.monotonic()
        self.done = self.first = 0
        self.running = False

    def begin(self, run: str, blocks: int, done: int, seconds: float | None) -> None:
        self.blocks, self.first, self.done = blocks, done, done
        self.started, self.running = time.monotonic(), False
        about = "" if seconds is None else f", about {_clock(seconds)}"
        self.write(f"run {run}: {blocks} blocks{about}")

    def tick(self, block: int, kind: str, arm: str, transactions: int) -> None:
        if not self.running:  # the time before the first block is not repeated in later ones
            self.running, self.started = True, time.monotonic()

    def block(self, block: int, kind: str, rates: dict[str, float], marks: list[str]) -> None:
        self.done += 1
        rate = ", ".join(f"{arm} {_rate(value)}" for arm, value in rates.items())
        word = {"warmup": " (warm-up)", "overhead": " (cost of watching)"}.get(kind, "")
        marked = f" [{', '.join(marks)}]" if marks else ""
        said = ", ".join(part for part in (f"{rate}{marked}", f"{self.time_left()} left") if part)
        self.write(f"block {self.done}/{self.blocks}{word}: {said}")

    def note(self, text: str) -> None:
        self.write(text)

    def end(self) -> None: ...

    def time_left(self) -> str:
        """Return the time left as text, estimated from the blocks so far; "?" before the first block has ended."""
        fresh = self.done - self.first
        if not fresh:
            return "?"
        return _clock((time.monotonic() - self.started) / fresh * (self.blocks - self.done))

    def write(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class TerminalProgress(LineProgress):
    """Progress as a bar that is rewritten in place: blocks done, all blocks, arm, throughput, and time left."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            TextColumn("block {task.completed}/{task.total}"),
            BarColumn(),
            TextColumn("{task.description}"),
            console=Console(file=unwrap_stream(stream)),
            transient=True,
        )
        self.task = self.bar.add_task("starting", total=None)
        self.seen = (time.monotonic(), 0)
        self.rate = 0.0

    def begin(self, run: str, blocks: int, done: int, seconds: float | None) -> None:
        super().begin(run, blocks, done, seconds)
        self.bar.update(self.task, total=blocks, completed=done)
        self.bar.start()

    def tick(self, block: int, kind: str, arm: str, transactions: int) -> None:
        from rich.markup import escape

        super().tick(block, kind, arm, transactions)
        now = time.monotonic()
        if now - self.seen[0] >= 0.5:
            self.rate = max(0.0, (transactions - self.seen[1]) / (now - self.seen[0]))
            self.seen = (now, transactions)
        word = {"warmup": "warming up, ", "overhead": "cost of watching, "}.get(kind, "")
        left = f"{self.time_left()} left" if self.done > self.first else ""
        rate = f"{_rate(self.rate)}  " if transactions else ""
        self.bar.update(self.task, description=escape(visible_text(f"{word}{arm}  {rate}{left}")))

    def block(self, block: int, kind: str, rates: dict[str, float], marks: list[str]) -> None:
        self.done += 1
        self.bar.update(self.task, completed=self.done)
        if marks:
            self.bar.console.print(visible_text(f"block {self.done}: {', '.join(marks)}"), markup=False)

    def write(self, text: str) -> None:
        self.bar.console.print(visible_text(text), markup=False, highlight=False)

    def end(self) -> None:
        self.bar.stop()


def progress_for(stream: TextIO | None = None) -> Progress:
    """Return a bar for a terminal, lines for any other stream; stderr if `stream` is None."""
    import os

    stream = stream or sys.stderr
    dumb = os.environ.get("TERM") in (None, "dumb")
    return TerminalProgress(stream) if stream.isatty() and not dumb else LineProgress(stream)


def _rate(value: float) -> str:
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.1f}/s"


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
