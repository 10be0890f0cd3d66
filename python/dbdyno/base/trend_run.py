"""Type of a run of a trend, as an analysis has it and a page shows it."""

from __future__ import annotations

from typing import TypedDict


class TrendRun(TypedDict, total=False):
    """A run of the trend; all dictionaries are by arm, except `canaries` and `off`.

    `values` is the value whose trend is computed, `lows` and `highs` its interval, `levels` the arm's absolute level,
    and `failed` the share of failed transactions if it is too large. `off` is the ratio of the run's canaries to the
    usual values, and `unread` the reason why the run could not be read.
    """

    run: str
    started_at: str
    values: dict[str, float | None]
    lows: dict[str, float | None]
    highs: dict[str, float | None]
    levels: dict[str, float | None]
    failed: dict[str, float]
    blocks: int
    canaries: dict[str, float]
    off: dict[str, float]
    comparable: bool
    unread: str
