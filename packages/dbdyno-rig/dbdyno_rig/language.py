"""Parser of CellCLI's language, as far as a modelled cell supports it: from a line to a command.

    LIST METRICCURRENT ATTRIBUTES name, metricValue WHERE name LIKE 'FL_.*' AND metricValue > 0
         ORDER BY metricValue DESC LIMIT 5 DETAIL
    CREATE FLASHCACHE ALL SIZE=100G
    ALTER IORMPLAN dbplan=((name=ORCL, flashLog=off), (name=other, flashLog=on))

Words and keywords are case-insensitive, and the clauses of a LIST may be in any order. There is AND and no OR; LIKE is
a regular expression that matches the whole value; ORDER BY requires LIMIT. Errors raise a `RefusedError` with CellCLI's
code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

KINDS = (
    "cell",
    "celldisk",
    "griddisk",
    "flashcache",
    "flashlog",
    "flashcachecontent",
    "metriccurrent",
    "metricdefinition",
    "metrichistory",
    "iormplan",
    "alerthistory",
    "threshold",
)
_TOKEN = re.compile(r"""\s*(?:(?P<quoted>'[^']*'|"[^"]*")|(?P<mark>!=|[=<>(),])|(?P<word>[^\s'"=<>(),!]+))""")
_CLAUSES = frozenset(("attributes", "where", "order", "limit", "detail"))
_OPERATORS = frozenset(("=", "!=", ">", "<"))
Value = str | list["Value"] | dict[str, "Value"]


class RefusedError(Exception):
    """Error message that CellCLI prints instead of an answer: its code and its text."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"CELL-{code:05}: {words}")


def raise_syntax_error() -> NoReturn:
    """Raise the error for an invalid command.

    Raises:
        RefusedError: Always.
    """
    raise RefusedError(1504, "Invalid command syntax.")


def refusal(words: str) -> RefusedError:
    """Return the error for a valid command that is not possible at the moment."""
    return RefusedError(2526, f"Pre-condition failed: {words}.")


def text_of(value: Value) -> str:
    """Return the text of a value, which must be a single word.

    Raises:
        RefusedError: The value is a list or a mapping.
    """
    if not isinstance(value, str):
        raise_syntax_error()
    return value


class Token(NamedTuple):
    """A word, a quoted text (without its quotes), or a punctuation mark."""

    kind: str
    text: str


@dataclass(frozen=True)
class Condition:
    """One filter: attribute, operator (=, !=, >, <, like, not like), value."""

    attribute: str
    operator: str
    value: str


@dataclass(frozen=True)
class Query:
    """A LIST command.

    Attributes:
        kind: Kind of object.
        names: Objects requested by name; () for all.
        attributes: Attributes to show; None for the default ones, ('all',) for every one.
        where: Filters, all of which must hold.
        order: Attributes to sort by, each with True for descending order.
        limit: Maximum number of objects.
        detail: True for the DETAIL format.
    """

    kind: str
    names: tuple[str, ...] = ()
    attributes: tuple[str, ...] | None = None
    where: tuple[Condition, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    detail: bool = False


@dataclass(frozen=True)
class Change:
    """A command other than LIST: CREATE, DROP, ALTER, DESCRIBE or HELP.

    Attributes:
        verb: The command.
        kind: Kind of object.
        words: Words before the first option.
        options: Values of `name=value`, by lower-case name.
    """

    verb: str
    kind: str
    words: tuple[str, ...] = ()
    options: dict[str, Value] = field(default_factory=dict)


def parse_command(text: str) -> Query | Change:
    """Parse a text as a command.

    Raises:
        RefusedError: The text is not a valid command.
    """
    text = re.sub(r"(?<!\S)-[ \t]*\r?\n", " ", text)
    tokens = _tokens(text.strip().rstrip(";"))
    reader = _Reader(tokens)
    verb = reader.word().lower()
    if verb == "help":
        rest = tuple(token.text.lower() for token in tokens[1:])
        return Change(verb, rest[0] if rest else "", rest[1:])
    if verb not in ("list", "describe", "create", "drop", "alter"):
        raise_syntax_error()
    kind = reader.word().lower()
    if verb == "list":
        if kind not in KINDS:
            raise_syntax_error()
        return _query(reader, kind)
    return _change(reader, verb, kind)


def _tokens(text: str) -> list[Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if not text[at:].strip():
                break
            raise_syntax_error()
        kind = match.lastgroup or "word"
        inner = match[kind]
        found.append(Token(kind, inner[1:-1] if kind == "quoted" else inner))
        at = match.end()
    return found


class _Reader:
    """Cursor over the tokens of a command."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def more(self) -> bool:
        return self.at < len(self.tokens)

    def next(self) -> Token:
        if not self.more:
            raise_syntax_error()
        self.at += 1
        return self.tokens[self.at - 1]

    def word(self) -> str:
        token = self.next()
        if token.kind == "mark":
            raise_syntax_error()
        return token.text

    def peek(self, ahead: int = 0) -> str:
        """Return the token `ahead` positions further on, in lower case; '' for a quoted token and at the end."""
        at = self.at + ahead
        if at >= len(self.tokens) or self.tokens[at].kind == "quoted":
            return ""
        return self.tokens[at].text.lower()

    def take(self, *texts: str) -> bool:
        """Consume these keywords or marks if they come next, and return True if they did."""
        if all(self.peek(ahead) == text for ahead, text in enumerate(texts)):
            self.at += len(texts)
            return True
        return False

    def list(self) -> tuple[str, ...]:
        """Return a comma-separated list of words."""
        found = [self.word()]
        while self.take(","):
            found.append(self.word())
        return tuple(found)


def _query(reader: _Reader, kind: str) -> Query:
    names: tuple[str, ...] = ()
    if reader.more and reader.peek() not in _CLAUSES:
        names = () if reader.take("all") else reader.list()
    clauses = _Clauses()
    while reader.more:
        clauses.read(reader)
    if clauses.order and clauses.limit is None:
        raise RefusedError(
            2026,
            f'The LIMIT parameter is mandatory for "LIST {kind.upper()}" command when using the ORDER BY option.',
        )
    return Query(
        kind,
        names,
        clauses.attributes,
        tuple(clauses.where),
        clauses.order,
        clauses.limit,
        clauses.detail,
    )


class _Clauses:
    """The clauses that follow the object names of a LIST: each at most once, in any order."""

    def __init__(self) -> None:
        self.attributes: tuple[str, ...] | None = None
        self.where: list[Condition] = []
        self.order: tuple[tuple[str, bool], ...] = ()
        self.limit: int | None = None
        self.detail = False

    def read(self, reader: _Reader) -> None:
        """Parse the next clause."""
        if self.attributes is None and reader.take("attributes"):
            self.attributes = reader.list()
        elif not self.where and reader.take("where"):
            self.where.append(_condition(reader))
            while reader.take("and"):
                self.where.append(_condition(reader))
        elif not self.order and reader.take("order", "by"):
            self.order = _order(reader)
        elif self.limit is None and reader.take("limit"):
            self.limit = _whole(reader.word())
        elif not self.detail and reader.take("detail"):
            self.detail = True
        else:
            raise_syntax_error()


def _condition(reader: _Reader) -> Condition:
    attribute = reader.word()
    if reader.take("not", "like"):
        return Condition(attribute, "not like", reader.word())
    if reader.take("like"):
        return Condition(attribute, "like", reader.word())
    operator = reader.next().text
    if operator not in _OPERATORS:
        raise_syntax_error()
    return Condition(attribute, operator, reader.word())


def _order(reader: _Reader) -> tuple[tuple[str, bool], ...]:
    found = []
    while True:
        attribute = reader.word()
        down = reader.take("desc")
        if not down:
            reader.take("asc")
        found.append((attribute, down))
        if not reader.take(","):
            return tuple(found)


def _whole(text: str) -> int:
    if not text.isdigit():
        raise_syntax_error()
    return int(text)


def _change(reader: _Reader, verb: str, kind: str) -> Change:
    words: list[str] = []
    options: dict[str, Value] = {}
    while reader.more:
        word = reader.word()
        if reader.take("="):
            options[word.lower()] = _value(reader)
            reader.take(",")
        elif options:
            raise_syntax_error()
        else:
            words.append(word)
            reader.take(",")
    return Change(verb, kind, tuple(words), options)


def _value(reader: _Reader) -> Value:
    """Parse a word, or a list of values or `name=value` pairs in parentheses."""
    if not reader.take("("):
        return reader.word()
    pairs: dict[str, Value] = {}
    entries: list[Value] = []
    while not reader.take(")"):
        if reader.peek() == "(":
            entries.append(_value(reader))
        else:
            word = reader.word()
            if reader.take("="):
                pairs[word.lower()] = _value(reader)
            else:
                entries.append(word)
        if not reader.take(",") and reader.peek() != ")":
            raise_syntax_error()
    if pairs and entries:
        raise_syntax_error()
    return pairs or entries
