"""A profile that is begun before the command line is understood.

`dbdyno trace profile FILES` spends as long on starting Python and its command line as on reading a
hundred megabytes. Where the words name nothing but files and how to show the result, the core begins
to read them in a thread of its own, while the rest of the program is imported. The command then
parses everything as ever; when it comes to ask for that very reading (the same files, options and
request, compared as the core is told them) it takes the one under way. Otherwise nothing is taken,
and the reading is stopped. So the answer, the errors and the exit codes are the command's own.

The native entry (`crates/dyno-entry`) may have read already and have found that there is more to say
than it knows words for: its answer, with the words that it answers, comes in the environment.

This file is imported first: it imports next to nothing.
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
"""Options that change nothing of what is read."""
_OPTIONS = {"think_time_ns": 1_000_000_000, "binds": False, "threads": None, "tim_unit_ns": None}
_REQUEST = {"by": ["event"], "where": None, "from_ns": None, "to_ns": None, "depth": None, "top": None}


GIVEN = "DBDYNO_READING"
"""Where an answer stands that was found before Python was started: JSON of `words` and `answer`."""


class Reading:
    """A reading in a thread of its own: `done` is set at its end; then there is `answer` or `failure`."""

    def __init__(self, job: TraceJob, work: Callable[[TraceJob], str]) -> None:
        self.job = job
        self.answer = ""
        self.failure: BaseException | None = None
        self.done = threading.Event()  # not `join`: a join that Ctrl-C cuts takes the thread for ended
        self._work = work

    def start(self, answer: str = "") -> None:
        """Begins; with an answer it ends there, too."""
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
        """Ends it soon, and waits for that."""
        self.job.stop()
        self.done.wait()


_begun: dict[tuple[str, str], Reading] = {}


def begin(words: Sequence[str]) -> None:
    """Begins to read what `dbdyno trace profile` with these words is going to ask for, if that is plain."""
    answer = _given(words)
    files = _files(words)
    if not files:
        return
    from dbdyno import _core

    options, request = json.dumps({"files": files, **_OPTIONS}), json.dumps(_REQUEST)
    reading = Reading(_core.TraceJob(options), lambda job: job.profile(request))
    _begun[options, request] = reading
    reading.start(answer)


def taken(options: str, request: str) -> Reading | None:
    """The reading that was begun for these, if there is one; it is the caller's now."""
    return _begun.pop((options, request), None)


def end() -> None:
    """Ends what was begun and not taken."""
    while _begun:
        _begun.popitem()[1].end()


def _given(words: Sequence[str]) -> str:
    """The answer for these words that came along, if there is one. No process that is started later finds it."""
    try:
        given = json.loads(os.environ.pop(GIVEN, "{}"))
        return str(given["answer"]) if given["words"] == ["trace", "profile", *words] else ""
    except (ValueError, TypeError, KeyError):
        return ""


def _files(words: Sequence[str]) -> list[str]:
    """The files, if there is nothing else among the words that changes what is read; else none."""
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
