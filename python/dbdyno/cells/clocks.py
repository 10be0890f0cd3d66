"""How far a cell's clock is from ours: its times of collection against the times at which it was asked.

    asked   10:00:30   10:01:30   10:02:30
    cell    09:00:12   09:01:12   09:02:12        an hour behind: a cell collects once a minute, so that what it
                                                  shows is between nothing and a minute old

Only collections that were new in their round count: a cell that has stopped collecting shows an old time by any
clock. A clock within `NEAR_S` is taken for right, since nothing finer can be told. One that runs at another pace,
as those of modelled cells may, has no constant distance, and none is given.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MINUTE_S = 60.0
NEAR_S = 120.0
STEADY_S = 120.0
"""How far a distance may wander over a recording and still be one: rounds may be late by a minute."""


@dataclass(frozen=True)
class Clock:
    """A cell's clock: how many s it is ahead of ours (negative: behind; 0 where it is right), and whether that is
    for certain: with a single collection a cell may as well have stopped collecting long ago."""

    ahead_s: float = 0.0
    certain: bool = True
    other_pace: float | None = None

    @property
    def words(self) -> str:
        """'about 1 h ahead of ours'; '' for a clock that is right."""
        if self.other_pace is not None:
            was_set = 0.5 < self.other_pace < 2
            return "was set meanwhile" if was_set else f"runs {self.other_pace:.3g} times as fast as ours"
        if not self.ahead_s:
            return ""
        return f"is {about(abs(self.ahead_s))} {'ahead of' if self.ahead_s > 0 else 'behind'} ours"


def clock_of(asked_ns: Sequence[int], collected_ns: Sequence[int]) -> Clock:
    """The clock of a cell that was asked at these times and showed these collections."""
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
    # What is shown is half a minute old on average; from the future nothing can be shown.
    return Clock(middle + MINUTE_S / 2, certain=len(new) > 1 or middle > 0)


def clocks_of(asked: Mapping[int, int], times: Mapping[str, Mapping[int, int]]) -> dict[str, Clock]:
    """The clocks of cells, from when each round was asked for and the newest time of collection in it."""
    return {
        cell: clock_of([asked[block] for block in own], list(own.values()))
        for cell, seen in times.items()
        if (own := {block: at_ns for block, at_ns in seen.items() if block in asked})
    }


def about(seconds: float) -> str:
    """A length of time as one would say it: 42 s, 5 min, 3.2 h, 12 days."""
    for size, unit in ((86_400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size or (unit == "h" and seconds >= 0.95 * size):
            return f"{round(seconds / size, 1):g} {unit}"
    return f"{seconds:.0f} s"
