"""Siblings of a cell's object: the objects of the same kind that it is compared with."""

from __future__ import annotations

import re


def kind_of(metric: str, item: str, cell: str) -> str:
    """Return the name of an object's kind; empty if it has no siblings.

    Grid disks of one group are siblings, and so are cell disks of one medium: DATA_CD_03_cel01 belongs to 'grid disks
    DATA'.
    """
    if metric.startswith("CD_"):
        return "flash disks" if item.startswith("FD_") else "hard disks"
    if metric.startswith("GD_"):
        group = re.sub(r"_?[CF]D_\d+.*$", "", item)
        return f"grid disks {group}".rstrip()
    del cell
    return ""
