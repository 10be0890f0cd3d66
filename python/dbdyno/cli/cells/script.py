"""`dbdyno cells script`: registers the command, which is implemented in `run.py`."""

from __future__ import annotations

from dbdyno.cli.cells.run import script as command

__all__ = ["command"]
