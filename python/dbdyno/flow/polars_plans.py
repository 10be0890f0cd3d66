"""Polars' plans with and without its optimizations, from the engine's own graph, which has no row counts."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.base.errors import FlowError
from dbdyno.flow.conditions import atoms
from dbdyno.flow.step import Flow, Kind, Step
from dbdyno.flow.tables import InputTable

OFF = "optimizations = QueryOptFlags.none()"
INSTALL = "run `make setup-clients` in a clone of dbdyno, or `pip install polars`"
_NODE = re.compile(r'^(\w+) \[label="((?:[^"\\]|\\.)*)"', re.MULTILINE)
_EDGE = re.compile(r"^(\w+) -> (\w+);", re.MULTILINE)
_SCANNED = re.compile(r"^ *+([A-Z]++) SCAN \[([^\]\n]*+)\]", re.MULTILINE | re.IGNORECASE)
_KINDS = (
    ("multi-scan", Kind.SCAN),
    ("in-memory-source", Kind.SCAN),
    ("filter", Kind.FILTER),
    ("equi-join", Kind.JOIN),
    ("cross-join", Kind.JOIN),
    ("in-memory-join", Kind.JOIN),
    ("semi-anti-join", Kind.JOIN),
    ("merge-join", Kind.JOIN),
    ("range-join", Kind.JOIN),
    ("group-by", Kind.GROUP),
    ("reduce", Kind.GROUP),
    ("sort", Kind.SORT),
    ("top-k", Kind.TOP),
    ("slice", Kind.LIMIT),
    ("streaming-slice", Kind.LIMIT),
    ("distinct", Kind.DISTINCT),
    ("ordered-union", Kind.UNION),
    ("unordered-union", Kind.UNION),
    ("select", Kind.PROJECT),
    ("simple-projection", Kind.PROJECT),
    ("with-columns", Kind.PROJECT),
)


def flow(text: str, tables: Sequence[InputTable]) -> Flow:
    """Return both plans of a SELECT.

    Raises:
        FlowError: Polars is missing or reports an error.
    """
    with _lazy(text, tables) as (pl, lazy):
        return Flow("polars", _plan(lazy, optimizations=pl.QueryOptFlags.none()), _plan(lazy), OFF)


def rows(text: str, tables: Sequence[InputTable]) -> tuple[list[Any], list[Any]]:
    """Return the rows of the answer without the optimizations, and those with them.

    Raises:
        FlowError: Polars is missing or reports an error.
    """
    with _lazy(text, tables) as (pl, lazy):
        return lazy.collect(optimizations=pl.QueryOptFlags.none()).rows(), lazy.collect().rows()


@contextlib.contextmanager
def _lazy(text: str, tables: Sequence[InputTable]) -> Iterator[tuple[Any, Any]]:
    """Yield the polars module and the query as a lazy frame."""
    try:
        import polars as pl
    except ImportError:
        raise FlowError("Polars is not installed", where="--engine polars", next_step=INSTALL) from None
    try:
        frames = {one.name: pl.scan_csv(one.path) if one.is_csv else pl.scan_parquet(one.path) for one in tables}
        yield pl, pl.SQLContext(frames, eager=False).execute(text)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FlowError(
            str(error).splitlines()[0], where="the query", next_step="correct the SQL, which is in Polars' dialect"
        ) from None


def _plan(lazy: Any, **how: Any) -> Step:
    scanned = [found.group(2) for found in _SCANNED.finditer(lazy.explain(**how))]
    return parse_graph(
        lazy.show_graph(raw_output=True, **how), [one.rpartition("/")[2].rpartition(".")[0] for one in scanned]
    )


def parse_graph(graph: str, scanned: Sequence[str]) -> Step:
    """Parse a graph as Polars writes it; `scanned` names the files in the order in which they are read."""
    labels = {name: label.encode().decode("unicode_escape") for name, label in _NODE.findall(graph)}
    below: dict[str, list[str]] = {}
    above = set()
    for start, end in _EDGE.findall(graph):
        below.setdefault(end, []).append(start)
        above.add(start)
    roots = [name for name in labels if name not in above]
    left = iter(scanned)
    return _step(roots[0], labels, below, left) if roots else Step(Kind.OTHER, "nothing")


def _step(name: str, labels: dict[str, str], below: dict[str, list[str]], scanned: Any) -> Step:
    inputs = tuple(_step(one, labels, below, scanned) for one in below.get(name, []))
    head, _, rest = labels[name].partition("\n")
    kind = next((kind for word, kind in _KINDS if head.startswith(word)), Kind.OTHER)
    parts: tuple[str, ...] = ()
    text = head
    if kind == Kind.FILTER:
        parts = atoms(rest.strip().partition(" = ")[2] or rest)
        text = " and ".join(parts)
    elif kind == Kind.SCAN:
        text = next(scanned, head)
        found = re.search(r"^filter: (.*)$", rest, re.MULTILINE)
        parts = atoms(found.group(1)) if found else ()
    elif kind == Kind.JOIN:
        sides = re.findall(r"^\w+ = (.*)$", rest, re.MULTILINE)
        how = re.search(r"how: (\w+)", rest)
        joined = " = ".join(one for side in sides for one in atoms(side))
        text = f"{how.group(1).lower() if how else ''} on {joined}".strip()
    elif kind in (Kind.GROUP, Kind.SORT):
        text = ""
    return Step(kind, text, parts, inputs)
