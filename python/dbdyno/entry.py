"""Entry point of every command that Python runs, executed before anything else is imported.

The program `dbdyno` is native (`crates/dyno-entry`); for every command that it does not answer itself it replaces
itself with this program, `dbdyno-python`.

Long work that needs only the command line starts here, in parallel with the imports (`trace.early_read`).
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from dbdyno.base.own_variables import set_own_variables

YOUNG_OBJECTS = 100_000
_codes: list[int] = []
"""Exit code of the command, once it has ended; empty until then."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def entry() -> NoReturn:
    """Run the console script; does not return."""
    sys.argv[0] = sys.argv[0].removesuffix("-python")  # the name that the user typed
    # Objects created by imports live until the end: looking for cycles after every 700 new objects took a fifteenth of
    # the CPU of a short command.
    gc.set_threshold(YOUNG_OBJECTS)
    set_own_variables()
    atexit.register(end_at_once)
    try:
        _with_early_read()
    except SystemExit as ending:
        if ending.code is None or isinstance(ending.code, int):
            _codes.append(ending.code or 0)
        raise


def _with_early_read() -> NoReturn:
    if sys.argv[1:3] != ["trace", "profile"]:
        _command()
    from dbdyno.trace import early_read

    early_read.begin_reading(sys.argv[3:])
    try:
        _command()
    finally:
        early_read.stop_readings()


def end_at_once() -> None:
    """End the process at once, after all other exit handlers have run.

    Otherwise Python would free all objects and modules one by one, which takes a sixth of the CPU time of a short
    command, although they disappear with the process anyway. If there is no exit code, or output was lost, Python ends
    the process in the normal way and reports the error.
    """
    if not _codes or "coverage" in sys.modules:  # which registered before this module was there
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # Python reports output that was lost
        return
    os._exit(_codes[0])


def _command() -> NoReturn:
    from dbdyno.cli import main

    main.entry()
