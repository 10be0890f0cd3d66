"""Division of rows in time order into batches, which are numbered within groups, using arrays.

A window function of DuckDB takes ten times as long for the same rows, and several times the memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.integer[Any]]

ROWS = "batch_rows"
"""Name of the relation that `batched_rows` provides."""


def even_batches(count: int, batches: int) -> Ints:
    """Return the batch number (from 0) of each of `count` rows; batches have equal length, or one row more.

    The longer batches come first, as in SQL's `ntile`.
    """
    import numpy as np

    length, longer = divmod(count, batches)
    return np.repeat(np.arange(batches), [length + (at < longer) for at in range(batches)])


def batches_of_at_least(count: int, batches: int, least: int) -> Ints:
    """Return the batch number (from 0) of each of `count` rows in batches of almost equal length.

    There are at most `batches` batches, fewer if they would have fewer than `least` rows.
    """
    import numpy as np

    return np.arange(count) * max(1, min(batches, count // least)) // count


def batch_numbers(group: Ints, started: Ints, line: Ints, batches_of: Callable[[int], Ints]) -> Ints:
    """Return the batch number of each row within its group, where rows are in the order of `started`, then `line`.

    Args:
        group: The group of each row, as small whole numbers.
        started: When each row started.
        line: Order of rows that started at the same time.
        batches_of: Returns, for a group with this number of rows, the batch number of each row in order.
    """
    import numpy as np

    if group.max() <= np.iinfo(np.uint16).max:  # which is sorted by its digits
        group = group.astype(np.uint16, copy=False)
    found = np.empty(group.size, dtype=np.int32)
    order = np.argsort(group, kind="stable") if _in_order(started, line) else np.lexsort((line, started, group))
    ordered = group[order]
    ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for low, high in zip([0, *ends], [*ends, group.size], strict=True):
        found[order[low:high]] = batches_of(int(high - low))
    return found


def _in_order(started: Ints, line: Ints) -> bool:
    earlier, same = started[1:] > started[:-1], started[1:] == started[:-1]
    return bool((earlier | (same & (line[1:] >= line[:-1]))).all())


@contextlib.contextmanager
def batched_rows(traces: Traces, query: str, batches_of: Callable[[int], Ints]) -> Iterator[str]:
    """Yield the name of a relation with the rows of a query and their `batch`.

    The query has the columns `grouped` (small whole numbers), `started_ns` and `line`, which must not be NULL.
    """
    import numpy as np

    rows = {name: np.asarray(one) for name, one in traces.connection.execute(query).fetchnumpy().items()}
    if not rows["grouped"].size:
        rows["batch"] = np.empty(0, dtype=np.int32)
    else:
        rows["batch"] = batch_numbers(rows["grouped"], rows.pop("started_ns"), rows.pop("line"), batches_of)
    traces.connection.register(ROWS, rows)
    try:
        yield ROWS
    finally:
        traces.connection.unregister(ROWS)
