"""Numbers as CellCLI prints them: thousands separated by commas, optionally followed by a unit.

CellCLI rounds: three decimals below about 100, none above. Values are read exactly as printed; `last_digit_value` gives
their resolution. Sizes have a one-letter unit (365.25G).
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(-?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\d.,])\s*(\S.*)?")
_SIZE = re.compile(r"(-?\d[\d,]*(?:\.\d+)?)([KMGTP])B?")
_SCALE = {letter: 1024.0 ** (at + 1) for at, letter in enumerate("KMGTP")}


def number_and_unit(text: str) -> tuple[float, str] | None:
    """Return number and unit: (2930.0, 'IO requests') for '2,930 IO requests'; None if there is no leading number."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    return float(match[1].replace(",", "")), (match[2] or "").strip()


def last_digit_value(text: str) -> float:
    """Return the value of the last printed digit's position; the rounding error is at most half of it."""
    number = text.strip().split(maxsplit=1)[0]
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - decimals))


def size_bytes(text: str) -> int | None:
    """Return the bytes of a size such as '512M', '365.25G' or '5.82122802734375T'; None if it is not a size."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else round(float(match[1].replace(",", "")) * _SCALE[match[2]])


def cellcli_text(value: float, unit: str) -> str:
    """Return a value as CellCLI prints it; the inverse of `number_and_unit`, up to the printed digits."""
    if unit in ("MB", "MB/sec", "KB/sec"):
        number = f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    elif unit in ("IO/sec", "ms/request", "us/request", "C", "/min"):
        number = f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"
    elif value == int(value):
        number = f"{int(value):,}"
    else:
        number = f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{number} {unit}".rstrip()
