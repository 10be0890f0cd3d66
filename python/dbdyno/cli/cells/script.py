"""`dbdyno cells script`: its place among the commands; the work is `cells_run`'s."""

from __future__ import annotations

from dbdyno.cli.cells.run import script as command

__all__ = ["command"]
