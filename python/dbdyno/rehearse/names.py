"""Objects named in a statement, as keys of the catalog: with the schema unless it is public, in the catalog's case.

>>> sql = 'select "Total"(o.amount) from app.orders o join lines on true'
>>> named_objects(sql, {"app.orders": 1, "lines": 2, "Total": 3})
['Total', 'app.orders', 'lines']
>>> named_objects("select * from orders", {"app.orders": 1, "other.orders": 2}, ("app", "public"))
['app.orders']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dbdyno.move.database.masks import fold_name

DEFAULT_PATH = ("public",)
_PART = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_NAME = re.compile(rf"{_PART}(?:\s*\.\s*{_PART})?")
_PARTS = re.compile(_PART)
_PATH = re.compile(r"\s*set\s+(?:session\s+|local\s+)?search_path\s*(?:=|\bto\b)(.*)", re.I | re.S)


def named_objects(text: str, known: Iterable[str], path: Sequence[str] = DEFAULT_PATH) -> list[str]:
    """Return the catalog keys of the objects that a text names, each once.

    Args:
        text: A statement or a definition.
        known: Keys of all objects: `orders`, `app.orders`.
        path: Schemas that are searched, in this order, for a name without a schema. If none of them has the name, it
            refers to the only object with that name, if there is exactly one.
    """
    keys = set(known)
    bare: dict[str, list[str]] = {}
    for key in keys:
        bare.setdefault(key.rpartition(".")[2], []).append(key)
    return list(dict.fromkeys(_find_names(text, keys, bare, path)))


def words_of(text: str) -> list[str]:
    """Return the identifiers in a text, each once; unquoted ones in lower case."""
    return list(dict.fromkeys(fold_name(part) for part in _PARTS.findall(text)))


def search_path(settings: Iterable[str], default: str, user: str = "") -> tuple[str, ...]:
    """Return the schemas of a session's search path.

    Args:
        settings: Statements of the session that changed its settings.
        default: Value of search_path before these statements.
        user: Role of the session; empty if unknown.
    """
    chosen = default
    for setting in settings:
        if found := _PATH.match(setting):
            chosen = found[1].replace("'", '"')
    names = [user if part in ('"$user"', "$user") else fold_name(part) for part in _list_names(chosen)]
    return tuple(name for name in names if name) or DEFAULT_PATH


def _list_names(text: str) -> list[str]:
    return [part.strip() for part in text.strip().rstrip(";").split(",")]


def _find_names(text: str, keys: set[str], bare: dict[str, list[str]], path: Sequence[str]) -> Iterator[str]:
    for match in _NAME.findall(text):
        first, *rest = (fold_name(part) for part in _PARTS.findall(match))
        if rest and (key := _key(first, rest[0])) in keys:
            yield key
            continue
        if not rest or first not in path:
            yield from _without_schema(first, keys, bare, path)


def _without_schema(name: str, keys: set[str], bare: dict[str, list[str]], path: Sequence[str]) -> Iterator[str]:
    in_path = [key for schema in path if (key := _key(schema, name)) in keys]
    candidates = in_path[:1] or bare.get(name, [])
    if len(candidates) == 1:
        yield candidates[0]


def _key(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"
