"""Check that the keys of a map hold in the data, by SQL queries over the map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.wide.address import Address
from dbdyno.wide.answer import Answer
from dbdyno.wide.mapping import Key, Relation, WideMap


@dataclass(frozen=True)
class KeyCheck:
    """Result of checking one key: the number of rows, and of rows that violate the key, by kind of violation."""

    relation: str
    key: Key
    rows: int
    doubled: int
    nulls: int
    lost: int

    @property
    def holds(self) -> bool:
        """Return True if no row violates the key."""
        return not (self.doubled or self.nulls or self.lost)

    def sentence(self) -> str:
        """Return the result as a sentence."""
        columns = ", ".join(self.key.columns)
        place = f"{self.relation}: {self.key.name} ({columns})"
        if self.holds:
            return f"{place} holds in {self.rows:,} rows."
        said = [
            f"{count:,} {words}"
            for count, words in (
                (self.doubled, "rows have the same key as another row"),
                (self.nulls, "rows have no value in it"),
                (self.lost, f"rows refer to no row of {self.key.references}"),
            )
            if count
        ]
        return f"{place} does NOT hold: of {self.rows:,} rows {', '.join(said)}."


def check_keys(address: Address, wide_map: WideMap, file: str) -> Iterator[KeyCheck]:
    """Yield the result for each key of the map."""
    for relation in wide_map.relations:
        yield _primary(address, wide_map, file, relation)
        if relation.foreign_key is not None:
            yield _foreign(address, wide_map, file, relation, relation.foreign_key)


def _primary(address: Address, wide_map: WideMap, file: str, relation: Relation) -> KeyCheck:
    names = ", ".join(map(quote, relation.primary_key.columns))
    empty = " or ".join(f"{quote(one)} is null" for one in relation.primary_key.columns)
    text = (
        f"select coalesce(sum(n), 0)::bigint, coalesce(sum(n) filter (n > 1), 0)::bigint,"  # noqa: S608 (quoted names)
        f" coalesce(sum(n) filter ({empty}), 0)::bigint"
        f" from (select {names}, count(*) as n from {quote(relation.name)} group by all)"
    )
    rows, doubled, nulls = _single_row(address, wide_map, file, text)
    return KeyCheck(relation.name, relation.primary_key, rows, doubled, nulls, 0)


def _foreign(address: Address, wide_map: WideMap, file: str, relation: Relation, key: Key) -> KeyCheck:
    above = wide_map.relation(key.references)
    assert above is not None
    pairs = zip(key.columns, above.primary_key.columns, strict=True)
    on = " and ".join(f"c.{quote(mine)} = p.{quote(theirs)}" for mine, theirs in pairs)
    first = quote(above.primary_key.columns[0])
    text = (
        f"select count(*), count(*) filter (p.{first} is null)"  # noqa: S608 (quoted names)
        f" from {quote(relation.name)} c left join {quote(above.name)} p on {on}"
    )
    rows, lost = _single_row(address, wide_map, file, text)
    return KeyCheck(relation.name, key, rows, 0, 0, lost)


def _single_row(address: Address, wide_map: WideMap, file: str, text: str) -> tuple[int, ...]:
    with Answer(address, wide_map, text, file) as answer:
        (row,) = answer.rows()
    return tuple(int(one) for one in row)


def quote(name: str) -> str:
    """Return the name in double quotes."""
    return '"' + name.replace('"', '""') + '"'
