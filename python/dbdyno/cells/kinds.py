"""What an object of a cell is compared with: its siblings, objects of one kind."""

from __future__ import annotations

import re


def kind_of(metric: str, item: str, cell: str) -> str:
    """What an object's siblings are called; '' where it has none. Grid disks of one group and cell
    disks of one medium are siblings: DATA_CD_03_cel01 is of 'grid disks DATA'."""
    if metric.startswith("CD_"):
        return "flash disks" if item.startswith("FD_") else "hard disks"
    if metric.startswith("GD_"):
        group = re.sub(r"_?[CF]D_\d+.*$", "", item)
        return f"grid disks {group}".rstrip()
    del cell
    return ""
