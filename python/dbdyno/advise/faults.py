"""Tables of known faults and releases, and the check whether a fault affects a server.

`faults.tsv`: `majors` is `12-15` (PostgreSQL) or ranges of versions `10.6.0-10.6.8 10.11.0-10.11.2` (MariaDB); `fixed`
is a minor release; other majors have the fix in their minor release of the same day (`same_day.tsv`). `condition` is a
list of conditions that must all hold:

    standby                 platform=aarch64         slot_status=lost
    index_method=gin        table_option:NAME=0      statement:jit_functions>0
    slru:Subtrans>1000      io:vacuum>=1000000       sessions:slow_locks>=100
    NAME=on                 NAME_bytes>1073741824    (a setting; in bytes)

`releases.tsv`: the latest minor release and the end of support of each major, as of `AS_OF`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.kinds import Index, Io, Load, Server, Setting, Slot, Slru, Statement, Table
from dbdyno.advise.rule import Evidence

AS_OF = "2026-11"
"""Month in which the tables were made; later releases are missing in all of them."""
_FOLDER = Path(__file__).parent
_WORD = re.compile(r"(?P<name>[\w:.]+?)(?P<operator><=|>=|!=|=|<|>)(?P<value>.+)")
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of `faults.tsv`."""

    name: str
    engine: str
    majors: str
    fixed: str
    condition: str
    fault: str
    cost: str
    fix: str
    source: str


@dataclass(frozen=True, slots=True)
class Release:
    """One row of `releases.tsv`; `end_of_life` is a date."""

    engine: str
    major: int
    latest: str
    end_of_life: str


@cache
def faults() -> tuple[Fault, ...]:
    """Return all known faults."""
    return tuple(Fault(*row) for row in _rows("faults.tsv"))


@cache
def releases() -> tuple[Release, ...]:
    """Return the latest release of every major."""
    return tuple(Release(engine, int(major), latest, end) for engine, major, latest, end in _rows("releases.tsv"))


@cache
def _same_day() -> dict[str, tuple[str, ...]]:
    """Return, for each minor release, the minor releases that appeared on the same day."""
    return {version: tuple(row[1:]) for row in _rows("same_day.tsv") for version in row if version}


def _rows(name: str) -> list[list[str]]:
    lines = (_FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the parts of a version: `15.18 (Debian ...)` is (15, 18)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def fixed_in(fault: Fault, server: Server) -> str:
    """Return the release of the server's major that has the fix, or "" if there is none."""
    major = version_numbers(server.version)[:1] if fault.engine == "postgres" else version_numbers(server.version)[:2]
    known = [*fault.fixed.split(), *_same_day().get(fault.fixed, ())]
    return next((one for one in known if one and version_numbers(one)[: len(major)] == major), "")


def affects(fault: Fault, server: Server) -> bool:
    """Return True if the server's version has the fault."""
    version = version_numbers(server.version)
    if fault.engine != server.engine or not version:
        return False
    if fault.engine == "mariadb":
        ends = [tuple(version_numbers(end) for end in one.split("-")) for one in fault.majors.split()]
        return any(first <= version[:3] <= last for first, last in ends)
    first, _, last = fault.majors.partition("-")
    if not int(first) <= version[0] <= int(last):
        return False
    fixed = fixed_in(fault, server)
    return not fixed or version < version_numbers(fixed)


def matching_figures(fault: Fault, facts: Facts) -> tuple[Evidence, ...] | MissingEvidence | None:
    """Return the evidence that a server meets all conditions of a fault; None if it fails one; or what is missing."""
    found: list[Evidence] = []
    for word in fault.condition.split():
        answer = _holds(word, facts)
        if not isinstance(answer, Evidence):
            return answer
        found.append(answer)
    return tuple(found)


def _holds(word: str, facts: Facts) -> Evidence | MissingEvidence | None:
    server = facts.row_of(Server)
    if word == "standby":
        return Evidence("standby", "yes", "text", "pg_is_in_recovery()") if server.in_recovery else None
    parts = _WORD.fullmatch(word)
    if parts is None:
        raise ValueError(f"a condition of a fault cannot be read: {word}")
    name, operator, value = parts["name"], parts["operator"], parts["value"]
    if name == "platform":
        return Evidence("platform", value, "text", "version()") if value in server.platform else None
    for prefix, (kind, values) in _KINDS.items():
        if name == prefix or name.startswith(f"{prefix}:"):
            lack = facts.missing_evidence(kind)
            if lack is not None:
                return lack
            seen = values(facts.rows_of(kind), name.partition(":")[2])
            return next((one for one in seen if _true(one.value, operator, value)), None)
    return _setting(facts, name, operator, value)


def _setting(facts: Facts, name: str, operator: str, value: str) -> Evidence | MissingEvidence | None:
    lack = facts.missing_evidence(Setting)
    if lack is not None:
        return lack
    known = facts.setting(name.removesuffix("_bytes"))
    if known is None:
        return None
    is_bytes = name.endswith("_bytes")
    given = known.bytes if is_bytes else known.value
    shown = Evidence(known.name, given, "bytes" if is_bytes else "text", "settings")
    return shown if _true(given, operator, value) else None


def _true(given: Any, operator: str, value: str) -> bool:
    """Return True if a comparison holds: of numbers if both values are numbers, otherwise of lower-case texts."""
    try:
        return _COMPARED[operator](float(given), float(value))
    except (TypeError, ValueError):
        return _COMPARED[operator](str(given).lower(), value.lower())


def _slots(rows: Sequence[Slot], name: str) -> list[Evidence]:
    return [Evidence(f"slot {one.name}", one.status, "text", "pg_replication_slots.wal_status") for one in rows]


def _indexes(rows: Sequence[Index], name: str) -> list[Evidence]:
    return [Evidence(f"index {one.name}", one.method, "text", "pg_index, pg_am") for one in rows]


def _options(rows: Sequence[Table], name: str) -> list[Evidence]:
    given = [(one.name, one.option(name)) for one in rows]
    return [Evidence(f"{name} of {table}", value, "text", "pg_class.reloptions") for table, value in given if value]


def _statements(rows: Sequence[Statement], name: str) -> list[Evidence]:
    seen = sum(getattr(one, name) or 0 for one in rows)
    return [Evidence(name, seen, "count", f"pg_stat_statements.{name}, all statements")]


def _slrus(rows: Sequence[Slru], name: str) -> list[Evidence]:
    return [Evidence(f"reads of {one.name}", one.reads, "count", "pg_stat_slru") for one in rows if one.name == name]


def _io(rows: Sequence[Io], name: str) -> list[Evidence]:
    seen = sum(one.reads for one in rows if one.context == name)
    return [Evidence(f"reads in context {name}", seen, "count", "pg_stat_io.reads")]


def _sessions(rows: Sequence[Load], name: str) -> list[Evidence]:
    return [Evidence(name.replace("_", " "), getattr(one, name), "count", "one look at the sessions") for one in rows]


_KINDS: dict[str, tuple[type, Callable[[Sequence[Any], str], list[Evidence]]]] = {
    "slot_status": (Slot, _slots),
    "index_method": (Index, _indexes),
    "table_option": (Table, _options),
    "statement": (Statement, _statements),
    "slru": (Slru, _slrus),
    "io": (Io, _io),
    "sessions": (Load, _sessions),
}
