"""Checked access to an analysis model: the first step of every renderer.

The model (`analysis.json`, schema 1) is a plain dict. It may come from an aborted run or from an older or newer
version, and may contain text written by others (SQL, error messages, arm names). Therefore `read` checks kind and
schema, escapes control characters and replaces NaN and infinity by None; `rows` reads parallel arrays and reports a
damaged one. Every part may be missing; a renderer leaves out what is missing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from dbdyno.base.errors import ReportError
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.pages import format as fmt

Analysis = JsonObject
Entry = Mapping[str, Any]
"""A part of a model: an entry of one of its lists."""
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
    "rehearsal",
    "cuts",
    "bisect",
    "query",
)


def read(analysis: Mapping[str, Any]) -> Analysis:
    """Return a checked copy of the model with safe strings and finite numbers; idempotent.

    Raises:
        ReportError: the model is not a dict, or its schema or kind is unknown.
    """
    if not isinstance(analysis, Mapping):
        raise ReportError(
            f"expected an analysis as a mapping, found {type(analysis).__name__}",
            where="analysis",
            next_step="recompute the analysis: dbdyno compare RUN",
        )
    if analysis.get("schema") != SCHEMA:
        raise ReportError(
            f"expected schema {SCHEMA}, found {analysis.get('schema')!r}",
            where="analysis.schema",
            next_step="recompute the analysis with this version: dbdyno compare RUN",
        )
    if analysis.get("kind") not in KINDS:
        raise ReportError(
            f"expected one of {', '.join(KINDS)}, found {analysis.get('kind')!r}",
            where="analysis.kind",
            next_step="recompute the analysis: dbdyno compare RUN",
        )
    safe: Analysis = _safe(analysis)
    return safe


def finite(value: Any) -> Any:
    """Return a copy of plain data with NaN and infinity replaced by None, so that JSON can hold it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return value


def dig(data: Any, *keys: str) -> Any:
    """Return the value under nested keys, or None if a key is missing or the value is null."""
    for key in keys:
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data


def entries(data: Any, *keys: str) -> list[TableRow]:
    """Return the list of mappings under nested keys; an empty list if it is missing or null.

    Raises:
        ReportError: the value is not a list of mappings.
    """
    found = dig(data, *keys)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ReportError(
            "expected a list of mappings",
            where=".".join(("analysis", *keys)),
            next_step="recompute the analysis: dbdyno compare RUN",
        )
    return found


def list_of(of: type[T], data: Any, *keys: str) -> list[T]:
    """Return `entries` typed as `of`, a TypedDict; entries of an older file may lack some keys."""
    return cast("list[T]", entries(data, *keys))


def strings(data: Any, *keys: str) -> list[str]:
    """Return the list of sentences under nested keys, without empty ones."""
    found = dig(data, *keys)
    listed = found if isinstance(found, list) else [] if found is None else [found]
    return [str(entry) for entry in listed if entry not in (None, "")]


def sentences(data: Any) -> tuple[str, ...]:
    """Return the sentences of a model or of a part of one, each in a line of at most 400 characters."""
    return tuple(fmt.line(text, 400) for text in strings(data, "sentences"))


def rows(entry: Mapping[str, Any], where: str, needed: Sequence[str], optional: Sequence[str] = ()) -> list[TableRow]:
    """Return parallel arrays as one dict per position; positions where a needed number is null are left out.

    Raises:
        ReportError: the arrays differ in length, or a needed array is missing or not numeric.
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
    """Return what is wrong with one of several parallel arrays, or ""."""
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
    """Return the curves of `figures.curve`, each with the index of its arm.

    An analysis of a single curve may store it without a list.
    """
    given = dig(analysis, "figures", "curve")
    if not given:
        return []
    if "curves" in given:
        return entries(analysis, "figures", "curve", "curves")
    return [{"arm": 0, **given}]


def arm_names(analysis: Analysis) -> dict[int, str]:
    """Return a unique name of at most 40 characters for each arm index.

    The arms that the model lists come first, in the model's order, then arms that only its figures mention.
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
    """Return the name of an arm, with a substitute for one that the model does not list."""
    return names.get(index, f"arm {index}") if isinstance(index, int) else "arm ?"


def figure_entries(analysis: Analysis, figure: str) -> Iterator[tuple[str, TableRow, str]]:
    """Yield the entries of a figure, each with the name of its arm and its place in the model."""
    names = arm_names(analysis)
    for at, entry in enumerate(entries(analysis, "figures", figure)):
        yield arm_name(names, entry.get("arm")), entry, f"figures.{figure}[{at}]"


def baseline(analysis: Analysis) -> int | None:
    """Return the index of the arm that the others are compared with, or None."""
    for position, arm in enumerate(entries(analysis, "arms")):
        if arm.get("baseline"):
            index = arm.get("index")
            return index if isinstance(index, int) else position
    return None


def basis(analysis: Analysis) -> str:
    """Return what the times of a comparison of traces refer to: `in all`, `per execution` or `per transaction`."""
    found = dig(analysis, "account", "basis")
    return f"per {found}" if found in ("execution", "transaction") else "in all"


def threshold(analysis: Analysis) -> float | None:
    """Return the smallest change that matters in practice (0.02 is 2 %), or None if the model does not have it."""
    given = fmt.number(dig(analysis, "run", "threshold"))
    return given if given is not None and given > 0 else None


_name = functools.lru_cache(maxsize=4096, typed=True)(fmt.text)
"""Return a key of the model as a safe string; cached, because a few different keys are repeated many times."""


def _safe(value: Any) -> Any:
    # Most values of a large model are numbers: of those, the type alone decides, and integers need no function call.
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return fmt.text(value)
    if isinstance(value, list | tuple):
        return [entry if type(entry) is int else _safe(entry) for entry in value]
    if isinstance(value, Mapping):
        return {_name(key): entry if type(entry) is int else _safe(entry) for key, entry in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else fmt.text(value)
