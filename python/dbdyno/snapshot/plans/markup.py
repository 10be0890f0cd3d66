"""Readers of auto_explain's XML and YAML, which return the same values as its JSON.

Both accept only what auto_explain writes, not the full languages: XML without a document type, entities or attributes;
YAML with keys, quoted texts, numbers and lists. Anything else is refused.
"""

from __future__ import annotations

import json
import re
from typing import Any
from xml.parsers import expat

from dbdyno.snapshot.plans.explain import CONDITIONS, ExplainedPlan, UnreadPlanError, plan_from_values
from dbdyno.snapshot.plans.tree import DEEPEST

_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?")
_KEY = re.compile(r"([A-Za-z][^:\n\"]{0,60}): ?(.*)")
_TAGS = {name.replace(" ", "-"): name for name in CONDITIONS}
"""Names of conditions by XML tag; a tag has hyphens for spaces, and also for the hyphen in One-Time Filter."""
_TEXTS = frozenset({"Query-Text", "Query-Identifier"})
_LISTS = frozenset({"Plans", "Output"})


def read_xml(text: str) -> tuple[str, ExplainedPlan]:
    """Return the statement's text and the plan.

    Raises:
        UnreadPlanError: The text is not auto_explain's XML, or is cut off.
    """
    if "<!" in text.replace("<![CDATA[", ""):
        raise UnreadPlanError("the XML of the plan declares a type or entities, which auto_explain does not write")
    stack: list[tuple[str, list[tuple[str, Any]], list[str]]] = [("", [], [])]

    def begun(name: str, _: dict[str, str]) -> None:
        if len(stack) > 2 * DEEPEST + 10:
            raise UnreadPlanError(f"the plan is more than {DEEPEST} nodes deep")
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
        raise UnreadPlanError("the XML is not a plan, or is cut off") from error
    return plan_from_values(stack[0][1][0][1] if stack[0][1] else None)


def _of_element(name: str, children: list[tuple[str, Any]], words: str) -> Any:
    """Return the value of an element: a list of items or plans, a dict, a number, a boolean or a text."""
    if children and (name in _LISTS or all(of == "Item" for of, _ in children)):
        return [value for _, value in children]
    if children:
        return dict(children)
    return words if name in _TEXTS else _scalar(words)


def _scalar(words: str) -> Any:
    """Return the value of an unquoted text: a number, a boolean or the text itself."""
    if _NUMBER.fullmatch(words):
        return float(words) if "." in words else int(words)
    return {"true": True, "false": False}.get(words, words)


def read_yaml(text: str) -> tuple[str, ExplainedPlan]:
    """Return the statement's text and the plan.

    Raises:
        UnreadPlanError: The text is not auto_explain's YAML, or is cut off.
    """
    try:
        tokens = [token for line in text.rstrip().split("\n") for token in _tokens(line)]
        whole, at = _block(tokens, 0)
    except (ValueError, LookupError, RecursionError) as error:
        raise UnreadPlanError("the YAML is not a plan, or is cut off") from error
    if at < len(tokens):
        raise UnreadPlanError("the YAML of the plan has an invalid indentation")
    return plan_from_values(whole)


Token = tuple[int, str | None, str]
"""A line's indentation, its key (None for a list item), and the rest, which is empty if a block follows."""


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
    """Return the list or dict at one indentation, and the index of the token after it."""
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
