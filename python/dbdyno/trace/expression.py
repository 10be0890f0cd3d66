"""Expressions over typed columns (`--by`, `--where`, `--sum`), compiled to SQL on the evidence.

    condition  = part {"or" part} ; part = fact {"and" fact}
    fact       = ["not"] ( "(" condition ")" | expression op expression )
    op         = = == != <> < <= > >= ~
    expression = term {(+|-) term} ; term = factor {(*|/|%) factor}
    factor     = number | 'text' | name | function(expression, ...) | ( expression ) | - factor

The text that a text column is compared with needs no quotes (`class = commit`). `~` compares with a pattern, ignoring
case: % or * stands for any text, _ or ? for one character; a pattern without any of them matches anywhere in the text.
A missing value equals nothing and differs from everything; a division by zero is missing, too. The core's own filter
(`filter.rs`) reads the subset without arithmetic.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from dbdyno.base.errors import TraceError
from dbdyno.base.sql_text import literal
from dbdyno.trace.columns import COLUMNS, CORE, EXCLUSIVE, NUMBER, PARAMETERS, TEXT, parameter

_NAME = re.compile(r"[A-Za-z_#][A-Za-z0-9_#]*")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_OPERATOR = re.compile(r"<=|>=|!=|<>|==|=|<|>|~")
_BARE = re.compile(r"[^\s()'\"]+")
_NESTING_MOST = 50
FUNCTIONS = {
    "bucket": ("bucket(x, n): the largest power of n that is not above x; 0 below 1", (NUMBER, "step")),
    "floor": ("floor(x, n): x rounded down to a multiple of n", (NUMBER, "step")),
    "abs": ("abs(x)", (NUMBER,)),
    "min": ("min(x, y)", (NUMBER, NUMBER)),
    "max": ("max(x, y)", (NUMBER, NUMBER)),
    "lower": ("lower(text)", (TEXT,)),
    "upper": ("upper(text)", (TEXT,)),
    "left": ("left(text, n): its first n characters", (TEXT, "step")),
    "param": ("param('name'): a wait's parameter, by its name in the trace", ("literal",)),
}
"""What each function does, and the kinds of its arguments: `step` and `literal` are constants."""


class TypedExpression(NamedTuple):
    """An expression: its kind (`number` or `text`), its SQL, and its value in `constant` if it is a constant."""

    kind: str
    sql: str
    constant: str = ""


class CompiledExpression(NamedTuple):
    """A compiled expression: SQL, kind of its value, and whether the core's one-pass profile supports it, too."""

    sql: str
    kind: str
    is_core: bool


def compile_condition(text: str, table: str, where: str = "--where") -> CompiledExpression:
    """Compile a condition on `table` (`calls` or `waits`), whose rows are called `t`.

    Raises:
        TraceError: the text is not valid; the error marks the place.
    """
    parser = _Parser(text, table, where)
    sql = parser.either()
    parser.end("`and` or `or`")
    return CompiledExpression(sql, "truth", parser.is_core)


def compile_value(text: str, table: str, where: str = "--by", *, exclusive: bool = False) -> CompiledExpression:
    """Compile an expression on `table`; with `exclusive`, figures of calls exclude their recursive calls.

    Raises:
        TraceError: the text is not valid; the error marks the place.
    """
    parser = _Parser(text, table, where, exclusive)
    found = parser.sum()
    parser.end("an operator or the end")
    return CompiledExpression(found.sql, found.kind, parser.is_core and text.strip().lower() in CORE)


def split_expressions(text: str) -> list[str]:
    """Split a list of expressions at the commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        depth += (sign == "(") - (sign == ")") if not quote else 0
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


class _Parser:
    """Recursive descent parser without a tokeniser: the meaning of an unquoted word depends on its position."""

    def __init__(self, text: str, table: str, where: str, exclusive: bool = False) -> None:
        self.text, self.table, self.where, self.exclusive = text, table, where, exclusive
        self.at = self.nesting = 0
        self.is_core = True

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        """Raise `TraceError` with the place marked."""
        place = self.at if at is None else at
        raise TraceError(
            f"{what}\n  {self.text}\n  {' ' * place}^",
            where=self.where,
            next_step=f"use these names: {', '.join(sorted(COLUMNS))}; wait parameters: "
            f"{', '.join(PARAMETERS)}, class# ...;"
            f" functions: {', '.join(FUNCTIONS)}",
        )

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def takes(self, pattern: str | re.Pattern[str]) -> str:
        """Consume and return the text that matches here, or return ""."""
        self.blanks()
        if isinstance(pattern, str):
            found = pattern if self.text.startswith(pattern, self.at) else ""
        else:
            match = pattern.match(self.text, self.at)
            found = match[0] if match else ""
        self.at += len(found)
        return found

    def takes_word(self, word: str) -> bool:
        self.blanks()
        match = _NAME.match(self.text, self.at)
        if match is None or match[0].lower() != word:
            return False
        self.at = match.end()
        return True

    def end(self, expected: str) -> None:
        self.blanks()
        if self.at < len(self.text):
            self.fail(f"{expected} is expected here")

    def deeper(self) -> None:
        self.nesting += 1
        if self.nesting > _NESTING_MOST:
            self.fail("too many nested brackets")

    # Conditions.

    def either(self) -> str:
        parts = [self.both()]
        while self.takes_word("or"):
            parts.append(self.both())
        return f"({' or '.join(parts)})"

    def both(self) -> str:
        parts = [self.fact()]
        while self.takes_word("and"):
            parts.append(self.fact())
        return f"({' and '.join(parts)})"

    def fact(self) -> str:
        self.deeper()
        if self.takes_word("not"):
            found = f"(not {self.fact()})"
        elif self.opens_condition():
            self.takes("(")
            found = self.either()
            if not self.takes(")"):
                self.fail("a bracket is not closed")
        else:
            found = self.comparison()
        self.nesting -= 1
        return found

    def opens_condition(self) -> bool:
        """Return True if the bracket here contains a condition: no operator follows its closing bracket."""
        self.blanks()
        if not self.text.startswith("(", self.at):
            return False
        depth, quote = 0, ""
        for at in range(self.at, len(self.text)):
            sign = self.text[at]
            if quote:
                quote = "" if sign == quote else quote
            elif sign in "'\"":
                quote = sign
            depth += ((sign == "(") - (sign == ")")) if not quote else 0
            if depth == 0 and not quote:
                rest = self.text[at + 1 :].lstrip()
                return not (rest and (rest[0] in "+-*/%" or _OPERATOR.match(rest)))
        return self.fail("a bracket is not closed", len(self.text))

    def comparison(self) -> str:
        start = self.at
        left = self.sum()
        self.blanks()
        at = self.at
        operator = self.takes(_OPERATOR)
        if not operator:
            self.fail("one of = != < <= > >= ~ is expected here", at)
        if operator == "~":
            return f"coalesce({left.sql}::varchar ilike {_pattern(self.word())} escape '\\', false)"
        operator = {"==": "=", "<>": "!="}.get(operator, operator)
        if left.kind == TEXT:
            right = self.text_value()
        else:
            self.blanks()
            at = self.at
            right = self.sum()
            if right.kind != NUMBER:
                self.fail(f"{self.text[start:at].strip().rstrip('=<>! ')} must be compared with a number", at)
        missing = "true" if operator == "!=" else "false"
        return f"coalesce({left.sql} {operator} {right.sql}, {missing})"

    def text_value(self) -> TypedExpression:
        """Return the text to compare with: quoted, unquoted, or returned by a function."""
        self.blanks()
        match = _NAME.match(self.text, self.at)
        if match and match[0].lower() in FUNCTIONS and self.text[match.end() :].lstrip().startswith("("):
            return self.factor()
        return TypedExpression(TEXT, literal(self.word()))

    def word(self) -> str:
        """Parse a text that is written with or without quotes, and return it without them."""
        self.blanks()
        if self.text[self.at : self.at + 1] in ("'", '"'):
            return self.quoted()
        found = self.takes(_BARE)
        if not found:
            self.fail("a value is missing at the end" if self.at >= len(self.text) else "a value is expected here")
        return found

    def quoted(self) -> str:
        start, quote = self.at, self.text[self.at]
        match = re.compile(f"{quote}((?:[^{quote}]|{quote}{quote})*){quote}").match(self.text, self.at)
        if match is None:
            self.fail("a quote is not closed", start)
        self.at = match.end()
        return match[1].replace(quote * 2, quote)

    # Values.

    def sum(self) -> TypedExpression:
        left = self.product()
        while sign := self.takes("+") or self.takes("-"):
            left = self.joined(left, sign, self.product())
        return left

    def product(self) -> TypedExpression:
        left = self.factor()
        while sign := self.takes("*") or self.takes("/") or self.takes("%"):
            left = self.joined(left, sign, self.factor())
        return left

    def joined(self, left: TypedExpression, sign: str, right: TypedExpression) -> TypedExpression:
        if (left.kind, right.kind) != (NUMBER, NUMBER):
            self.fail(f"{sign} needs a number on each side")
        self.is_core = False
        by = f"nullif({right.sql}, 0)" if sign in "/%" else right.sql
        return TypedExpression(NUMBER, f"({left.sql}::double {sign} {by}::double)")

    def factor(self) -> TypedExpression:
        self.deeper()
        self.blanks()
        at = self.at
        if self.takes("("):
            found = self.sum()
            if not self.takes(")"):
                self.fail("a bracket is not closed")
        elif self.takes("-"):
            inner = self.factor()
            if inner.kind != NUMBER:
                self.fail("a number is expected here", at)
            found = TypedExpression(NUMBER, f"(-{inner.sql})")
        elif number := self.takes(_NUMBER):
            found = TypedExpression(NUMBER, number, number)
        elif self.text[at : at + 1] in ("'", '"'):
            text = self.quoted()
            found = TypedExpression(TEXT, literal(text), text)
        else:
            found = self.named()
        self.nesting -= 1
        return found

    def named(self) -> TypedExpression:
        at = self.at
        name = self.takes(_NAME).lower()
        if not name:
            self.fail("a name or a value is expected here", at)
        if name in FUNCTIONS and self.takes("("):
            return self.function(name)
        if name in COLUMNS:
            self.is_core = self.is_core and name in CORE
            column = COLUMNS[name]
            sql = column.waits if self.table == "waits" else column.calls
            return TypedExpression(column.kind, EXCLUSIVE.get(name, sql) if self.exclusive else sql)
        if name in PARAMETERS or "#" in name:
            self.is_core = False
            return TypedExpression(NUMBER, parameter(PARAMETERS.get(name, (name,)), self.table))
        return self.fail(f"{name!r} is not a name that a condition knows", at)

    def function(self, name: str) -> TypedExpression:
        self.is_core = False
        given: list[TypedExpression] = []
        meaning, wanted = FUNCTIONS[name]
        for number, kind in enumerate(wanted):
            if number and not self.takes(","):
                self.fail(f"a comma is expected here: {meaning}")
            self.blanks()
            at = self.at
            found = self.sum()
            fits = {"step": found.kind == NUMBER and _is_step(name, found.constant), "literal": found.kind == TEXT}
            if not fits.get(kind, found.kind == kind):
                self.fail(f"this does not fit {meaning}", at)
            given.append(found)
        if not self.takes(")"):
            self.fail(f"a bracket is not closed: {meaning}")
        return _call(name, given, self.table)


def _is_step(name: str, constant: str) -> bool:
    return bool(constant) and float(constant) > (1 if name == "bucket" else 0)


def _call(name: str, expressions: list[TypedExpression], table: str) -> TypedExpression:
    first = expressions[0].sql
    if name == "param":
        return TypedExpression(NUMBER, parameter((expressions[0].constant,), table))
    second = expressions[1].sql if len(expressions) > 1 else ""
    sql = {
        # The logarithm of an exact power may be slightly below the whole number; adding 1e-12 corrects that.
        "bucket": f"(case when {first} is null then null when {first} < 1 then 0 else"
        f" round(pow({second}, floor(ln({first}::double) / ln({second}::double) + 1e-12)), 6) end)",
        "floor": f"(floor({first}::double / {second}) * {second})",
        "abs": f"abs({first})",
        "min": f"least({first}, {second})",
        "max": f"greatest({first}, {second})",
        "lower": f"lower({first})",
        "upper": f"upper({first})",
        "left": f"left({first}, {second}::integer)",
    }[name]
    return TypedExpression(TEXT if name in ("lower", "upper", "left") else NUMBER, sql)


def _pattern(text: str) -> str:
    """Return a pattern as an SQL literal; without wildcards it matches anywhere."""
    if not set(text) & set("%*_?"):
        text = f"*{text}*"
    signs = {"*": "%", "?": "_", "\\": "\\\\", "'": "''"}
    return "'" + "".join(signs.get(sign, sign) for sign in text) + "'"
