"""Maps of cells and disks: for each metric, one value per cell and disk over the whole recording."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

from dbdyno.base.json_types import TableRow
from dbdyno.base.sections import Table, columns, table
from dbdyno.cells.catalogue import metric
from dbdyno.cells.page import DiskMap

KINDS = ("hard disks", "flash disks")
RATES = ("CD_IO_RQ_R_SM", "CD_IO_RQ_W_SM", "CD_IO_BY_R_LG", "CD_IO_BY_W_LG")
TIMES = ("CD_IO_TM_R_SM", "CD_IO_TM_W_SM", "CD_IO_TM_R_LG", "CD_IO_TM_W_LG")
_DISK = re.compile(r"([CF]D_\d+)")

Objects = Sequence[tuple[str, str, str, str, float, float, float]]


def disk_maps(cells: Sequence[str], objects: Objects) -> list[DiskMap]:
    """Return one map for each kind of disk and each metric that has values other than zero.

    `values[cell][disk]` is None if a disk has no value; `objects` is the result of `Measured.objects`.
    """
    maps = []
    for kind in KINDS:
        disks = sorted({disk_of(item) for family, _, _, item, *_ in objects if family == kind})
        for name in (*RATES, *TIMES):
            values = _values(kind, name, objects)
            if any(values.values()):
                maps.append(_map(kind, name, cells, disks, values))
    return maps


def _values(kind: str, name: str, objects: Objects) -> dict[tuple[str, str], float]:
    found = {}
    for family, own, cell, item, delta, seconds, requests in objects:
        if (family, own) != (kind, name):
            continue
        if name in TIMES:
            if requests:
                found[cell, disk_of(item)] = delta / requests * 1e3
        elif seconds:
            found[cell, disk_of(item)] = delta / seconds
    return found


def disk_of(item: str) -> str:
    """Return a disk's name without its cell's name: CD_03 for CD_03_cel01."""
    match = _DISK.match(item)
    return match[1] if match else item


def _map(
    kind: str,
    name: str,
    cells: Sequence[str],
    disks: Sequence[str],
    values: dict[tuple[str, str], float],
) -> DiskMap:
    timed = name in TIMES
    shown = f"{name}_RQ" if timed else name
    unit = "ns" if timed else "MB/s" if "_BY_" in name else "1/s"
    return {
        "kind": kind,
        "name": shown,
        "unit": unit,
        "meaning": metric(shown).meaning,
        "cells": list(cells),
        "disks": list(disks),
        "values": [[values.get((cell, disk)) for disk in disks] for cell in cells],
        "median": statistics.median(values.values()),
    }


def disk_table(maps: Sequence[DiskMap]) -> Table:
    """Return a table with a row per map: the disk with the lowest value, the one with the highest, the median."""
    rows: list[TableRow] = []
    for one in maps:
        known = sorted(
            (value, f"{cell} {disk}")
            for cell, line in zip(one["cells"], one["values"], strict=True)
            for disk, value in zip(one["disks"], line, strict=True)
            if value is not None
        )
        (low, lowest), (high, highest) = known[0], known[-1]
        rows.append(
            {
                "metric": f"{one['name']} of {one['kind']}",
                "unit": one["unit"],
                "low": low,
                "lowest": lowest,
                "median": one["median"],
                "high": high,
                "highest": highest,
                "times": high / one["median"] if one["median"] else None,
            }
        )
    shown = columns(
        "metric:text low:quantity:least lowest:text:of median:quantity high:quantity:most highest:text:of"
        " times:times:most_/_median"
    )
    return table("Least and most", shown, rows)
