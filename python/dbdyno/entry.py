"""Where every command of Python's starts, before anything else is imported.

The program `dbdyno` is native (`crates/dyno-entry`); it becomes this one, `dbdyno-python`, for all that it does not
answer itself.

What takes time and is known from the words alone begins here, beside the imports (`trace.ahead`).
"""

from __future__ import annotations

import atexit
import gc
import sys

YOUNG_OBJECTS = 50_000
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def entry() -> NoReturn:
    """The console script."""
    sys.argv[0] = sys.argv[0].removesuffix("-python")  # the name that the user typed
    # What imports make stays: a look for cycles after each 700 objects was a fifteenth of the CPU of a short command.
    gc.set_threshold(YOUNG_OBJECTS)
    atexit.register(end_at_once)
    if sys.argv[1:3] != ["trace", "profile"]:
        _command()
    from dbdyno.trace import ahead

    ahead.begin(sys.argv[3:])
    try:
        _command()
    finally:
        ahead.end()


def end_at_once() -> None:
    """At the end of the process: no last look for cycles among objects that go away with it, a sixth of the CPU of a
    short command. DuckDB's module needs it: it tells the user of leaks where its objects are still there."""
    if "_duckdb" not in sys.modules:
        gc.freeze()


def _command() -> NoReturn:
    from dbdyno.cli import main

    main.entry()
