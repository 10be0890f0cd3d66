"""The statement that a running session executes: its text without values, matched to the server's digests.

MariaDB (up to 11.4) reports a statement's digest only when it has ended, and none without the performance schema.
Therefore a running statement's text is normalized as the server does for a digest (literals to `?`, lists of them to
`...`, several rows of them to one row), and so is the text of each digest; equal texts are one statement. A statement
without a known digest (it has never ended, or digests are off) gets an identifier and a text made by dbdyno. Neither
contains values.

    Statements().identifier("select a from t where b in (1, 2) -- x")   # text-6a..., "select a from t where b in (...)"

Limits: the default `sql_mode` is assumed, in which "x" is a literal; under ANSI_QUOTES such names are replaced too, and
the statement keeps dbdyno's identifier. Of digests that differ only by case, the one with the most time is used. The
server truncates a long digest, and dbdyno a long text: if one begins with the other, they are the same statement unless
a second one matches too. The process list writes a variable of a procedure as `NAME_CONST('v', its value)`: it becomes
`v`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

LONGEST = 4096
"""Largest number of characters that are requested of a statement's text."""
TEXTS_MOST = 1_000
"""Number of cached texts at which the cache is cleared."""
STATEMENTS_MOST = 10_000
"""Number of known statements at which the older half is dropped from memory."""
NAME_BYTES = 70
"""Largest number of bytes that a name takes: a digest with less room left may have been truncated."""
OWN_PREFIX = "text-"
"""Prefix of dbdyno's identifiers."""

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?!M?!|\ ,\ \.\.\.\ \*/)(?:[^*]|\*(?!/))*+(?:\*/|\Z) | /\*M?!\d*
      | \*/ | \(_charset\) | _[a-z]\w*+(?=\s*')
    )
    | (?P<more> /\*\ ,\ \.\.\.\ \*/ )
    | (?P<list> \?,\ \.\.\. | \.\.\. )
    | (?P<literal>
        [xXbBnN]?'(?:[^'\\]|''|\\(?:.|\Z))*+(?:'|\Z) | "(?:[^"\\]|""|\\(?:.|\Z))*+(?:"|\Z)
        | 0[xXbB][0-9a-fA-F]+\b | (?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d+)?(?![\w$]) | \? | \(unknown\)
      )
    | \s*NAME_CONST\('(?P<local>\w++)',(?:'(?:[^'\\]|''|\\(?:.|\Z))*+(?:'|\Z)|[^')])*+\)
    | (?P<variable> @(?!@)(?:\?|[\w.$]++|'[^']*+'?|"[^"]*+"?|`[^`]*+`?) )
    | (?P<word> `(?:[^`]|``)*+(?:`|\Z) | [\w$]++ )
    | (?P<sign> :=|<=>|<>|!=|<=|>=|\|\||&&|<<|>>|@@|. )
    """,
    re.VERBOSE | re.DOTALL,
)
_SAME = {
    **dict.fromkeys(("!=",), "<>"),
    **dict.fromkeys(("current_timestamp", "localtime", "localtimestamp"), "now"),
    **dict.fromkeys(("substr", "mid"), "substring"),
    "distinct": "distinctrow",
    "database": "schema",
    "regexp": "rlike",
    "int": "integer",
    "char": "character",
    "user": "system_user",
    "session_user": "system_user",
    "dec": "decimal",
    "numeric": "decimal",
    **{f"sql_tsi_{unit}": unit for unit in ("second", "minute", "hour", "day", "week", "month", "quarter", "year")},
}
"""Synonyms, mapped to the word that the server shows."""
_BEFORE_A_SIGNED = frozenset(
    (
        *("select", "and", "or", "xor", "not", "when", "case", "limit", "offset", "default"),
        *("in", "like", "rlike", "regexp", "between", "interval", "div", "mod"),
        *("+", "-", "*", "/", "%", "|", "&", "^", "<<", ">>", "||", "&&", ",", "("),
    )
)
"""Words after which the server drops the sign of a number; not after a comparison (`a = -5`)."""
_LITERALS = ("?", "...")
_ROWS = ("(?)", "(...)")


class Statements:
    """The statements of sampled sessions: identifiers, dbdyno's texts, and the digests that they match.

    `digest_bytes` is the server's `max_digest_length`.
    """

    def __init__(self, digest_bytes: int = 1024) -> None:
        self._digest_bytes = digest_bytes
        self.texts: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._keys: dict[str, tuple[str, bool]] = {}
        self._digests: dict[str, str] = {}
        self._cut: dict[str, str] = {}
        self._is: dict[str, str] = {}

    def identifier(self, text: str) -> str:
        """Return the identifier of a text: the server's digest if known, otherwise dbdyno's; '' for an empty text."""
        ours = self._known.get(text)
        if ours is None:
            if len(self._known) >= TEXTS_MOST:
                self._known.clear()
            ours = self._known[text] = self._of(text)
        return self._is.get(ours, ours)

    def unknown_count(self) -> int:
        """Return the number of statements without a digest."""
        return len(self._keys) - len(self._is)

    def learn(self, digests: Iterable[tuple[str, str]]) -> None:
        """Add digests and their texts, sorted by increasing statement time: the last digest of a text is used."""
        if len(self._digests) >= STATEMENTS_MOST:
            self._digests.clear()
            self._cut.clear()
        for digest, text in digests:
            key = _key(normalized_words(text))
            self._digests[key] = digest
            if _bytes(text) > self._digest_bytes - NAME_BYTES:
                self._cut[key] = digest
        for ours, (key, is_cut) in self._keys.items():
            found = self._digests.get(key) or self._alike(key, is_cut=is_cut)
            if found:
                self._is[ours] = found

    def digest_of(self, identifier: str) -> str:
        """Return the digest for one of dbdyno's identifiers if it is known, otherwise the identifier."""
        return self._is.get(identifier, identifier)

    def _of(self, text: str) -> str:
        is_cut = len(text) >= LONGEST
        tokens = normalized_words(text, is_cut=is_cut)
        if not tokens:
            return ""
        key = _key(tokens)
        if len(self._keys) >= STATEMENTS_MOST:
            self._forget()
        ours = OWN_PREFIX + hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
        self._keys[ours] = key, is_cut
        self.texts[ours] = " ".join(tokens)
        digest = self._digests.get(key)
        if digest:
            self._is[ours] = digest
        return ours

    def _forget(self) -> None:
        self._known.clear()
        for ours in list(self._keys)[: STATEMENTS_MOST // 2]:
            del self._keys[ours], self.texts[ours]
            self._is.pop(ours, None)

    def _alike(self, key: str, *, is_cut: bool) -> str | None:
        found = {digest for short, digest in self._cut.items() if key.startswith(short)}
        if is_cut:
            found |= {digest for whole, digest in self._digests.items() if whole.startswith(key)}
        return found.pop() if len(found) == 1 else None


def normalized_words(text: str, *, is_cut: bool = False) -> list[str]:
    """Return the words of a text without comments and values, as in the server's digests.

    The text may also be that of a digest. With `is_cut`, an incomplete list at the end is dropped.
    """
    made: list[str] = []
    for kind, word in _tokens(text):
        if kind == "more":
            if made and made[-1] in _ROWS:
                made[-1] += "+"
        elif kind in ("literal", "list") or (kind == "word" and word.casefold() == "null"):
            _add_literal(made, "..." if kind == "list" else "?")
        elif word == ")":
            _close(made)
        else:
            made.append("@?" if kind == "variable" else word)
    loose = (*_LITERALS, ",", "(") if is_cut else (";",)
    while made and made[-1] in loose:
        made.pop()
    return made


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if kind == "local":
            yield "word", found["local"]
        elif kind != "space":
            yield kind, found[0].strip("`") if kind == "word" else found[0]


def _add_literal(made: list[str], literal: str) -> None:
    while len(made) > 1 and made[-1] in "+-" and made[-2].casefold() in _BEFORE_A_SIGNED:
        made.pop()
    if len(made) > 1 and made[-1] == "," and made[-2] in _LITERALS:
        made[-2:] = ["..."]
    else:
        made.append(literal)


def _close(made: list[str]) -> None:
    """Add a closing parenthesis, and merge values in parentheses into a row, and rows of the same form into one."""
    if len(made) < 2 or made[-2] != "(" or made[-1] not in _LITERALS:
        made.append(")")
        return
    row = f"({made.pop()})"
    made[-1] = row
    if len(made) > 2 and made[-2] == "," and made[-3] in (row, row + "+"):
        made[-3:] = [row + "+"]


def _bytes(digest_text: str) -> int:
    """Return the bytes of `max_digest_length` that a digest takes: two per word, plus each quoted name's length."""
    names = re.findall("`[^`]*`", digest_text)
    return 2 * len(digest_text.split()) + sum(len(name.encode()) for name in names)


def _key(tokens: list[str]) -> str:
    return " ".join(_SAME.get(word, word) for word in (token.casefold() for token in tokens))
