"""Pages that an arm's statements reference by a key: their number, and how often each is referenced.

The script itself chooses the keys at random. Rows are assumed to be in the order of their keys, in the table and in its
index, so that a range of keys is a range of pages. Ranges are halved until the keys within each are about equally
popular.

Limits: only one key and one table per statement (`where column = :variable`); of several indexes, only the most scanned
one; if the rows are not in the order of the keys, each page seems to have a mixture of keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.study.prediction.file_io import Size
from dbdyno.study.prediction.scripts import ROW, drawer_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.study.prediction.observation import Observation

    Ints = NDArray[np.int64]

DRAWS = 20_000
"""Number of transactions for which keys are drawn at random."""
PAGE_BYTES = 8192
HALVED = 4
"""Number of times that all pages are halved before the halves are compared."""
LEAST = 200
"""Smallest number of drawn keys with which a range of pages is halved again."""
UNEVEN = 4.0
"""Difference between two halves, in standard deviations, above which they count as unequally popular."""
_ENDS = re.compile(r"\s*($|;|\)|and\b|for\b|order\b|limit\b|returning\b)", re.IGNORECASE)
_TABLE = re.compile(r"\b(?:from|update|into)\s+([\w.\"]+)", re.IGNORECASE)


@dataclass(frozen=True)
class KeyedRelations:
    """Relations of an arm, and, for each statement, the numbers of the relations that it references by a key."""

    relations: list[JsonObject]
    touches: list[list[int]]

    @property
    def pages(self) -> int:
        """Return the number of pages of all relations."""
        return sum(sum(own["pages"]) for own in self.relations)


def keyed_relations(observation: Observation) -> KeyedRelations:
    """Return the relations whose pages an arm's statements reference by a key."""
    relations: list[JsonObject] = []
    places: dict[str, list[int]] = {}
    touches: list[list[int]] = [[] for _ in observation.steps.statements]
    for name, table, keys in _keys(observation):
        sizes = _sizes(observation, table)
        if name not in observation.steps.statements or not sizes:
            continue
        if table not in places:
            places[table] = list(range(len(relations), len(relations) + len(sizes)))
            relations += [_relation(of, size, sizes[0][1].rows, keys) for of, size in sizes]
        touches[observation.steps.statements.index(name)] = places[table]
    return KeyedRelations(relations, touches)


def _keys(observation: Observation) -> Iterator[tuple[str, str, Ints]]:
    """Yield each statement that names one row: its name, its table, and the keys that were drawn.

    A row that an earlier statement of the same transaction named is left out, because it is still in the buffers.
    """
    import numpy as np

    for script in observation.plan.scripts_of(observation.arm):
        drawer = drawer_of(script, observation.plan, observation.arm)
        drawn, sent = drawer.draw(0, DRAWS), drawer.statements()
        named: set[tuple[str, bytes]] = set()
        for place, (number, _) in enumerate(drawn[0]["steps"]):
            if number is None:
                continue
            table = _TABLE.search(sent[number]["name"])
            pieces = sent[number]["pieces"]
            at = next((at for at, piece in enumerate(pieces[:-1]) if _is_key(piece, pieces[at + 1])), None)
            if table is None or at is None:
                continue
            values = [one["steps"][place][1][at] for one in drawn if len(one["steps"]) > place]
            if not values or not all(isinstance(value, int) for value in values):
                continue
            name, keys = table[1].replace('"', ""), np.asarray(values, dtype=np.int64)
            if (name, keys.tobytes()) not in named:
                named.add((name, keys.tobytes()))
                yield sent[number]["name"], name, keys


def _is_key(before: str, after: str) -> bool:
    """Return True if the value between two pieces of a statement is a complete key, not part of an expression."""
    return bool(ROW.search(before)) and bool(_ENDS.match(after))


def _sizes(observation: Observation, table: str) -> list[tuple[str, Size]]:
    """Return the sizes of a table and of its most scanned index; an empty list if the size is not known."""
    own = [name for name in observation.tables if name == table.replace(".", "/") or name.endswith(f"/{table}")]
    if not own:
        return []
    name = own[0]
    indexes = [index for index in observation.indexes if index.startswith(f"{name}/")]
    return [(name, observation.tables[name]), *((index, observation.indexes[index]) for index in indexes[:1])]


def _relation(name: str, size: Size, rows: float, keys: Ints) -> JsonObject:
    import numpy as np

    pages = max(round(size.size_bytes / PAGE_BYTES), 1)
    last = max(rows, float(keys.max()))
    drawn = np.sort(np.clip(((keys - 1) / last * pages).astype(np.int64), 0, pages - 1))
    groups = popularity(drawn, pages)
    return {"name": name, "pages": [own[0] for own in groups], "share": [own[1] for own in groups]}


def popularity(drawn: Ints, pages: int) -> list[tuple[int, float]]:
    """Return pages in groups of about equal popularity, each with its number of pages and share of the references.

    Args:
        drawn: Pages that were referenced, sorted.
        pages: Number of all pages.
    """
    groups = list(_halved(drawn, 0, pages, 0))
    expected = len(drawn) / pages
    spread = sum((count - own * expected) ** 2 / (own * expected) for own, count in groups)
    free = len(groups) - 1
    if spread <= free + UNEVEN * (2 * free) ** 0.5:
        return [(pages, 1.0)]
    return [(own, round(count / len(drawn), 8)) for own, count in groups]


def _halved(drawn: Ints, first: int, last: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of the pages from `first` to `last` (exclusive), each with its number of pages and of references."""
    import numpy as np

    middle = (first + last) // 2
    left, right = (int(np.searchsorted(drawn, place)) for place in (first, last))
    count = right - left
    half = int(np.searchsorted(drawn, middle)) - left
    share = (middle - first) / (last - first)
    off = abs(half - count * share) / max((count * share * (1 - share)) ** 0.5, 1e-9)
    if last - first < 2 or (depth >= HALVED and (count < LEAST or off < UNEVEN)):
        yield last - first, count
        return
    yield from _halved(drawn, first, middle, depth + 1)
    yield from _halved(drawn, middle, last, depth + 1)
