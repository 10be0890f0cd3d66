"""One reading of trace files by the core, in a thread of its own.

The calling thread stays free to show progress and to hear Ctrl-C: it then asks the core to stop,
waits for it, and raises `KeyboardInterrupt`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Progress = Callable[[int, int], None]
"""Called several times a second with the bytes read and the bytes in all."""

_TICK_S = 0.1


@dataclass(frozen=True)
class Options:
    """How traces are read: when a wait for the client is think time, and what is kept.

    `centiseconds` overrides the unit of the file (8i), where the header does not tell it.
    """

    think_time_ns: int = 1_000_000_000
    binds: bool = False
    threads: int | None = None
    centiseconds: bool | None = None

    def as_json(self, files: Sequence[str]) -> str:
        """The core's own form."""
        return json.dumps(
            {
                "files": list(files),
                "think_time_ns": self.think_time_ns,
                "binds": self.binds,
                "threads": self.threads,
                "centiseconds": self.centiseconds,
            }
        )


def run_job(
    files: Sequence[str],
    options: Options,
    work: Callable[[Any], str],
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Lets `work` use a `TraceJob` and returns its JSON answer; raises what the core raises."""
    from dbdyno import _core

    job = _core.TraceJob(options.as_json(files))
    answer: list[str] = []
    failure: list[BaseException] = []

    def carry_out() -> None:
        try:
            answer.append(work(job))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=carry_out, name="trace", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_TICK_S)
            if progress is not None:
                progress(*job.progress())
    except BaseException:
        job.stop()
        thread.join()
        raise
    if failure:
        raise failure[0]
    found: dict[str, Any] = json.loads(answer[0])
    return found
