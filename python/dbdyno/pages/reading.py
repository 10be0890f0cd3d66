"""What every renderer does first: check the analysis model and make it safe to show.

The model (`analysis.json`, schema 1) is a plain dict. It may come from an aborted run, from an
older or newer version, or carry text that somebody else wrote (SQL, error messages, arm names). So:
`read` checks kind and schema, turns control characters visible, and turns NaN and infinity into
None; `rows` reads parallel arrays and says which one is torn. Every part may be missing; a renderer
then leaves that part out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from dbdyno.base.errors import ReportError
from dbdyno.pages import format as fmt

Analysis = dict[str, Any]
T = TypeVar("T")
SCHEMA = 1
KINDS = (
    "experiment",
    "aa",
    "curve",
    "sweep",
    "tune",
    "correlation",
    "probe",
    "trace",
    "traces",
    "trend",
    "flow",
    "flash",
    "move",
    "model",
    "snapshot",
    "cells",
    "advice",
)


def read(analysis: Mapping[str, Any]) -> Analysis:
    """A checked copy of the model with safe strings and finite numbers; idempotent.

    Raises:
        ReportError: it is not a dict, its schema is not ours, or its kind is unknown.
    """
    if not isinstance(analysis, Mapping):
        raise ReportError(f"an analysis is a mapping, found {type(analysis).__name__}", where="analysis")
    if analysis.get("schema") != SCHEMA:
        raise ReportError(
            f"expected schema {SCHEMA}, found {analysis.get('schema')!r}",
            where="analysis.schema",
            next_step="recompute it with this version: dbdyno compare RUN",
        )
    if analysis.get("kind") not in KINDS:
        raise ReportError(
            f"expected one of {', '.join(KINDS)}, found {analysis.get('kind')!r}",
            where="analysis.kind",
        )
    safe: Analysis = _safe(analysis)
    return safe


def finite(value: Any) -> Any:
    """A copy of plain data with NaN and infinity as None, which JSON can hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return value


def dig(data: Any, *keys: str) -> Any:
    """The value under nested keys, or None as soon as one is missing or null."""
    for key in keys:
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data


def entries(data: Any, *keys: str) -> list[dict[str, Any]]:
    """The list of mappings under nested keys; an empty list where it is missing or null.

    Raises:
        ReportError: there is something else in that place.
    """
    found = dig(data, *keys)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ReportError("expected a list of mappings", where=".".join(("analysis", *keys)))
    return found


def listed(of: type[T], data: Any, *keys: str) -> list[T]:
    """`entries` of a shape that is known: `of` is a TypedDict. An older file may lack a key of it."""
    return cast("list[T]", entries(data, *keys))


def strings(data: Any, *keys: str) -> list[str]:
    """The list of sentences under nested keys, empty ones left out."""
    found = dig(data, *keys)
    listed = found if isinstance(found, list) else [] if found is None else [found]
    return [str(entry) for entry in listed if entry not in (None, "")]


def rows(
    entry: Mapping[str, Any], where: str, needed: Sequence[str], optional: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Parallel arrays as one dict per position, without those where a needed number is null.

    Raises:
        ReportError: arrays of unequal length, a needed one missing, or not of numbers.
    """
    columns: dict[str, list[Any]] = {}
    for name in (*needed, *optional):
        column: Any = entry.get(name)
        if column is None and name in optional:
            continue
        length = next((len(other) for other in columns.values()), None)
        wrong = _misfit(column, length, is_number=name in needed)
        if wrong:
            raise ReportError(
                wrong,
                where=f"analysis.{where}.{name}",
                next_step="recompute the analysis: dbdyno compare RUN",
            )
        columns[name] = column
    every = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [row for row in every if all(row[name] is not None for name in needed)]


def _misfit(column: Any, length: int | None, *, is_number: bool) -> str:
    """What is wrong with one of several parallel arrays, or nothing."""
    if not isinstance(column, list):
        return f"expected an array, found {type(column).__name__}"
    if length not in (None, len(column)):
        return f"expected {length} values like its neighbours, found {len(column)}"
    if is_number:
        for value in column:
            if value is not None and fmt.number(value) is None:
                return f"expected numbers, found {fmt.line(value, 40)!r}"
    return ""


def curves(analysis: Analysis) -> list[dict[str, object]]:
    """The curves of `figures.curve`, each with the number of its arm. An analysis of one curve may
    hold it without a list."""
    given = dig(analysis, "figures", "curve")
    if not given:
        return []
    if "curves" in given:
        return entries(analysis, "figures", "curve", "curves")
    return [{"arm": 0, **given}]


def arm_names(analysis: Analysis) -> dict[int, str]:
    """A name for each arm index, at most 40 characters and never the same twice.

    First the arms that the model lists, in its order, then those that only its figures mention.
    """
    names: dict[int, str] = {}
    for position, arm in enumerate(entries(analysis, "arms")):
        index = arm.get("index")
        name = fmt.line(arm.get("name") or f"arm {position}", longest=40)
        again = sum(taken == name or taken.startswith(f"{name} (") for taken in names.values())
        shown = f"{name} ({again + 1})" if again else name
        names[index if isinstance(index, int) else position] = shown
    for figure in (dig(analysis, "figures") or {}).values():
        for entry in figure if isinstance(figure, list) else []:
            index = dig(entry, "arm")
            if isinstance(index, int):
                names.setdefault(index, f"arm {index}")
    return names


def arm_name(names: Mapping[int, str], index: Any) -> str:
    """The name of an arm, also of one that the model does not list."""
    return names.get(index, f"arm {index}") if isinstance(index, int) else "arm ?"


def baseline(analysis: Analysis) -> int | None:
    """The index of the arm that the others are compared with."""
    for position, arm in enumerate(entries(analysis, "arms")):
        if arm.get("baseline"):
            index = arm.get("index")
            return index if isinstance(index, int) else position
    return None


def basis(analysis: Analysis) -> str:
    """What times of a comparison of traces are taken over: `in all`, `per execution` or `per transaction`."""
    found = dig(analysis, "account", "basis")
    return f"per {found}" if found in ("execution", "transaction") else "in all"


def threshold(analysis: Analysis) -> float | None:
    """The smallest change that matters in practice (0.02 is 2 %), where the model gives it."""
    given = fmt.number(dig(analysis, "run", "threshold"))
    return given if given is not None and given > 0 else None


_name = functools.lru_cache(maxsize=4096, typed=True)(fmt.text)
"""A key made safe: few different ones come again and again."""


def _safe(value: Any) -> Any:
    if isinstance(value, dict | Mapping):
        # Whole numbers are most of a large model: they are taken without a call.
        return {_name(key): entry if type(entry) is int else _safe(entry) for key, entry in value.items()}
    if isinstance(value, str):
        return fmt.text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_safe(entry) for entry in value]
    return value if value is None or isinstance(value, int) else fmt.text(value)
