"""Intervals in addresses: `FIRST..LAST`, `1d`, `yesterday`; and the snapshots around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.reading.recent_activity import snapshots_around
from dbdyno.snapshot.store.folder import Snapshot

DAY_US = 86_400 * 10**6
CURRENT_INTERVALS = {"1h": DAY_US // 24, "6h": DAY_US // 4, "1d": DAY_US, "7d": 7 * DAY_US, "30d": 30 * DAY_US}
"""Lengths of the intervals that end with the last snapshot [us], by their names in addresses."""
COMPARISON_DISTANCES = {"yesterday": DAY_US, "last week": 7 * DAY_US}
"""Distance [us] from an interval back to the interval that it is compared with, by the latter's name in addresses."""
DEFAULT = "1d"


@dataclass(frozen=True)
class Stretch:
    """Interval of one server with its snapshots, from the last one before its start to the first one after its end."""

    low_us: int
    high_us: int
    chain: list[Snapshot]

    @property
    def text(self) -> str:
        """Return the interval in the form used in addresses."""
        return f"{iso(self.low_us)}..{iso(self.high_us)}"

    @property
    def ends(self) -> tuple[Snapshot, Snapshot]:
        """Return the first and the last snapshot."""
        return self.chain[0], self.chain[-1]

    @property
    def numbers(self) -> tuple[int, int]:
        """Return the numbers of both ends, which commands accept."""
        return self.chain[0].number, self.chain[-1].number


def stretch_of(snapshots: Sequence[Snapshot], text: str) -> Stretch:
    """Return the interval that an address names; an empty text means the last day.

    Raises:
        SnapshotError: There are fewer than two snapshots, or the text does not name an interval.
    """
    if len(snapshots) < 2:
        raise SnapshotError(
            "there are fewer than two snapshots, so there is no interval to show",
            next_step="take more with `dbdyno snap watch --target DSN --every 60s`",
        )
    if (text or DEFAULT) in CURRENT_INTERVALS:
        high = snapshots[-1].at_ns // 1000
        return stretch_around(snapshots, high - CURRENT_INTERVALS[text or DEFAULT], high)
    first, dots, last = text.partition("..")
    low, until = moment_us(first), moment_us(last)
    if not dots or low is None or until is None or low >= until:
        raise SnapshotError(
            f"{text!r:.60} is not an interval", next_step="write 2026-11-21T10:00..2026-11-21T11:00, 1h, 1d or 7d"
        )
    return stretch_around(snapshots, low, until)


def comparison_stretch(snapshots: Sequence[Snapshot], stretch: Stretch, text: str) -> Stretch:
    """Return the interval with which `stretch` is compared: `yesterday`, `last week` or an explicit one.

    Raises:
        SnapshotError: The snapshots do not go back that far.
    """
    if text not in COMPARISON_DISTANCES:
        return stretch_of(snapshots, text)
    low, high = stretch.low_us - COMPARISON_DISTANCES[text], stretch.high_us - COMPARISON_DISTANCES[text]
    if high <= snapshots[0].at_ns // 1000:
        raise SnapshotError(
            f"there are no snapshots of {text} at that time",
            next_step=f"name a later interval; the first snapshot was taken at {iso(snapshots[0].at_ns // 1000)}",
        )
    return stretch_around(snapshots, low, high)


def stretch_around(snapshots: Sequence[Snapshot], low_us: int, high_us: int) -> Stretch:
    """Return an interval between two instants, limited to what the snapshots cover."""
    chain = snapshots_around(snapshots, low_us, high_us)
    ends = chain[0].at_ns // 1000, chain[-1].at_ns // 1000
    return Stretch(min(max(low_us, ends[0]), ends[1] - 1), max(min(high_us, ends[1]), ends[0] + 1), chain)


def iso(at_us: float) -> str:
    """Return an instant in the form that addresses and commands accept: `2026-11-21T10:12:00`, UTC."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def moment_us(text: str) -> int | None:
    """Return an instant from an address in microseconds since 1970 (UTC unless it has a zone), or None."""
    try:
        at = datetime.fromisoformat(text)
        return round((at.replace(tzinfo=UTC) if at.tzinfo is None else at).timestamp() * 1e6)
    except (ValueError, OverflowError):
        return None
