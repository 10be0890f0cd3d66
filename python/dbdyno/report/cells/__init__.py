"""Pages about storage cells. A comparison of two recordings has the shape of one of snapshots."""

from __future__ import annotations

from dbdyno.report.snapshot import order, render_text, rows

__all__ = ["order", "render_text", "rows"]
