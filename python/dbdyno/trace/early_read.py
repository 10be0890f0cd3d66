"""Start of a profile before the command line is parsed.

`dbdyno trace profile FILES` takes as long to start Python and parse its command line as to read a hundred megabytes. If
the arguments contain only files and output options, the core starts reading in a separate thread while the rest of the
program is imported. The command then parses everything as usual; when it requests exactly this reading (the same files,
options and request, compared in the form passed to the core), it uses the reading in progress. Otherwise the reading is
stopped. So the answer, the errors and the exit codes are those of the command itself.

The native entry (`crates/dyno-entry`) may already have read the files, but cannot print the result in every form. It
then passes its answer, with the arguments for which it was computed, in an environment variable.

This module is imported first, so it imports almost nothing.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dbdyno._core import TraceJob

_SHOWN = ("--format", "-o", "--skew")
"""Options that do not change what is read."""
_OPTIONS = {"think_time_ns": 1_000_000_000, "binds": False, "threads": None, "tim_unit_ns": None}
_REQUEST = {"by": ["event"], "where": None, "from_ns": None, "to_ns": None, "depth": None, "top": None}


ANSWER_VARIABLE = "DBDYNO_READING"
"""Environment variable with an answer found before Python was started: JSON with `words` and `answer`."""


class Reading:
    """A reading in a separate thread; `done` is set at its end, and then `answer` or `failure` is set."""

    def __init__(self, job: TraceJob, work: Callable[[TraceJob], str]) -> None:
        self.job = job
        self.answer = ""
        self.failure: BaseException | None = None
        self.done = threading.Event()  # not `join`: after a join cut off by Ctrl-C the thread counts as ended
        self._work = work

    def start(self, answer: str = "") -> None:
        """Start the reading; with a given answer it is finished at once."""
        if answer:
            self.answer = answer
            self.done.set()
            return
        threading.Thread(target=self._carry_out, name="trace", daemon=True).start()

    def _carry_out(self) -> None:
        try:
            self.answer = self._work(self.job)
        except BaseException as error:
            self.failure = error
        finally:
            self.done.set()

    def end(self) -> None:
        """Stop the reading and wait for its end."""
        self.job.stop()
        self.done.wait()


_begun: dict[tuple[str, str], Reading] = {}


def begin_reading(words: Sequence[str]) -> None:
    """Start the reading that `dbdyno trace profile` with these arguments will request, if that can be determined."""
    answer = _early_answer(words)
    files = _files(words)
    if not files:
        return
    from dbdyno import _core

    options, request = json.dumps({"files": files, **_OPTIONS}), json.dumps(_REQUEST)
    reading = Reading(_core.TraceJob(options), lambda job: job.profile(request))
    _begun[options, request] = reading
    reading.start(answer)


def take_reading(options: str, request: str) -> Reading | None:
    """Remove and return the reading started for these options and request; None if none was started."""
    return _begun.pop((options, request), None)


def stop_readings() -> None:
    """Stop all readings that were started but whose answers were not used."""
    while _begun:
        _begun.popitem()[1].end()


def _early_answer(words: Sequence[str]) -> str:
    """Return the answer that the environment holds for a command with these arguments; "" if it holds none.

    The variable is removed, so that no child process finds it.
    """
    try:
        given = json.loads(os.environ.pop(ANSWER_VARIABLE, "{}"))
        return str(given["answer"]) if given["words"] == ["trace", "profile", *words] else ""
    except (ValueError, TypeError, KeyError):
        return ""


def _files(words: Sequence[str]) -> list[str]:
    """Return the files if no other argument changes what is read; otherwise an empty list."""
    files, rest = [], iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if not word.startswith("-"):
            files.append(word)
        elif name not in _SHOWN:
            return []
        elif not equals and name != "--skew":
            next(rest, None)
    return files if all(map(os.path.isfile, files)) else []
