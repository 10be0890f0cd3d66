"""Named profiles: a TOML file of recipes, built-in or the user's own.

    [fetch-size]
    about = "Rows a fetch: is the array size too small?"
    by = ["bucket(rows, 2)"]
    where = "kind = fetch"

`--recipe fetch-size` uses a built-in recipe, `--recipe FILE` the only recipe of a file, `--recipe FILE:NAME` one of
several. Options on the command line override the recipe.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbdyno.base.errors import TraceError
from dbdyno.base.files import user_file_toml

BUILT_IN = Path(__file__).with_name("recipes.toml")
_KEYS: dict[str, type] = {
    "about": str,
    "by": list,
    "where": str,
    "sum": list,
    "top": int,
    "depth": int,
    "buckets": int,
}
_NAMES: dict[type, str] = {str: "a text", list: "a list of texts", int: "a whole number"}


def recipes(path: Path = BUILT_IN) -> dict[str, dict[str, object]]:
    """Return all recipes of a file.

    Raises:
        TraceError: the file cannot be read, or a recipe is not valid.
    """
    found = user_file_toml(path, TraceError)
    for name, recipe in found.items():
        _check(path, name, recipe)
    return found


def recipe(text: str) -> dict[str, object]:
    """Return one recipe, given by its name, its file, or file and name.

    Raises:
        TraceError: there is no such recipe, or it is not valid.
    """
    if text in (ours := recipes()):
        return ours[text]
    place, _, name = text.rpartition(":")
    path = Path(place if place and not Path(text).is_file() else text)
    if not path.is_file():
        raise TraceError(
            f"there is neither a recipe nor a file named {text!r}",
            where="--recipe",
            next_step=f"use one of the recipes {', '.join(ours)}, or give FILE:NAME",
        )
    found = recipes(path)
    name = name if str(path) == place else ""
    if name in found:
        return found[name]
    if not name and len(found) == 1:
        return next(iter(found.values()))
    what = f"has no recipe {name!r}" if name else f"holds {len(found)} recipes"
    raise TraceError(what, where=str(path), next_step=f"name one of them: {', '.join(f'{path}:{n}' for n in found)}")


def _check(path: Path, name: str, recipe: Any) -> None:
    if not isinstance(recipe, dict):
        raise TraceError(
            f"{name} is not a table", where=str(path), next_step=f"write [name], and below it {', '.join(_KEYS)}"
        )
    for key, given in recipe.items():
        if key not in _KEYS:
            raise TraceError(
                f"[{name}]: unknown key {key!r}", where=str(path), next_step=f"use only the keys {', '.join(_KEYS)}"
            )
        wanted = _KEYS[key]
        texts = isinstance(given, list) and all(isinstance(text, str) for text in given)
        if not isinstance(given, wanted) or isinstance(given, bool) or (wanted is list and not texts):
            raise TraceError(f"[{name}]: {key} = {given!r}, expected {_NAMES[wanted]}", where=str(path))
