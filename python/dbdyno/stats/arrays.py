"""Conversion of columns of numbers from other libraries to numpy arrays.

Accepted are numpy arrays, lists, Arrow arrays, objects with Arrow's C protocols, and columns of polars and pandas. None
of these libraries is imported here, except pyarrow for an object that offers nothing but Arrow's protocol. A missing
value (NULL, NaN, a masked element) becomes NaN and is left out later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import StatsError

Floats = NDArray[np.float64]


def column(data: Any) -> NDArray[np.int64] | Floats:
    """Return a column of numbers as int64 if all are whole and none is missing, otherwise as float64.

    Unsigned integers of 2^63 and above become float64; booleans become int64.

    Raises:
        StatsError: The data has more than one dimension, or does not contain numbers.
    """
    array = _array(data)
    if array.ndim != 1:
        raise StatsError(
            f"a column must have one dimension, found {array.ndim}", next_step="give one column of the array"
        )
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.dtype.kind in "iu":
        if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
            return array.astype(np.float64)
        return np.ascontiguousarray(array, dtype=np.int64)
    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StatsError(
            f"a column of {array.dtype} does not contain numbers", next_step="name a column of numbers"
        ) from error


def _array(data: Any) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        if np.ma.is_masked(data):
            return np.ma.filled(np.ma.asarray(data, dtype=np.float64), np.nan)
        return np.asarray(data.data)
    if isinstance(data, np.ndarray) or not _offers_more(data):
        return np.asarray(data)
    if not hasattr(data, "to_numpy"):
        return _from_arrow(data)
    try:
        return np.asarray(data.to_numpy())
    except Exception:  # pyarrow copies only with zero_copy_only=False
        return np.asarray(data.to_numpy(zero_copy_only=False))


def _offers_more(data: Any) -> bool:
    ways = ("to_numpy", "__arrow_c_stream__", "__arrow_c_array__")
    return any(hasattr(data, way) for way in ways)


def _from_arrow(data: Any) -> NDArray[Any]:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise StatsError(
            "pyarrow is not installed; an Arrow object without to_numpy needs it",
            next_step="run `pip install pyarrow`",
        ) from error
    if hasattr(data, "__arrow_c_stream__"):
        return np.asarray(pa.chunked_array(data).to_numpy())
    return np.asarray(pa.array(data).to_numpy(zero_copy_only=False))


def labels(data: Any) -> tuple[NDArray[np.uint32], list[str]]:
    """Return a grouping column as indexes into a list of group names in natural order.

    A missing value is named "NULL".
    """
    values = data.to_pylist() if hasattr(data, "to_pylist") else _array(data).tolist()
    words = ["NULL" if _missing(value) else str(value) for value in values]
    names = natural_order(set(words))
    numbers = {name: at for at, name in enumerate(names)}
    return np.fromiter((numbers[w] for w in words), np.uint32, len(words)), names


def _missing(value: Any) -> bool:
    return value is None or value != value  # noqa: PLR0124 - NaN is not itself


def natural_order(names: set[str] | Sequence[str]) -> list[str]:
    """Return names in natural order: by value if all are numbers, else alphabetically."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def complete_rows(*columns: Any) -> list[Floats]:
    """Return several columns as floats, without the rows in which a column has no finite value.

    Raises:
        StatsError: The columns differ in length, or one does not contain numbers.
    """
    arrays = [column(data).astype(np.float64, copy=False) for data in columns]
    if len({array.size for array in arrays}) > 1:
        sizes = ", ".join(str(array.size) for array in arrays)
        raise StatsError(f"the columns have different numbers of rows: {sizes}", next_step="give columns of one table")
    bad = np.zeros(arrays[0].size, dtype=bool)
    for array in arrays:
        bad |= ~np.isfinite(array)
    return [np.ascontiguousarray(array[~bad]) for array in arrays] if bad.any() else arrays
