"""Limits on the number of outstanding requests in each layer, for machines whose disks are accessed as LUNs.

Two limits apply, and they are easily confused: the host's limit per LUN (`sd_max_throttle`), and a port's limit (the
`queue_limit` of a channel), which is shared by all LUNs behind that port. The numbers are computed from the machine's
own parameters; nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dbdyno.model.machine import Machine

PIECE = 1 << 20
"""Size of the example request, in bytes: 1 MB."""


def sentences(machine: Machine, settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Return sentences about the limits on outstanding requests and how they are shared, for the settings of all arms.

    The list is empty if the machine has no LUN.
    """
    parts = {part["name"]: part for part in machine.parts}
    luns = [part for part in machine.parts if part["kind"] == "lun"]
    if not luns:
        return []
    lun = luns[0]
    stripe = next((p for p in machine.parts if lun["name"] in p["over"]), None)
    each = lun["count"] // (stripe["count"] if stripe else 1)
    throttles = _levels(machine, settings, f"devices.{lun['name']}.sd_max_throttle")
    told = []
    if stripe is not None:
        widths = _levels(machine, settings, f"devices.{stripe['name']}.stripe_kb")
        told += [_demand(width, each) for width in widths]
    told.append(
        f"The host's limit is per LUN: {_list(throttles)} requests under way on each, so at most "
        f"{_list([t * each for t in throttles])} on the {each} LUNs of one file system for all jobs "
        "together."
    )
    channels = [part for part in parts.values() if part["kind"] == "channel"]
    if channels:
        channel = channels[0]
        limit = machine.number(f"devices.{channel['name']}.queue_limit")
        shared = lun["count"] // channel["count"]
        told.append(
            f"A port has its own limit: {limit:g} commands, shared by the {shared} LUNs behind it; "
            f"{channel['count']} ports accept {limit * channel['count']:g} in all."
        )
    told.append(
        f"All jobs read the same data, so each of its {each} LUNs serves all of them: a request of "
        "one job takes the place of a request of another."
    )
    return told


def _demand(width: int, luns: int) -> str:
    pieces = max(PIECE // (width << 10), 1)
    on = min(pieces, luns)
    noun = "piece" if pieces == 1 else "pieces"
    return (
        f"With a stripe of {width} KB a read of 1 MB is split into {pieces} {noun} on {on} "
        f"LUN{'s' if on > 1 else ''}: J jobs send J × {pieces} at once, about "
        f"{_share(pieces / luns)} on each of {luns} LUNs."
    )


def _share(per_lun: float) -> str:
    return "J" if math.isclose(per_lun, 1) else f"J × {per_lun:.3g}"


def _levels(machine: Machine, settings: Sequence[Mapping[str, str]], path: str) -> list[int]:
    """Return the distinct values of a parameter over all arms in order; if no arm sets it, the machine's own value."""
    short = path.rpartition(".")[2]
    found = [own.get(path, own.get(short)) for own in settings]
    values = dict.fromkeys(int(value) for value in found if value is not None)
    return list(values) or [int(machine.number(path))]


def _list(values: list[int]) -> str:
    return " or ".join(str(value) for value in values)
