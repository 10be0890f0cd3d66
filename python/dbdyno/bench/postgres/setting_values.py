"""Values of PostgreSQL's settings as text: how they are written, parsed with units and compared, without an engine.

The rules are those of PostgreSQL's own parser of configuration values: booleans may be abbreviated, whole numbers may
be hexadecimal or octal and may have a fraction and a unit, and a number without a unit is in the setting's base unit
(pg_settings.unit, such as `8kB` or `ms`).

Source: https://www.postgresql.org/docs/current/config-setting.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

SettingValue = str | int | float | bool

MEMORY_BYTES = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
TIME_MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}

LIST_OF_QUOTED = frozenset(
    {
        "local_preload_libraries",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "temp_tablespaces",
        "unix_socket_directories",
    }
)
"""List settings that ALTER SYSTEM quotes element by element, so that a list must not be passed as one literal."""

_NUMBER = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d+)?))\s*([A-Za-z]*)\s*")


@dataclass(frozen=True, slots=True)
class SettingFact:
    """Row of pg_settings for one setting; `setting` is the value in effect, in the unit `unit`."""

    name: str
    setting: str
    unit: str | None
    context: str
    vartype: str
    source: str
    min_value: str | None
    max_value: str | None
    enum_values: Sequence[str]
    source_file: str | None
    pending_restart: bool


def as_text(value: SettingValue) -> str:
    """Return a value of a plan as PostgreSQL writes it: True is `on`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def configuration_line(name: str, value: str) -> str:
    """Return one line of a configuration file, with the value quoted so that it stays one value.

    Raises:
        ValueError: `name` is not the name of a setting.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?", name):
        raise ValueError(f"not a setting's name: {name!r}")
    inner = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    assign = " " if name == "include" else " = "
    return f"{name}{assign}'{inner}'\n"


def quoted_element(text: str) -> str:
    """Return one element of a list setting, quoted."""
    return '"' + text.replace('"', '""') + '"'


def list_elements(text: str) -> list[str]:
    """Return the elements of a list setting: `a, "b, c"` has two."""
    parts = re.findall(r'"(?:[^"]|"")*"|[^,"\s][^,]*', text)
    bare = [part[1:-1].replace('""', '"') if part.startswith('"') else part.strip() for part in parts]
    return bare or [""]


def problem_with(fact: SettingFact, text: str) -> str | None:
    """Return why PostgreSQL would refuse this value, as a clause, or None if it fits type, range and choices."""
    if "\0" in text:
        return "a value cannot contain a zero byte"
    if fact.vartype == "bool":
        return None if parse_bool(text) is not None else "expected on or off"
    if fact.vartype == "enum":
        known = [choice.lower() for choice in fact.enum_values]
        fits = text.lower() in known
        return None if fits else f"expected one of {', '.join(fact.enum_values)}"
    if fact.vartype in ("integer", "real"):
        return _problem_with_number(fact, text)
    return None


def same_value(fact: SettingFact, wanted: str) -> bool:
    """Return True if the value in effect (`fact.setting`) equals the wanted one, even if it is written differently."""
    if fact.vartype == "bool":
        return parse_bool(fact.setting) == parse_bool(wanted)
    if fact.vartype == "enum":
        return fact.setting.lower() == wanted.strip().lower()
    if fact.vartype in ("integer", "real"):
        left, right = parse_number(fact.setting, fact), parse_number(wanted, fact)
        if left is None or right is None:
            return False
        return math.isclose(left, right, rel_tol=1e-6)
    if fact.name in LIST_OF_QUOTED:
        return list_elements(fact.setting) == list_elements(wanted)
    return fact.setting == wanted


def with_unit(fact: SettingFact, number: str | None) -> str:
    """Return a bare number of pg_settings with its unit: 16 in a setting with the unit `8kB` gives `128kB`."""
    match = re.fullmatch(r"(\d+)(\D+)", fact.unit or "")
    if match and number:
        return f"{int(number) * int(match.group(1))}{match.group(2)}"
    return f"{number or ''}{fact.unit or ''}"


def parse_bool(text: str) -> bool | None:
    """Parse a boolean as PostgreSQL does, or return None if the text is not a boolean.

    It accepts on, off, 1, 0, and unambiguous prefixes of true, false, yes, no, on and off.
    """
    low = text.strip().lower()
    if low in ("on", "1") or (low and ("true".startswith(low) or "yes".startswith(low))):
        return True
    if low in ("of", "off", "0") or (low and ("false".startswith(low) or "no".startswith(low))):
        return False
    return None


def parse_number(text: str, fact: SettingFact) -> float | None:
    """Return the number in the setting's base unit (rounded for integer settings), or None if the text is no number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits, unit = match.groups()
    factor = _factor(unit, fact.unit)
    if factor is None:
        return None
    whole = fact.vartype == "integer"
    number = _plain_number(digits, whole) * factor
    return float(round(number)) if whole else number


def _plain_number(digits: str, whole: bool) -> float:
    bare = digits.lstrip("+-")
    sign = -1 if digits.startswith("-") else 1
    if bare.lower().startswith("0x"):
        return sign * int(bare, 16)
    if whole and re.fullmatch(r"0[0-7]+", bare):
        return sign * int(bare, 8)
    return float(digits)


def _factor(unit: str, base: str | None) -> float | None:
    """Return the number of base units in one unit, or None if the two are not compatible."""
    if not unit:
        return 1.0
    match = re.fullmatch(r"(\d*)([A-Za-z]+)", base or "")
    if match is None:
        return None
    count, base_unit = int(match.group(1) or 1), match.group(2)
    for table in (MEMORY_BYTES, TIME_MICROSECONDS):
        if unit in table and base_unit in table:
            return table[unit] / (table[base_unit] * count)
    return None


def _problem_with_number(fact: SettingFact, text: str) -> str | None:
    number = parse_number(text, fact)
    if number is None:
        return f"expected a number{_unit_hint(fact)}"
    low, high = float(fact.min_value or "-inf"), float(fact.max_value or "inf")
    if not low <= number <= high:
        return f"outside {with_unit(fact, fact.min_value)} .. {with_unit(fact, fact.max_value)}"
    return None


def _unit_hint(fact: SettingFact) -> str:
    base = re.sub(r"^\d+", "", fact.unit or "")
    for table in (MEMORY_BYTES, TIME_MICROSECONDS):
        if base in table:
            return f", with or without a unit ({', '.join(table)})"
    return " without a unit"
