"""Description of the data that operands and options select: how it is read, and how its groups are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import StatsError
from dbdyno.cli.stats.source import (
    Source,
    check_columns,
    columns_of,
    default_column,
    read_columns,
    resolve_all,
)

if TYPE_CHECKING:
    from dbdyno.cli.stats.options import Input
    from dbdyno.stats.description import Description

NO_BLOCKS = "-"


def describe_operands(
    given: Input,
    *,
    column: str | None,
    by: str | None,
    block: str | None = NO_BLOCKS,
    first: str | None = None,
    level: float = 0.95,
    longest: int = 0,
    fences: bool = False,
    engine: str = "here",
) -> tuple[Description, str, str | None]:
    """Return the description, and the names of the column and the block column that were used.

    If `block` is None, the column `block` is used if it exists. With several operands and no `by`, each operand is a
    group.

    Raises:
        StatsError: a column is missing or not numeric.
        EvidenceError: an operand cannot be read.
    """
    sources, where = resolve_all(given.operands, given.folder), given.where
    options = {"level": level, "longest": longest, "fences": fences}
    if engine == "spark":
        return _by_spark(sources, column, by, block, where, first, options)
    column, block = _columns(sources, column, by, block)
    whole = all(source.form == "parquet" for source in sources) and not where
    if whole and (block is None or len(sources) == 1 or by is None):
        from dbdyno.stats.description import describe_parquet

        sets = [(source.label, source.files) for source in sources]
        found = describe_parquet(sets, column, by, block, first=first, **options)  # type: ignore[arg-type]
        if not isinstance(found, str):
            return _distinct_blocks(found, sources, by), column, block
    return _by_duckdb(sources, column, by, block, where, first, options), column, block


def _columns(
    sources: Sequence[Source], column: str | None, by: str | None, block: str | None
) -> tuple[str, str | None]:
    """Return the columns to use, checked against every source."""
    tables = [columns_of(source) for source in sources]
    column = column or default_column(tables[0])
    if block is None:
        block = "block" if all("block" in known for known in tables) else NO_BLOCKS
    words = [name for name in (by, block) if name not in (None, NO_BLOCKS)]
    for known in tables:
        check_columns(known, [column], [word for word in words if word is not None])
    return column, None if block == NO_BLOCKS else block


def _distinct_blocks(description: Description, sources: Sequence[Source], by: str | None) -> Description:
    """Return the description with blocks of different operands kept distinct, even if their numbers are equal."""
    if len(sources) < 2 or by is not None:
        return description
    blocks = tuple(replace(b, block=f"{b.group}:{b.block}") for b in description.blocks)
    return replace(description, blocks=blocks)


def _by_duckdb(
    sources: Sequence[Source],
    column: str,
    by: str | None,
    block: str | None,
    where: str | None,
    first: str | None,
    options: Mapping[str, Any],
) -> Description:
    import numpy as np

    from dbdyno import _core
    from dbdyno.stats.arrays import column as as_column
    from dbdyno.stats.arrays import natural_order
    from dbdyno.stats.description import QUANTILES, description_of, request_options

    words = [name for name in (by, block) if name]
    taken = [read_columns(source, [column], words, where) for source in sources]
    arrays = [as_column(t.numbers[0]) for t in taken]
    values = np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
    labels: list[list[tuple[Any, list[str]]]] = [[] for _ in range(2)]
    for at, (t, array) in enumerate(zip(taken, arrays, strict=True)):
        found = list(t.words)
        if by is not None:
            labels[0].append(found.pop(0))
        elif len(sources) > 1:
            labels[0].append((np.zeros(array.size, np.uint32), [sources[at].label]))
        if block is not None:
            codes, names = found.pop(0)
            prefix = f"{at}:" if len(sources) > 1 else ""
            labels[1].append((codes, [prefix + name for name in names]))
    names = natural_order({name for _, part in labels[0] for name in part})
    if by is None:
        names = [source.label for source in sources] if len(sources) > 1 else []
    elif first in names:
        names = [first, *(name for name in names if name != first)]
    blocks = [name for _, part in labels[1] for name in part]
    asked = request_options(quantiles=QUANTILES, **options)
    asked |= {"groups": names, "blocks": blocks if block else []}
    answer = _core.stats_arrays(
        values,
        _join_codes(labels[0], names),
        _join_codes(labels[1], blocks) if block else None,
        asked,
    )
    result = description_of(answer, options["level"])
    groups = result.groups if names else (replace(result.groups[0], name=sources[0].label),)
    longest = tuple(replace(entry, row=None) for entry in result.longest)
    return replace(result, groups=groups, longest=longest)


def _join_codes(parts: list[tuple[Any, list[str]]], names: list[str]) -> Any:
    """Return the codes of all parts, renumbered to a common list of names."""
    import numpy as np

    if not parts:
        return None
    number = {name: at for at, name in enumerate(names)}
    made = []
    for codes, part in parts:
        new = np.array([number[name] for name in part], dtype=np.uint32)
        made.append(new[np.asarray(codes)] if part else np.zeros(0, np.uint32))
    return np.ascontiguousarray(np.concatenate(made))


def _by_spark(
    sources: Sequence[Source],
    column: str | None,
    by: str | None,
    block: str | None,
    where: str | None,
    first: str | None,
    options: Mapping[str, Any],
) -> tuple[Description, str, str | None]:
    from dbdyno.stats.spark import describe_by_spark

    if len(sources) > 1:
        raise StatsError(
            "Spark takes one operand", next_step="put all files into one folder, and group their rows with --by"
        )
    source = sources[0]
    if source.counted:
        raise StatsError(
            "Spark reads complete files, but from a run only the calls in slices that count may be used",
            next_step="name the folder RUN/calls to use all calls",
        )
    if options["fences"]:
        raise StatsError(
            "Spark cannot compute Tukey's fences, because they need all values", next_step="leave --engine spark out"
        )
    return describe_by_spark(
        source.files,
        source.form,
        column or default_column(columns_of(source)),
        by,
        None if block == NO_BLOCKS else block,
        where,
        first=first,
        level=options["level"],
        longest=options["longest"],
    )


def pairs(source: Input, columns: Sequence[str]) -> list[Any]:
    """Return complete numeric columns over all operands, aligned by row.

    Raises:
        StatsError: a column is missing or not numeric.
    """
    import numpy as np

    from dbdyno.stats.arrays import column as as_column

    parts = [
        [as_column(array).astype(np.float64) for array in read_columns(s, columns, (), source.where).numbers]
        for s in resolve_all(source.operands, source.folder)
    ]
    return [np.concatenate(same) for same in zip(*parts, strict=True)]
