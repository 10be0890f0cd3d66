"""Words that the glossary forbids, found in public names, docstrings, texts of help, and Rust's doc comments.

The last table of docs/reference/glossary.md lists them: in every text and within every name, or, in a row that says
"as a class", only where one of them is the whole name of a class or of a type.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sources import nodes

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
_PARTS = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])")
_AS_CLASS = " as a class"
_CALLS_WITH_TEXTS = {"option", "option_with_default", "argument", "command", "group", "Option", "Argument"}


@cache
def forbidden() -> tuple[dict[str, str], dict[str, str]]:
    """Return the words forbidden in texts and names, and as names of classes, with their replacements."""
    everywhere: dict[str, str] = {}
    names: dict[str, str] = {}
    for line in GLOSSARY.read_text().partition("## Words that are not used")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 2 or cells[0] in {"not", "---"}:
            continue
        place = names if cells[0].endswith(_AS_CLASS) else everywhere
        place.update({word.strip().lower(): cells[1] for word in cells[0].removesuffix(_AS_CLASS).split(",")})
    return everywhere, names


@cache
def _pattern() -> re.Pattern[str]:
    words = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in forbidden()[0])
    return re.compile(rf"\b({words})\b(?![/\[])", re.I)


def in_text(text: str) -> list[str]:
    """Return the forbidden words of a text."""
    return [" ".join(found.lower().split()) for found in _pattern().findall(text)]


def in_name(name: str) -> list[str]:
    """Return the forbidden words of a public name."""
    everywhere, names = forbidden()
    if name.startswith("_"):
        return []
    is_class = name[0].isupper() and not name.isupper()
    whole = [name.lower()] if is_class and name.lower() in names else []
    return whole + [part.lower() for part in _PARTS.split(name) if part.lower() in everywhere]


def of_source(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each forbidden word in the public names, docstrings and helps of a module."""
    for node in nodes(source):
        for line, name in _names(node):
            yield from ((line, word) for word in in_name(name))
        for line, text in _texts(node):
            yield from ((line, word) for word in in_text(text))


def of_rust(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each forbidden word in the public names and doc comments of a Rust file."""
    for line, text in enumerate(source.splitlines(), 1):
        if found := re.match(r"\s*//[/!](.*)", text):
            yield from ((line, word) for word in in_text(found[1]))
        elif found := re.match(
            r"\s*pub(?:\([a-z]+\))? (?:const |async |unsafe )*(?:fn|struct|enum|trait|type|static|mod|const) (\w+)",
            text,
        ):
            yield from ((line, word) for word in in_name(found[1]))


def of_page(text: str) -> list[str]:
    """Return the forbidden words of a page of documentation, code left out."""
    return in_text(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S))


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Module | ast.ClassDef):
        for child in node.body:
            if isinstance(child, ast.Assign | ast.AnnAssign):
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                yield from ((child.lineno, one.id) for one in targets if isinstance(one, ast.Name))
            elif isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield child.lineno, child.name
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
        of = node.args
        yield from ((one.lineno, one.arg) for one in (*of.posonlyargs, *of.args, *of.kwonlyargs))


def _texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if text := ast.get_docstring(node):
            yield getattr(node, "lineno", 1), text
    elif isinstance(node, ast.Call) and _name_of(node.func) in _CALLS_WITH_TEXTS:
        for keyword in node.keywords:
            if keyword.arg in {"help", "short_help", "epilog"}:
                yield from (
                    (part.lineno, part.value)
                    for part in ast.walk(keyword.value)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )


def _name_of(function: ast.expr) -> str | None:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", None)
