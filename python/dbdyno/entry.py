"""Where every command starts, before anything else is imported.

What takes time and is known from the words alone begins here, beside the imports (`trace.ahead`).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def entry() -> NoReturn:
    """The console script."""
    if sys.argv[1:3] != ["trace", "profile"]:
        _command()
    from dbdyno.trace import ahead

    ahead.begin(sys.argv[3:])
    try:
        _command()
    finally:
        ahead.end()


def _command() -> NoReturn:
    from dbdyno.cli import main

    main.entry()
