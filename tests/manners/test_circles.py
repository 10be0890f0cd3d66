"""No import cycles: files that need one another cannot be read, tested or moved separately.

Imports between the files of a crate are `use crate::…`, `use super::…`, and paths within the code that begin with these
or with a module imported by them. A name that a folder's `mod.rs` or `lib.rs` re-exports counts as an import from the
file that defines it. Imports between Python modules are all imports: at the top of a module, within a function, and for
the type checker only, because a type that two modules share belongs in a leaf module. No cycle is allowed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import pytest
from sources import nodes_of

pytestmark = pytest.mark.sources
ROOT = Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/src"))
PACKAGES = (ROOT / "python", ROOT / "packages" / "dbdyno-rig")

COMPILED = "_core"
"""Module that is compiled and has no Python file."""

_USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+((?:crate|super|self)::[^;]+);", re.MULTILINE)

_BASES = {"crate", "super", "self"}

Graph = dict[str, set[str]]


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of nodes that reach one another (Tarjan), each sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for after in sorted(graph.get(node, ())):
            if after not in index:
                visit(after)
                low[node] = min(low[node], low[after])
            elif after in stack:
                low[node] = min(low[node], index[after])
        if low[node] == index[node]:
            at = stack.index(node)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def paths(text: str) -> Iterator[list[str]]:
    """Yield the paths of a `use`, with its braces expanded."""
    text = re.sub(r"\s+as\s+\w+", "", text)
    if "{" not in text:
        yield [part.strip() for part in text.split("::")]
        return
    head, rest = text.split("{", 1)
    depth, piece = 0, ""
    for char in rest:
        if char == "}" and depth == 0:
            break
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            yield from paths(head + piece.strip())
            piece = ""
        else:
            piece += char
    if piece.strip():
        yield from paths(head + piece.strip())


def modules(source: Path) -> dict[tuple[str, ...], str]:
    """Return the text of each file of a crate by its module path."""
    found = {}
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] in {"mod", "lib", "tests"}:
            parts = parts[:-1]
        found[parts] = path.read_text()
    return found


def rust(source: Path) -> Graph:
    """Return which files of the crate each file imports from."""
    texts = modules(source)
    graph: Graph = {}
    for own, text in texts.items():
        code = text.split("#[cfg(test)]\nmod tests {")[0]
        uses = graph.setdefault("/".join(own) or "lib", set())
        for use in _USE.findall(code):
            for path in (*paths(use), *within(code, use)):
                ups = path.count("super")
                base = () if path[0] == "crate" else own[: len(own) - ups]
                target = resolved(texts, (*base, *(part for part in path if part not in _BASES)))
                if target and target != own:
                    uses.add("/".join(target))
    return graph


def within(code: str, use: str) -> Iterator[list[str]]:
    """Yield the paths in the code that begin with a module which the `use` takes in, or with `crate`."""
    code = re.sub(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", "", code)
    yield from (found.split("::") for found in re.findall(r"\bcrate(?:::\w+)+", code))
    for path in paths(use):
        if path[-1].islower():
            for found in re.findall(rf"(?<![\w:.]){re.escape(path[-1])}((?:::\w+)+)", code):
                yield [*path, *found.strip(":").split("::")]


def resolved(texts: dict[tuple[str, ...], str], path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the file to which a path leads, through the re-exports of its folder."""
    at = path
    while at and at not in texts:
        at = at[:-1]
    name = path[len(at)] if len(path) > len(at) else ""
    for use in re.findall(r"pub(?:\([^)]*\))?\s+use\s+([^;]+);", texts.get(at, "")):
        for export in paths(use):
            inside = (*at, *(part for part in export if part != "self"))
            if export[-1] == name and inside[:-1] in texts:
                return inside[:-1]
    has_files = any(len(other) > len(at) and other[: len(at)] == at for other in texts)
    # A folder that only names its files is a table of contents, not a file of the circle.
    return (
        ()
        if has_files and not re.search(r"^(?:pub(?:\([^)]*\))? )?(?:fn|struct|enum|trait|const)", texts[at], re.M)
        else at
    )


def python() -> Graph:
    """Return which modules of the packages each module imports."""
    files = {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in package.rglob("*.py")
    }
    graph: Graph = {name: set() for name in files}
    for name, path in files.items():
        for node in nodes_of(path):
            graph[name] |= {target for target in imported(node, files) if target in files and target != name}
    return graph


def imported(node: ast.AST, files: Container[str]) -> Iterable[str]:
    """Return the modules that an import needs; of a package, only if a name is imported from the package itself."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    inside = [(node.module or "", f"{node.module}.{alias.name}") for alias in node.names if alias.name != COMPILED]
    return [module if module in files else package for package, module in inside]


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_files_of_a_crate_do_not_need_one_another_in_circles(crate: Path):
    found = circles(rust(crate / "src"))
    assert not found, f"leaf files for what they share: {found}"


def test_python_modules_do_not_import_one_another_in_circles():
    found = circles(python())
    assert not found, f"leaf modules for what they share: {found}"


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set()}) == []
    assert list(within("fn f() { watch::run::start(crate::job::EVERY) }", "crate::watch")) == [
        ["crate", "job", "EVERY"],
        ["crate", "watch", "run", "start"],
    ]
    assert list(paths("crate::{a::B, c::{D, self}}")) == [
        ["crate", "a", "B"],
        ["crate", "c", "D"],
        ["crate", "c", "self"],
    ]
