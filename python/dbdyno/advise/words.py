"""Figures in the sentences of rules: sizes, shares, spans, three digits each."""

from __future__ import annotations

from dbdyno.advise.facts import Facts

MIB = 1024**2
GIB = 1024**3


def size(value: float) -> str:
    """`8 kB`, `1.5 GB`: in powers of 1024, as PostgreSQL writes them.

    >>> size(1536 * 1024)
    '1.5 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1024:
            return f"{_three(value)} {unit}"
        value /= 1024
    return f"{_three(value)} TB"


def share(value: float) -> str:
    """`12.3 %`."""
    return f"{_three(value * 100)} %"


def count(value: float) -> str:
    """`1,234`; below ten with digits."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else _three(value)


def span(seconds: float) -> str:
    """`40 µs`, `1.5 s`, `3.2 h`, `12 days`."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if seconds < limit:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds / 3600)} h" if seconds < 172800 else f"{_three(seconds / 86400)} days"


def setting_size(wanted: float) -> str:
    """A value of a setting of memory or WAL, rounded up to a power of two of megabytes: `64MB`, `2GB`."""
    megabytes = 1
    while megabytes * MIB < wanted:
        megabytes *= 2
    return f"{megabytes // 1024}GB" if megabytes >= 1024 else f"{megabytes}MB"


def setting_bytes(text: str) -> int:
    """What such a value is in bytes; 0 where it is no size.

    >>> setting_bytes("64MB"), setting_bytes("off")
    (67108864, 0)
    """
    digits = text.rstrip("kMGTB")
    factors = {"kB": 1024, "MB": MIB, "GB": GIB, "TB": 1024 * GIB}
    return int(digits) * factors.get(text[len(digits) :], 1) if digits.isdigit() else 0


def _three(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def beginning(text: str, most: int = 60) -> str:
    """How a statement begins."""
    words = " ".join(text.split())
    return words if len(words) <= most else words[: most - 1] + "…"


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def block_bytes(facts: Facts) -> int:
    """The server's block size."""
    found = facts.setting("block_size")
    return int(found.number) if found is not None else 8192


def value(facts: Facts, name: str, default: float) -> float:
    """A number of a setting; PostgreSQL's default where the role may not see it."""
    found = facts.setting(name)
    return found.number if found is not None else default


def counted(number: int, noun: str = "session") -> str:
    """`1 session`, `2 sessions`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
