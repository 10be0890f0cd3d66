"""Where every command starts, before anything else is imported.

What takes time and is known from the words alone begins here, beside the imports (`trace.ahead`).
"""

from __future__ import annotations

import atexit
import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


YOUNG_MOST = 20_000
"""Objects after which Python looks for cycles; its own 700 make it look a hundred times while a command is imported."""


def entry() -> NoReturn:
    """The console script."""
    collect_rarely()
    if sys.argv[1:3] != ["trace", "profile"]:
        _command()
    from dbdyno.trace import ahead

    ahead.begin(sys.argv[3:])
    try:
        _command()
    finally:
        ahead.end()


def collect_rarely() -> None:
    """Lets Python look for cycles seldom, and not once more at the end, where the process goes away with all it has: a
    sixth of what starting and ending a command takes."""
    gc.set_threshold(YOUNG_MOST, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def _command() -> NoReturn:
    from dbdyno.cli import main

    main.entry()
