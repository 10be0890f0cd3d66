"""Rows as CSV, JSON or an Arrow stream; no cell becomes a formula in a spreadsheet unless the user allows it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, BinaryIO

from dbdyno.base.errors import Error

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a formula, including the full-width characters that spreadsheets accept for them."""
_PLAIN_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")


def escape_formula(value: Any) -> Any:
    """Return a cell that no spreadsheet evaluates as a formula.

    Text that begins with = + - @, a tab or a line end gets a ' in front; numbers are unchanged.
    """
    if not isinstance(value, str) or not value.startswith(FORMULA) or _PLAIN_NUMBER.fullmatch(value):
        return value
    return "'" + value


def csv_text(rows: Sequence[Mapping[str, object]], *, safe: bool = True) -> str:
    """Return rows as CSV with a header line; `safe` keeps text from being read as a formula."""
    import csv

    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: escape_formula(value) if safe else value for name, value in row.items()} for row in rows)
    return out.getvalue()


def json_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as JSON."""
    return json.dumps(rows, indent=1, ensure_ascii=False, default=str)


def write_arrow(rows: Sequence[Mapping[str, object]], sink: BinaryIO) -> None:
    """Write rows with the same keys as an Arrow stream; a column with both numbers and text becomes text.

    Raises:
        Error: pyarrow is not installed.
    """
    pa = arrow_library()
    table = pa.table({name: _column(pa, [row[name] for row in rows]) for name in (rows[0] if rows else {})})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def arrow_library() -> ModuleType:
    """Return the module pyarrow.

    Raises:
        Error: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ImportError as error:
        raise Error(
            "the package pyarrow, which Arrow output needs, is not installed",
            next_step="run `pip install 'dbdyno[arrow]'`",
        ) from error
    return pa  # type: ignore[no-any-return]


def _column(pa: ModuleType, values: list[Any]) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
