"""Figures in the sentences of rules: sizes, shares and durations, with three significant digits."""

from __future__ import annotations

from dbdyno.advise.facts import Facts
from dbdyno.advise.kinds import Table

MIB = 1024**2
GIB = 1024**3


def size(value: float) -> str:
    """Return a size such as `8 kB` or `1.5 GB`, in powers of 1024 as in PostgreSQL.

    >>> size(1536 * 1024)
    '1.5 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1024:
            return f"{_three(value)} {unit}"
        value /= 1024
    return f"{_three(value)} TB"


def share(value: float) -> str:
    """Return a share in per cent, such as `12.3 %`."""
    return f"{_three(value * 100)} %"


def count(value: float) -> str:
    """Return a number such as `1,234`; a fraction below ten has three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else _three(value)


def duration(seconds: float) -> str:
    """Return a duration such as `40 µs`, `1.5 s`, `3.2 h` or `12 days`."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if seconds < limit:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds / 3600)} h" if seconds < 172800 else f"{_three(seconds / 86400)} days"


def setting_size(wanted: float) -> str:
    """Return a value for a memory or WAL setting, rounded up to a power of two of megabytes: `64MB`, `2GB`."""
    megabytes = 1
    while megabytes * MIB < wanted:
        megabytes *= 2
    return f"{megabytes // 1024}GB" if megabytes >= 1024 else f"{megabytes}MB"


def setting_bytes(text: str) -> int:
    """Return a setting such as `64MB` in bytes, or 0 if it is not a size.

    >>> setting_bytes("64MB"), setting_bytes("off")
    (67108864, 0)
    """
    digits = text.rstrip("kMGTB")
    factors = {"kB": 1024, "MB": MIB, "GB": GIB, "TB": 1024 * GIB}
    return int(digits) * factors.get(text[len(digits) :], 1) if digits.isdigit() else 0


def _three(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def beginning(text: str, limit: int = 60) -> str:
    """Return the beginning of a statement's text, as one line of at most `limit` characters."""
    words = " ".join(text.split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def block_bytes(facts: Facts) -> int:
    """Return the server's block size in bytes."""
    found = facts.setting("block_size")
    return int(found.number) if found is not None else 8192


def setting_number(facts: Facts, name: str, default: float) -> float:
    """Return a setting as a number, or `default` if the server does not show it to the role."""
    found = facts.setting(name)
    return found.number if found is not None else default


def table_number(facts: Facts, table: Table, name: str, default: float) -> float:
    """Return a number that a table or the server sets, or `default` if neither shows it."""
    return float(table.option(name) or setting_number(facts, name, default))


def with_noun(number: int, noun: str = "session") -> str:
    """Return a number with its noun: `1 session`, `2 sessions`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
