"""auto_explain's XML and YAML, to the values that its JSON has.

Both are what one program writes, not the languages in full: XML without a document type, entities or attributes;
YAML of keys, quoted texts, numbers and lists. Whatever else stands there is refused.
"""

from __future__ import annotations

import json
import re
from typing import Any
from xml.parsers import expat

from dbdyno.snapshot.plans.explain import CONDITIONS, Explained, UnreadPlanError, of_values
from dbdyno.snapshot.plans.tree import DEEPEST

_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?")
_KEY = re.compile(r"([A-Za-z][^:\n\"]{0,60}): ?(.*)")
_TAGS = {name.replace(" ", "-"): name for name in CONDITIONS}
"""A tag has a hyphen for a blank, and for the hyphen of a One-Time Filter."""
_TEXTS = frozenset({"Query-Text", "Query-Identifier"})
_LISTS = frozenset({"Plans", "Output"})


def read_xml(text: str) -> tuple[str, Explained]:
    """The statement's text and the plan. Raises `UnreadPlanError`."""
    if "<!" in text.replace("<![CDATA[", ""):
        raise UnreadPlanError("its XML declares a type or entities, which auto_explain does not write")
    stack: list[tuple[str, list[tuple[str, Any]], list[str]]] = [("", [], [])]

    def begun(name: str, _: dict[str, str]) -> None:
        if len(stack) > 2 * DEEPEST + 10:
            raise UnreadPlanError(f"it is more than {DEEPEST} nodes deep")
        stack.append((name, [], []))

    def ended(name: str) -> None:
        _, children, words = stack.pop()
        known = _TAGS.get(name) or name.replace("-", " ")
        stack[-1][1].append((known, _of_element(name, children, "".join(words))))

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begun, ended
    parser.CharacterDataHandler = lambda words: stack[-1][2].append(words)
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise UnreadPlanError("its XML is no plan, or is cut off") from error
    return of_values(stack[0][1][0][1] if stack[0][1] else None)


def _of_element(name: str, children: list[tuple[str, Any]], words: str) -> Any:
    """The value of an element: a list of items or of plans, a group, a number, a truth or a text."""
    if children and (name in _LISTS or all(of == "Item" for of, _ in children)):
        return [value for _, value in children]
    if children:
        return dict(children)
    return words if name in _TEXTS else _scalar(words)


def _scalar(words: str) -> Any:
    """What stands unquoted."""
    if _NUMBER.fullmatch(words):
        return float(words) if "." in words else int(words)
    return {"true": True, "false": False}.get(words, words)


def read_yaml(text: str) -> tuple[str, Explained]:
    """The statement's text and the plan. Raises `UnreadPlanError`."""
    try:
        tokens = [token for line in text.rstrip().split("\n") for token in _tokens(line)]
        whole, at = _block(tokens, 0)
    except (ValueError, LookupError, RecursionError) as error:
        raise UnreadPlanError("its YAML is no plan, or is cut off") from error
    if at < len(tokens):
        raise UnreadPlanError("its YAML is indented as none is")
    return of_values(whole)


Token = tuple[int, str | None, str]
"""A line's indentation, its key (None of an item of a list), and what follows, empty where a block does."""


def _tokens(line: str) -> list[Token]:
    indent = len(line) - len(line.lstrip(" "))
    words = line[indent:]
    if words.startswith("- "):
        rest = words[2:]
        key = _KEY.fullmatch(rest)
        return [(indent, None, ""), (indent + 2, key[1], key[2])] if key else [(indent, None, rest)]
    key = _KEY.fullmatch(words)
    if key is None:
        raise ValueError(line)
    return [(indent, key[1], key[2])]


def _block(tokens: list[Token], at: int) -> tuple[Any, int]:
    """The list or the keys that stand at one indentation, and where they end."""
    indent, listed = tokens[at][0], tokens[at][1] is None
    items: list[Any] = []
    found: dict[str, Any] = {}
    while at < len(tokens) and tokens[at][0] == indent and (tokens[at][1] is None) == listed:
        _, key, words = tokens[at]
        at += 1
        value: Any = _unquoted(words)
        if not words and at < len(tokens) and tokens[at][0] > indent:
            value, at = _block(tokens, at)
        if key is None:
            items.append(value)
        else:
            found[key] = value
    return (items if listed else found), at


def _unquoted(words: str) -> Any:
    return json.loads(words, strict=False) if words.startswith('"') else _scalar(words)
