"""Charts drawn by Vega in a separate process, which ends after a while without requests.

Altair, Vega and the JavaScript engine take 150 MB that a process never releases. Most pages of a server have no such
chart, so the server itself stays small.

    python -m dbdyno.ui.drawing     # reads pickled requests from its standard input, writes pickled answers
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import tzinfo
from typing import IO, Any

from dbdyno.base.errors import ReportError
from dbdyno.base.processes import python_command, python_environment
from dbdyno.page import Page
from dbdyno.report import figures
from dbdyno.report.figures import clock
from dbdyno.ui.result_cache import ResultCache

IDLE_S = 10.0
"""Time without a request after which the process ends [s]."""
KEPT = 64
"""Number of figures in the cache, each about ten kilobytes."""
_FIGURES: ResultCache[dict[str, str] | None] = ResultCache(KEPT)


class Drawer:
    """The drawing process, started by the first request, and again after it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._clock: threading.Timer | None = None

    def ask(self, *request: Any) -> Any:
        """Return the process's answer to a request: `drawn`, `encoded` or `image`, its arguments, and the time zone.

        Raises:
            ReportError: The process has ended, or the figure cannot be drawn.
        """
        with self._lock:
            if self._clock is not None:
                self._clock.cancel()
            if self._process is not None and self._process.poll() is not None:
                self._end()
            self._process = self._process or _start()
            try:
                found = _exchange(self._process, request)
            except (EOFError, OSError, pickle.UnpicklingError) as error:
                self._end()
                raise ReportError("the process that draws charts has ended", next_step="load the page again") from error
            self._clock = threading.Timer(IDLE_S, self.end)
            self._clock.daemon = True
            self._clock.start()
        if isinstance(found, Exception):
            raise found
        return found

    def end(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    command, env = python_command("dbdyno.ui.drawing"), python_environment()
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)


def _exchange(process: subprocess.Popen[bytes], request: object) -> Any:
    assert process.stdin and process.stdout
    pickle.dump(request, process.stdin)
    process.stdin.flush()
    return pickle.load(process.stdout)  # noqa: S301 - from our own process


DRAWER = Drawer()


def draw_figure(kind: str, data: Mapping[str, Any]) -> dict[str, str] | None:
    """Return a figure for a page, as `figures.draw_figure` does, from a cache of recent figures."""
    request = ("drawn", kind, data, clock.ZONE.get())
    name = hashlib.blake2b(pickle.dumps(request), digest_size=16).hexdigest()
    return _FIGURES.get(name, None, functools.partial(DRAWER.ask, *request))


def encode_figure(model: Mapping[str, Any], form: str) -> bytes:
    """Return the first figure of a model as `png` or `svg`, as `figures.encoded_figure` does."""
    return bytes(DRAWER.ask("encoded", model, form, clock.ZONE.get()))


def encoded_page(page: Page, form: str) -> bytes:
    """Return a page without figures as `png` or `svg`: its headline, sentences and tables."""
    from dbdyno.report.page_svg import page_svg

    text = page_svg(page)
    return text.encode() if form == "svg" else bytes(DRAWER.ask("image", text, form, clock.ZONE.get()))


def answer(what: str, first: Any, second: Any, zone: tzinfo) -> object:
    """Return the answer to a request, or the exception that it raised."""
    before, elsewhere = clock.ZONE.set(zone), figures.ELSEWHERE.set(None)
    try:
        if what == "image":
            import vl_convert

            return vl_convert.svg_to_png(first, scale=2)
        return figures.draw_figure(first, second) if what == "drawn" else figures.encoded_figure(first, second)
    except Exception as error:  # shown by the page that asked
        return error
    finally:
        clock.ZONE.reset(before)
        figures.ELSEWHERE.reset(elsewhere)


def main() -> None:
    """Answer requests until the server closes the pipe or ends."""
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the server that started this process
        except EOFError:
            return
        pickle.dump(answer(*request), answers)
        answers.flush()


if __name__ == "__main__":
    main()
