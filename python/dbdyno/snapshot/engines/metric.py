"""A metric of a sub-interval: its name, label and unit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A metric of a sub-interval; `higher` says whether more is better, None if neither."""

    name: str
    label: str
    unit: str
    higher: bool | None = None
