"""`dbdyno cells watch`: its place among the commands; the work is `cells_record`'s."""

from __future__ import annotations

from dbdyno.cli.cells_record import watch as command

__all__ = ["command"]
