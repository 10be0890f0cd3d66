"""Entry point of every command that Python runs, executed before anything else is imported.

The program `dbdyno` is native (`crates/dyno-entry`); for every command that it does not answer itself it replaces
itself with this program, `dbdyno-python`.

Long work that the command line alone determines starts here, in parallel with the imports (`trace.ahead`).
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
    """Run the console script; does not return."""
    sys.argv[0] = sys.argv[0].removesuffix("-python")  # the name that the user typed
    # Objects created by imports live until the end: looking for cycles after every 700 new objects took a fifteenth of
    # the CPU of a short command.
    gc.set_threshold(YOUNG_OBJECTS)
    atexit.register(end_at_once)
    if sys.argv[1:3] != ["trace", "profile"]:
        _command()
    from dbdyno.trace import early_read

    early_read.begin(sys.argv[3:])
    try:
        _command()
    finally:
        early_read.end()


def end_at_once() -> None:
    """Skip the final garbage collection at process exit.

    That collection looks for cycles among objects that disappear with the process anyway; it takes a sixth of the CPU
    of a short command. It is not skipped if DuckDB is loaded: DuckDB's module reports leaks to the user if its objects
    still exist at exit.
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()


def _command() -> NoReturn:
    from dbdyno.cli import main

    main.entry()
