"""A metric of a sub-interval: its name, label and unit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A metric of a sub-interval; `higher`: True if larger values are better, False if smaller, None if neither."""

    name: str
    label: str
    unit: str
    higher: bool | None = None
