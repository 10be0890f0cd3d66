"""Type of a run of a trend, as an analysis has it and a page shows it."""

from __future__ import annotations

from typing import TypedDict


class TrendRun(TypedDict, total=False):
    """A run of the trend; all dictionaries are by arm, except `canaries` and `off`.

    `values`, `lows` and `highs` are the value that is followed with its interval, `levels` the arm's own level,
    `failed` the share that failed if it is too large. `off` is the ratio of its canaries to the usual ones, `unread`
    the reason why nothing could be read.
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
