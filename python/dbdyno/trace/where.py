"""Conditions on waits and calls, as the core reads them, translated to SQL for evidence.

    event = 'log file sync' and elapsed_us > 1000
    (module ~ batch or not depth = 0) and statement != '6v48b7j2tc4a0'

`name op value`, joined by `and`, `or`, `not` and brackets. Operators: = != < <= > >=, and `~`,
which compares with a pattern without regard to case: % or * stands for any text, _ or ? for one
character; without any of them the text may stand anywhere. What a row does not have equals nothing
and differs from everything. The same grammar as the core's own filter, which profiles use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbdyno.errors import TraceError
from dbdyno.trace.source import Traces

_CONTEXT = "(select x.{0} from contexts x where x.context = t.context)"
_COMMON = {
    "statement": "t.statement",
    "force": "(select x.force_key from statements x where x.statement = t.statement limit 1)",
    "module": _CONTEXT.format("module"),
    "action": _CONTEXT.format("action"),
    "client": _CONTEXT.format("client_id"),
    "service": _CONTEXT.format("service"),
    "container": _CONTEXT.format("container"),
    "session": "(select coalesce(nullif(x.name, ''), x.process) from sessions x where x.session = t.session)",
    "file": "(select x.path from files x where x.file = t.file)",
    "depth": "t.depth",
    "second": "(t.started_ns // 1000000000)",
    "minute": "(t.started_ns // 60000000000)",
    "elapsed_us": "(t.elapsed_ns // 1000)",
}
NAMES = {
    "waits": _COMMON
    | {
        "event": "t.event",
        "class": "t.class",
        "object": "t.object_id",
        "p1": "t.p1",
        "p2": "t.p2",
        "p3": "t.p3",
        "kind": "(select x.kind from all_calls x where x.call = t.call)",
        "rows": "null",
    },
    "calls": _COMMON
    | {"kind": "t.kind", "rows": "t.rows"}
    | dict.fromkeys(("event", "class", "object", "p1", "p2", "p3"), "null"),
}
"""What a condition may name, and the SQL for it on each table (as `t`)."""
_NUMBERS = {"depth", "second", "minute", "elapsed_us", "object", "p1", "p2", "p3", "rows"}
_TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?P<op><=|>=|!=|<>|=|<|>|~)"
    r"|(?P<bracket>[()])|(?P<word>[^\s()<>=!~'\"]+))"
)
_OPERATORS = {"=", "!=", "<>", "<", "<=", ">", ">=", "~"}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


def to_sql(text: str, table: str) -> str:
    """The condition as SQL on `table` (`calls` or `waits`), whose rows are called `t`.

    Raises `TraceError` with the place of what does not fit.
    """
    parser = _Parser(text, NAMES[table])
    return parser.whole()


def restrict(
    traces: Traces,
    *,
    where: str | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
    depth: int | None = None,
) -> None:
    """Lets every later question on `traces` see only what fits: views of the same names are laid
    over calls and waits."""
    if where is None and from_ns is None and to_ns is None and depth is None:
        return
    execute = traces.connection.execute
    execute("create temp view all_calls as select * from memory.main.calls")
    for table in ("calls", "waits"):
        conditions = [to_sql(where, table)] if where else []
        if from_ns is not None:
            conditions.append(f"t.started_ns + t.elapsed_ns >= {int(from_ns)}")
        if to_ns is not None:
            conditions.append(f"t.started_ns < {int(to_ns)}")
        if depth is not None:
            conditions.append(f"t.depth <= {int(depth)}")
        chosen = " and ".join(f"({condition})" for condition in conditions)
        execute(f"create temp view {table} as select t.* from memory.main.{table} t where {chosen}")  # noqa: S608


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, text: str, names: dict[str, str]) -> None:
        self.text, self.names = text, names
        self.tokens = self._split(text)
        self.next = 0

    def _split(self, text: str) -> list[_Token]:
        tokens, at = [], 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                place = len(text) - len(text[at:].lstrip())
                self.fail("a quote that is not closed, or a sign that has no meaning here", place)
                break
            kind = str(found.lastgroup)
            tokens.append(_Token(kind, found.group(kind), found.start(kind)))
            at = found.end()
        return tokens

    def fail(self, what: str, at: int | None = None) -> None:
        """Raises, with the place marked."""
        place = len(self.text) if at is None else at
        raise TraceError(
            f"{what}\n  {self.text}\n  {' ' * place}^",
            where="--where",
            next_step=f"names: {', '.join(sorted(self.names))}",
        )

    def whole(self) -> str:
        """The whole text as one condition."""
        found = self.either()
        if self.next < len(self.tokens):
            self.fail("`and` or `or` is expected here", self.tokens[self.next].at)
        return found

    def either(self) -> str:
        parts = [self.both()]
        while self.takes("or"):
            parts.append(self.both())
        return f"({' or '.join(parts)})"

    def both(self) -> str:
        parts = [self.single()]
        while self.takes("and"):
            parts.append(self.single())
        return f"({' and '.join(parts)})"

    def single(self) -> str:
        if self.takes("not"):
            return f"(not {self.single()})"
        if self.takes("("):
            found = self.either()
            if not self.takes(")"):
                self.fail("a bracket is not closed", self.place())
            return found
        return self.comparison()

    def comparison(self) -> str:
        name = self.token("a name")
        if name.kind != "word" or name.text.lower() not in self.names:
            self.fail(f"{name.text!r} is no name that a condition knows", name.at)
        operator = self.token("an operator")
        if operator.text.lower() not in _OPERATORS:
            self.fail(f"{operator.text!r} is no operator", operator.at)
        return self._compared(name.text.lower(), operator.text.lower(), self.token("a value"))

    def _compared(self, name: str, operator: str, value: _Token) -> str:
        found = self._condition(name, operator, value)
        is_unlike = operator in ("!=", "<>")
        return f"coalesce({found}, {'true' if is_unlike else 'false'})"

    def _condition(self, name: str, operator: str, value: _Token) -> str:
        column = self.names[name]
        text = value.text
        if value.kind == "string":
            text = text[1:-1].replace(text[0] * 2, text[0])
        elif value.kind != "word":
            self.fail("a value is expected here", value.at)
        quoted = "'" + text.replace("'", "''") + "'"
        if operator == "~":
            return f"({column}::varchar ilike {_pattern(text)} escape '\\')"
        if name in _NUMBERS:
            if not re.fullmatch(r"-?\d+(\.\d+)?", text):
                self.fail(f"{name} is compared with a number", value.at)
            return f"({column} {operator} {text})"
        return f"({column} {operator} {quoted})"

    def takes(self, word: str) -> bool:
        """Goes on when the next token is this word or bracket."""
        if self.next < len(self.tokens):
            token = self.tokens[self.next]
            if token.kind != "string" and token.text.lower() == word:
                self.next += 1
                return True
        return False

    def token(self, what: str) -> _Token:
        if self.next >= len(self.tokens):
            self.fail(f"{what} is missing at the end")
        self.next += 1
        return self.tokens[self.next - 1]

    def place(self) -> int:
        return self.tokens[self.next].at if self.next < len(self.tokens) else len(self.text)


def _pattern(text: str) -> str:
    """A pattern as SQL's: what has no sign for anything may stand anywhere."""
    if not set(text) & set("%*_?"):
        text = f"*{text}*"
    signs = {"*": "%", "?": "_", "\\": "\\\\", "'": "''"}
    return "'" + "".join(signs.get(sign, sign) for sign in text) + "'"
