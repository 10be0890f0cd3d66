"""Numbers within sentences, with three significant digits and times in a readable unit."""

from __future__ import annotations

from decimal import Decimal


def three_digits(value: float) -> str:
    """Return a number with three significant digits, never with an exponent: `1,930`, `0.111`."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{Decimal(str(rounded)):f}".removesuffix(".0")


def time_change(old: float, new: float) -> str:
    """Return a change of time such as `162 µs → 5.43 ms`, from milliseconds."""
    return f"{duration_text(old)} → {duration_text(new)}"


def rate_change(old: float, new: float) -> str:
    """Return a change of a rate such as `0 → 212 a second`, from rates per second."""
    return f"{three_digits(old)} → {three_digits(new)} a second"


def setting_change(name: object, old: object, new: object) -> str:
    """Return a change such as `work_mem: 4096 → 65536`; a missing or empty value is written as such."""
    return " → ".join([f"{name}: {_value(old)}", _value(new)])


def _value(value: object) -> str:
    return "(not there)" if value is None else str(value) or "(empty)"


def duration_text(ms: float) -> str:
    """Return a time with its unit, from milliseconds; `0` for zero or less."""
    if ms <= 0:
        return "0"
    for limit, factor, unit in ((1, 1e3, "µs"), (1000, 1, "ms")):
        if ms < limit:
            return f"{three_digits(ms * factor)} {unit}"
    return f"{three_digits(ms / 1000)} s"
