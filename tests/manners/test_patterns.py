"""No foreign text can make one of our patterns slow: every regular expression of the package is attacked."""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sources import PACKAGE, nodes
from sources import text as text_of

pytestmark = pytest.mark.sources
REPEATS = 2000
BUDGET_S = 1.0
"""Limit of the processor time for one pattern on all hostile texts; linear patterns take milliseconds [s]."""
DOUBTED_S = 0.004
"""Time after which a text is also tried at a quarter of its length: linear time is a quarter, quadratic a sixteenth."""
PIECES = (
    *("a", "0", " ", "'", '"', "\\", "\\'", "''", "\\\\", "a.", ".", "-", ",", "=", "a=", "(", "[", "{", "<", "@", "/"),
    *(":", "a:", "a://", "://", "\n", "\t", "\r\n", "a\n", "0,", "0.", "x ", "  ", "password=", "password='", "é", "_"),
    *(
        "<?xml",
        "a-",
        "1e",
        "#",
        "$",
        "$a$",
        "%",
        "*",
        "+",
        "|",
        "&",
        ";",
        "!",
        "~",
        "^",
        "?",
        "`",
        "0 ",
        "\u202f",
        "Aa",
    ),
)
ANCHORED = ("fullmatch", "match")
SEARCHING = ("search", "sub", "split", "findall", "finditer")


Found = tuple[str, re.Pattern[Any], bool]
"""Place of a pattern, the pattern, and True if it is searched for instead of matched from the beginning."""


def literals() -> Iterator[Found]:
    """Yield the patterns that are written as literals in calls of `re`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = text_of(path)
        if not any(f"re.{method}(" in source for method in (*SEARCHING, *ANCHORED)):
            continue
        for node in nodes(source):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method), args=[_, *_]):
                    pass
                case _:
                    continue
            if method not in (*SEARCHING, *ANCHORED):
                continue
            try:
                text = ast.literal_eval(node.args[0])
            except ValueError:
                continue
            yield f"{path.relative_to(PACKAGE)}:{node.lineno}", re.compile(text), method in SEARCHING


def compiled() -> Iterator[Found]:
    """Yield the compiled patterns in modules; a pattern counts as searched for unless it is only used to match."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = text_of(path)
        if "re.compile" not in source:
            continue
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for key, value in vars(importlib.import_module(name)).items():
            if isinstance(value, re.Pattern):
                anchored = any(f"{key}.{method}(" in source for method in ANCHORED)
                searched = any(f"{key}.{method}(" in source for method in SEARCHING)
                yield f"{name}.{key}", value, searched or not anchored


def patterns() -> dict[str, Found]:
    """Return each pattern once for each way in which it is used."""
    return {
        f"{found.flags} {found.pattern!r} {way}": (where, found, way)
        for where, found, way in (*compiled(), *literals())
    }


def begins(pattern: str) -> Iterator[str]:
    """Yield words that lead an attack to the inner parts of a pattern: its literal text."""
    yield ""
    yield from sorted(set(re.findall(r"[A-Za-z_]{2,}|[=:'\"(\[{<]", pattern)), key=len)[-4:]


def hostile(pattern: re.Pattern[Any]) -> Iterator[Any]:
    """Yield hostile texts for a pattern, as bytes if the pattern is of bytes."""
    raw = isinstance(pattern.pattern, bytes)
    for begin in begins(pattern.pattern.decode("latin-1") if raw else pattern.pattern):
        for piece in PIECES:
            text = begin + piece * REPEATS + "\x00"
            yield text.encode() if raw else text


def time_on(pattern: re.Pattern[Any], text: Any, searched: bool) -> float:
    """Return the processor time of a pattern on a text [s]."""
    before = time.process_time()
    pattern.fullmatch(text)
    if searched:
        pattern.search(text)
    return time.process_time() - before


def slow_on(pattern: re.Pattern[Any], searched: bool) -> str | None:
    """Return the text on which the pattern is slow, or a message if only the total is slow; None if it is fast."""
    started = time.process_time()
    for text in hostile(pattern):
        taken = time_on(pattern, text, searched)
        if taken >= BUDGET_S / 4:
            return f"{taken:.2f} s on {text[:12]!r} x {REPEATS}"
        if taken >= DOUBTED_S:
            growth = min(
                time_on(pattern, text, searched) / time_on(pattern, text[-len(text) // 4 :], searched) for _ in range(3)
            )
            if growth > 8:
                return f"{growth:.1f} times as long on 4 times {text[:12]!r}"
    taken = time.process_time() - started
    return None if taken < 4 * BUDGET_S else f"{taken:.2f} s on all texts"


def test_every_pattern_of_the_package_takes_linear_time_on_hostile_text() -> None:
    found = patterns().values()
    assert len(found) > 60
    slow = {where: how for where, pattern, searched in found if (how := slow_on(pattern, searched))}
    assert not slow


def test_a_pattern_that_takes_quadratic_time_is_seen() -> None:
    assert slow_on(re.compile(r"(?:(a)|(0))*b"), searched=True)


def test_the_texts_that_hung_a_run_are_read_at_once() -> None:
    from dbdyno.base.dsn import sql_without_secrets, text_without_secrets, without_secrets

    started = time.process_time()
    for text in ("password='" + "\\'" * 60_000, "a://" * 60_000, "'" * 60_000, '"' * 60_000, "password " * 60_000):
        sql_without_secrets(text)
        text_without_secrets(f"x = '''{text}'''")
        without_secrets(text)
    assert time.process_time() - started < 4 * BUDGET_S
