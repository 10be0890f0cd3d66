"""Lines of docstrings that end in the middle of a sentence although the next word would have fitted.

Such a line is what an edit leaves behind that replaced words without wrapping the paragraph again. It finds lines of
prose that end before column 80, without punctuation, where the first word of the next line fits within 120 columns.
Lines of a table, of code and of a list are not prose.

`python tests/manners/wraps.py FILES` wraps the paragraphs that have such a line.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from sources import nodes

SHORT = 80
WIDTH = 120
_ENDS = tuple(".:!?)]}|*=")
_NOT_PROSE = re.compile(r"\s*(>>>|\.\.\. |[-*|+#{\[$]|\d+[.)] |\w+( \([^)]*\))?: |(\w+[=(]))|.*\S {2,}\S|.*[│─┌└→]")


def docstrings(source: str) -> Iterator[tuple[int, int]]:
    """Yield the first and the last line of each docstring of a module, counted from 1."""
    for node in nodes(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield first.lineno, first.end_lineno or first.lineno


def broken(source: str) -> list[int]:
    """Return the numbers, counted from 1, of the lines that are wrapped too early."""
    lines = source.splitlines()
    return [
        number
        for first, last in docstrings(source)
        for number in _prose(lines, first, last)
        if number < last and _is_broken(lines[number - 1], lines[number], opens=number == first)
    ]


def _prose(lines: list[str], first: int, last: int) -> Iterator[int]:
    """Yield the lines of a docstring that are not code: neither indented, nor behind the backspace mark of a help."""
    base, sections, is_as_it_stands = _indent(lines[first - 1]), False, False
    for number in range(first, last + 1):
        line = lines[number - 1]
        if not line.strip():
            is_as_it_stands = False
        is_as_it_stands = is_as_it_stands or line.strip() == "\\b"
        sections = sections or bool(re.match(r"\s*(Args|Attributes|Raises|Returns|Yields):$", line))
        if not is_as_it_stands and (_indent(line) == base or sections):
            yield number


def _is_broken(line: str, following: str, opens: bool) -> bool:
    if not line.strip() or not following.strip() or following.strip().startswith('"""'):
        return False
    if _indent(line) != _indent(following) or _NOT_PROSE.match(following) or (not opens and _NOT_PROSE.match(line)):
        return False
    word = following.split(maxsplit=1)[0]
    return len(line) < SHORT and not line.endswith(_ENDS) and len(line) + 1 + len(word) <= WIDTH


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def mended(source: str) -> str:
    """Return the source with each paragraph wrapped again that has a line broken too early."""
    while found := broken(source):
        lines = source.splitlines()
        first, last = found[0] - 1, found[0]
        while _continues(lines, first):
            first -= 1
        while last + 1 < len(lines) and _continues(lines, last + 1):
            last += 1
        indent = " " * _indent(lines[first])
        text = " ".join(line.strip() for line in lines[first : last + 1])
        lines[first : last + 1] = textwrap.wrap(
            text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        source = "\n".join(lines) + "\n"
    return source


def _continues(lines: list[str], at: int) -> bool:
    """Return True if the line continues the paragraph of the line before it."""
    line, before = lines[at], lines[at - 1]
    if not line.strip() or not before.strip() or line.strip().startswith('"""') or before.strip() == '"""':
        return False
    return _indent(line) == _indent(before) and not _NOT_PROSE.match(line)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(mended(path.read_text()))
