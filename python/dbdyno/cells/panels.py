"""Choice of a family's measures that are drawn over time, with few enough steps for a page."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.cells.page import Steps
from dbdyno.cells.series import Measure, MeasuredRecording, Step

MOST = 6
STEPS_MOST = 240
FIRST = {
    "FL": (
        "FL_IO_W",
        "flash first",
        "FL_IO_TM_W_RQ",
        "FL_PREVENTED_OUTLIERS",
        "FL_ACTUAL_OUTLIERS",
        "FL_IO_W_SKIP_BUSY",
    ),
    "FC": ("hits", "FC_IO_RQ_R", "FC_IO_RQ_R_MISS", "FC_IO_RQ_W", "FC_IO_RQ_W_SKIP", "FC_BY_DIRTY", "FC_BY_USED"),
    "CD": (
        "CD_IO_RQ_R_SM",
        "CD_IO_RQ_W_SM",
        "CD_IO_TM_R_SM_RQ",
        "CD_IO_TM_W_SM_RQ",
        "CD_IO_BY_R_LG",
        "CD_IO_BY_W_LG",
        "CD_IO_UTIL",
    ),
    "GD": ("GD_IO_RQ_R_SM", "GD_IO_RQ_W_SM", "GD_IO_BY_R_LG", "GD_IO_BY_W_LG"),
    "DB": ("DB_IO_RQ_SM", "DB_IO_TM_SM_RQ", "DB_IO_WT_SM_RQ", "DB_FC_IO_RQ_SM", "DB_FD_IO_RQ_SM", "DB_FD_IO_TM_SM_RQ"),
    "SIO": ("SIO_IO_EL_OF", "SIO_IO_OF_RE", "SIO_IO_RD_FC", "SIO_IO_RD_HD", "SIO_IO_SI_SV"),
    "CL": ("CL_CPUT", "CL_MEMUT", "CL_RUNQ", "CL_TEMP"),
}
"""Measures that are drawn first, by the first part of their names."""


def panels(recording: MeasuredRecording, family: str) -> list[dict[str, object]]:
    """Return the panels of a family: at most six measures that have values other than zero.

    Each panel has the steps of every cell as arrays, with times in seconds since the recording began.
    """
    return [
        {
            "name": measure.name,
            "unit": measure.unit,
            "meaning": measure.meaning,
            "cells": [_steps(cell, measure.cells.get(cell, ()), recording.began_ns) for cell in recording.cells],
        }
        for measure in choose_measures(recording.family(family))
    ]


def choose_measures(measures: Sequence[Measure]) -> list[Measure]:
    """Return the measures to draw: those named in `FIRST`, or else the first ones in order of their names."""
    moved = [measure for measure in measures if measure.is_nonzero]
    heads = {measure.name.partition("_")[0] for measure in moved}
    first = [name for head, names in FIRST.items() if head in heads for name in names]
    listed = [measure for name in first for measure in moved if measure.name == name]
    others = [] if listed else moved
    return [*listed, *others][:MOST]


def _steps(cell: str, steps: Sequence[Step], origin_ns: int) -> Steps:
    few = thin_out(steps)
    return {
        "cell": cell,
        "from_s": [round((step[0] - origin_ns) / 1e9, 3) for step in few],
        "to_s": [round((step[1] - origin_ns) / 1e9, 3) for step in few],
        "value": [step[2] / step[3] if step[3] else None for step in few],
    }


def thin_out(steps: Sequence[Step], limit: int = STEPS_MOST) -> list[Step]:
    """Return at most about `limit` steps by merging adjacent ones, never across a gap."""
    together = -(-len(steps) // limit)
    found: list[list[Step]] = []
    for step in steps:
        if found and len(found[-1]) < together and found[-1][-1][1] == step[0]:
            found[-1].append(step)
        else:
            found.append([step])
    return [(own[0][0], own[-1][1], sum(s[2] for s in own), sum(s[3] for s in own)) for own in found]
