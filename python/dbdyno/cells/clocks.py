"""Offset of a cell's clock from this machine's clock, from collection times and the times of the queries.

    asked   10:00:30   10:01:30   10:02:30
    cell    09:00:12   09:01:12   09:02:12        an hour behind: a cell collects once a minute, so what it shows
                                                  is between zero and one minute old

Only collections that were new in their round count: a cell that has stopped collecting shows an old time on any clock.
A clock that differs by at most `NEAR_S` counts as correct, because smaller differences cannot be determined. A clock
with a different rate, as modelled cells may have, has no constant offset, and none is returned.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MINUTE_S = 60.0
NEAR_S = 120.0
STEADY_S = 120.0
"""Largest variation of the offset within a recording, in seconds; rounds may be late by up to a minute."""


@dataclass(frozen=True)
class Clock:
    """A cell's clock: its offset in seconds (positive: ahead; 0 if correct), and whether that is certain.

    The offset is not certain if there is only one collection: the cell may have stopped collecting long ago.
    `other_pace` is the clock's rate relative to this machine's, if it differs.
    """

    ahead_s: float = 0.0
    certain: bool = True
    other_pace: float | None = None

    @property
    def offset_text(self) -> str:
        """Return the offset in words, such as 'is 1 h ahead of ours'; empty if the clock is correct."""
        if self.other_pace is not None:
            was_set = 0.5 < self.other_pace < 2
            return "was set meanwhile" if was_set else f"runs {self.other_pace:.3g} times as fast as ours"
        if not self.ahead_s:
            return ""
        return f"is {duration_words(abs(self.ahead_s))} {'ahead of' if self.ahead_s > 0 else 'behind'} ours"


def clock_of(asked_ns: Sequence[int], collected_ns: Sequence[int]) -> Clock:
    """Return the clock of a cell from the times when it was queried and the collection times that it showed."""
    pairs = [(a / 1e9, c / 1e9) for a, c in zip(asked_ns, collected_ns, strict=True)]
    new = [pair for at, pair in enumerate(pairs) if at == 0 or pair[1] != pairs[at - 1][1]]
    if not new:
        return Clock()
    fresh = new[1:] or new
    ahead = [collected - asked for asked, collected in fresh]
    if len(fresh) > 1 and max(ahead) - min(ahead) > STEADY_S:
        passed = fresh[-1][0] - fresh[0][0]
        return Clock(other_pace=(fresh[-1][1] - fresh[0][1]) / passed if passed > 0 else None)
    middle = statistics.median(ahead)
    if -MINUTE_S - NEAR_S <= middle <= NEAR_S:
        return Clock()
    # What a cell shows is half a minute old on average, and never from the future.
    return Clock(middle + MINUTE_S / 2, certain=len(new) > 1 or middle > 0)


def clocks_of(asked: Mapping[int, int], times: Mapping[str, Mapping[int, int]]) -> dict[str, Clock]:
    """Return the clocks of cells, from the query time of each round and the newest collection time in it."""
    return {
        cell: clock_of([asked[block] for block in own], list(own.values()))
        for cell, seen in times.items()
        if (own := {block: at_ns for block, at_ns in seen.items() if block in asked})
    }


def duration_words(seconds: float) -> str:
    """Return a duration in a suitable unit: 42 s, 5 min, 3.2 h, 12 days."""
    for size, unit in ((86_400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size or (unit == "h" and seconds >= 0.95 * size):
            return f"{round(seconds / size, 1):g} {unit}"
    return f"{seconds:.0f} s"
