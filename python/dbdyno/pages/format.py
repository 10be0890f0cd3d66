"""Formatting of numbers and foreign text for pages: pure functions without state or locale.

Times are given in whole nanoseconds, sizes in bytes, shares and ratios as plain floats. The result is text with three
or four significant digits and a unit, separated by a narrow no-break space (SI brochure, 5.4.3). `None`, NaN and
infinity become an en dash, because a report with a gap is more useful than no report.

>>> duration(118_250)
'118\\u202fµs'
>>> change(1.066)
'+6.6\\u202f%'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from dbdyno.base import escaping

line = escaping.escape_line
text = escaping.escape_text

THIN = "\u202f"
NONE = "–"
FACTOR_MOST = 1000
"""Ratios above this number, or below its reciprocal, are shown as a bound such as `>`."""
MINUS = "−"

_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SIZE_UNITS = (
    (2.0**50, "PiB"),
    (2.0**40, "TiB"),
    (2.0**30, "GiB"),
    (2.0**20, "MiB"),
    (2.0**10, "KiB"),
    (1.0, "B"),
)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: object) -> float | None:
    """Return the value as a finite float, or None if it is absent, not a number, or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        given = float(value)
    except OverflowError:
        return None
    return given if math.isfinite(given) else None


def significant(value: object, digits: int = 3) -> str:
    """Return the value with `digits` significant digits and no exponent; digits before the point are never dropped.

    With five or more digits before the point, groups of three are separated by a thin space.
    """
    given = number(value)
    if given is None:
        return NONE
    return _with_sign(given, _group_digits(f"{abs(given):.{_places(given, digits)}f}"))


def digits(value: object) -> str:
    """Return a number with all its digits; with five or more before the point, thousands are separated."""
    given = number(value)
    if given is None:
        return NONE
    if given == int(given) and abs(given) < 2**53:
        return _with_sign(given, _group_digits(f"{abs(given):.0f}"))
    plain = f"{abs(given):.12g}"
    return _with_sign(given, plain if "e" in plain else _group_digits(plain))


def duration(ns: object, digits: int = 3) -> str:
    """Return a time in nanoseconds as text in ns, µs, ms or s."""
    return _scale(ns, _TIME_UNITS, digits)


def difference(ns: object) -> str:
    """Return a difference of times with its sign, rounded to whole nanoseconds: `+52.3 µs`."""
    given = number(ns)
    if given is None:
        return NONE
    shown = duration(round(given))
    return f"+{shown}" if round(given) > 0 else shown


def size(value: object, digits: int = 3) -> str:
    """Return a size in bytes as text in B, KiB, MiB, GiB, TiB or PiB (IEC 80000-13)."""
    return _scale(value, _SIZE_UNITS, digits)


def quantity(value: object, unit: str | None, digits: int = 3) -> str:
    """Return a value in the unit that the analysis names: `ns`, `B`, `1/s`, `1`, or another one, which is appended."""
    if unit == "ns":
        return duration(value, digits)
    if unit in ("B", "bytes"):
        return size(value, digits)
    if unit == "1/s":
        return rate(value, digits + 1)
    shown = significant(value, digits)
    return shown if unit in (None, "", "1") or shown == NONE else f"{shown}{THIN}{text(unit)}"


def count(value: object) -> str:
    """Return a whole number; with five or more digits, thousands are separated by a thin space."""
    given = number(value)
    return NONE if given is None else _with_sign(given, _group_digits(f"{abs(given):.0f}"))


def rate(per_s: object, digits: int = 4) -> str:
    """Return a rate in events per second."""
    shown = significant(per_s, digits)
    return shown if shown == NONE else f"{shown}{THIN}/s"


def percent(share: object, digits: int = 2, *, trim: bool = False) -> str:
    """Return a share (1.0 is the whole) in per cent; a very small one as an upper bound.

    `trim` drops trailing zeros: `2 %` for a threshold that somebody chose.
    """
    given = number(share)
    if given is None:
        return NONE
    if given == 0:
        return f"0{THIN}%"
    if 0 < given < 1e-5:
        return f"<{THIN}0.001{THIN}%"
    shown = significant(given * 100, digits)
    if given < 1 and shown == "100":
        shown = significant(given * 100, 3) if given < 0.9995 else f">{THIN}99.9"
    if trim and "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    return f"{shown}{THIN}%"


def change(ratio: object) -> str:
    """Return a ratio as a signed change, 1.066 as `+6.6 %`; a large change as a factor: `×2.40`."""
    given = number(ratio)
    if given is None or given < 0:
        return NONE
    if given >= FACTOR_MOST:
        return f">{THIN}×{count(FACTOR_MOST)}"
    if given <= 1 / FACTOR_MOST:
        return f"<{THIN}×{1 / FACTOR_MOST:g}"
    if _is_factor(given):
        return f"×{significant(given, 3)}"
    points = (given - 1) * 100
    shown = f"{abs(points):.{2 if abs(points) < 0.095 else 1 if abs(points) < 9.95 else 0}f}"
    if float(shown) == 0:
        return f"0{THIN}%"
    return f"{'+' if points > 0 else MINUS}{shown}{THIN}%"


def _is_factor(ratio: float) -> bool:
    """Return True if a ratio is easier to read as a factor than as a percentage."""
    return ratio >= 2 or ratio <= 0.5


def interval(low: object, high: object) -> str:
    """Return two ratios as a range of changes, `+5.9 % to +7.3 %`, or of factors if one is large: `×1.90 to ×2.40`."""
    ends = [end for end in (number(low), number(high)) if end is not None]
    if len(ends) < 2:
        return NONE
    if not any(map(_is_factor, ends)):
        return f"{change(low)} to {change(high)}"
    return " to ".join(change(end) if _is_factor(end) or end < 0 else f"×{significant(end, 3)}" for end in ends)


def probability(p: object) -> str:
    """Return a p-value with three decimals; below 0.001 as a bound."""
    given = number(p)
    if given is None:
        return NONE
    return f"<{THIN}0.001" if given < 0.001 else f"{given:.3f}"


def log10_probability(log10_p: object) -> str:
    """Return a p-value as text from its decimal logarithm, since it may be too small for a float: `10⁻¹⁵⁰⁴⁷`."""
    given = number(log10_p)
    if given is None:
        return NONE
    if given > -3:
        return probability(10 ** min(given, 0.0))
    return f"10{str(round(given)).translate(_RAISED)}"


def span(seconds: object) -> str:
    """Return a length of time in seconds for people: `850 ms`, `12.3 s`, `2 min 5 s`, `3 h 20 min`."""
    given = number(seconds)
    if given is None:
        return NONE
    if abs(given) < 99.95:
        return duration(given * 1e9)
    minutes, rest = divmod(round(abs(given)), 60)
    hours, minutes_left = divmod(minutes, 60)
    pair = ((hours, "h"), (minutes_left, "min")) if hours else ((minutes, "min"), (rest, "s"))
    return _with_sign(given, " ".join(f"{n}{THIN}{unit}" for n, unit in pair))


def moment(iso: object) -> str:
    """Return an ISO 8601 time stamp as `2026-11-21 10:02:11 UTC`; other text is returned as one safe line."""
    if not isinstance(iso, str):
        return NONE
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return line(iso)
    zone = "" if at.tzinfo is None else " UTC"
    return (at if at.tzinfo is None else at.astimezone(UTC)).strftime("%Y-%m-%d %H:%M:%S") + zone


def seconds(ns: object) -> str:
    """Return a time in nanoseconds as seconds with six decimals, so that a column adds up: `12.000345`."""
    given = number(ns)
    if given is None:
        return NONE
    micro = round(abs(given) / 1000)
    whole = f"{micro // 1_000_000:,}".replace(",", THIN)
    return f"{MINUS if given < 0 else ''}{whole}.{micro % 1_000_000:06d}"


def share(value: object) -> str:
    """Return a share in per cent with one decimal, so that a column is aligned; the sign is kept."""
    given = number(value)
    if given is None:
        return NONE
    return f"{MINUS if given < -0.0005 else ''}{abs(given) * 100:.1f}{THIN}%"


def clock(ns: object, every_ns: float = 1e9) -> str:
    """Return the time of day (UTC) of a moment, with the digits needed for intervals of `every_ns`."""
    given = number(ns)
    if given is None:
        return NONE
    whole, rest = divmod(int(given), 1_000_000_000)
    shown = datetime.fromtimestamp(whole, UTC).strftime("%H:%M:%S")
    if every_ns >= 1e9:
        return shown
    return f"{shown}.{rest // 1_000_000:03d}" if every_ns >= 1e6 else f"{shown}.{rest // 1000:06d}"


def quantile_name(quantile: float) -> str:
    """Return the name of a quantile: 0.5 is `p50`, 0.999 is `p99.9`."""
    return f"p{quantile * 100:.6g}"


def _places(value: float, digits: int) -> int:
    """Return the number of decimals that gives `digits` significant digits after rounding (9.996 becomes 10.0)."""
    if value == 0:
        return 0
    exponent = int(f"{abs(value):.{digits - 1}e}".rpartition("e")[2])
    return max(0, digits - 1 - exponent)


def _scale(value: object, units: tuple[tuple[float, str], ...], digits: int) -> str:
    given = number(value)
    if given is None:
        return NONE
    smallest, smallest_name = units[-1]
    for factor, name in units:
        rounded = float(f"{abs(given) / factor:.{digits - 1}e}")
        if rounded >= 1 and factor > smallest:
            return f"{significant(given / factor, digits)}{THIN}{name}"
    whole = float(given).is_integer()
    shown = count(given) if whole else significant(given / smallest, digits)
    return f"{shown}{THIN}{smallest_name}"


def _group_digits(plain: str) -> str:
    whole, dot, rest = plain.partition(".")
    return (f"{int(whole):,}".replace(",", THIN) if len(whole) > 4 else whole) + dot + rest


def _with_sign(value: float, shown: str) -> str:
    is_zero = not shown.strip("0." + THIN)
    return shown if value >= 0 or is_zero else MINUS + shown


def branches(levels: Sequence[int]) -> list[str]:
    """Return the branch characters in front of each node of a tree, such as `│  └─ `.

    `levels` are the depths of the nodes in the order of the tree.
    """
    found = []
    for at, level in enumerate(levels):
        cells = ["│  " if _goes_on(levels, at, up) else "   " for up in range(1, level)]
        last = [] if level < 1 else ["├─ " if _goes_on(levels, at, level) else "└─ "]
        found.append("".join([*cells, *last]))
    return found


def _goes_on(levels: Sequence[int], at: int, level: int) -> bool:
    """Return True if a later node at this level has the same parent."""
    return next((later == level for later in levels[at + 1 :] if later <= level), False)
