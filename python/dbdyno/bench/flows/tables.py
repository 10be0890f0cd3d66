"""Tables of a flow: customers, orders and lines, the same for every engine, as CSV files without a header.

    customers   id, region (0 to 19), segment (0 to 9)
    orders      id, customer, priority (0 to 4)
    lines       id, order_id, cents

There are four lines per order and ten orders per customer; the customer of an order and the order of a line are drawn
at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEED = 20100607
REGIONS, SEGMENTS, PRIORITIES, CENTS_MOST = 20, 10, 5, 100_000
LINES_AN_ORDER, ORDERS_A_CUSTOMER = 4, 10
LEAST = LINES_AN_ORDER * ORDERS_A_CUSTOMER
MOST = 100_000_000


@dataclass(frozen=True)
class Table:
    """A table: its name and the names of its columns, all of which hold whole numbers."""

    name: str
    columns: tuple[str, ...]


TABLES = (
    Table("customers", ("id", "region", "segment")),
    Table("orders", ("id", "customer", "priority")),
    Table("lines", ("id", "order_id", "cents")),
)


def write_tables(folder: Path, lines: int) -> None:
    """Create a folder and write NAME.csv for each table into it."""
    import numpy as np

    folder.mkdir(parents=True)
    orders = max(1, lines // LINES_AN_ORDER)
    customers = max(1, orders // ORDERS_A_CUSTOMER)
    dice = np.random.default_rng(SEED)
    for table, count, drawn in (
        (TABLES[0], customers, ((0, REGIONS), (0, SEGMENTS))),
        (TABLES[1], orders, ((0, customers), (0, PRIORITIES))),
        (TABLES[2], lines, ((0, orders), (1, CENTS_MOST))),
    ):
        columns = [np.arange(count), *(dice.integers(low, high, count) for low, high in drawn)]
        _write(folder / f"{table.name}.csv", columns)


def _write(path: Path, columns: list[NDArray[np.int64]], stretch: int = 100_000) -> None:
    with path.open("w", encoding="ascii") as file:
        for first in range(0, len(columns[0]), stretch):
            lists = [column[first : first + stretch].tolist() for column in columns]
            file.writelines(f"{a},{b},{c}\n" for a, b, c in zip(*lists, strict=True))
