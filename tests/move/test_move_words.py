"""Tests that SQL given by the user cannot change the statement around it."""

from __future__ import annotations

import pytest

from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres.sql import checked_sql


@pytest.mark.parametrize(
    "text",
    [
        "a > 3",
        "a in (1, 2) and b[1] = ')'",
        "x = 'it''s (' or y = E'\\')' -- a comment )",
        'x /* ) /* nested ( */ */ = "odd ) name"',
        "x = $q$ ) ; $q$ and y = $$'$$",
        "x = a$b and y > 1",
    ],
)
def test_a_whole_condition_is_taken_as_it_is(text: str) -> None:
    assert checked_sql(text, "--where") == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("true) union select (1", "line 1, column 5: ) has no matching opening bracket"),
        ("true; drop table t", "a semicolon"),
        ("x = 'open", "' is not closed"),
        ('"open = 1', '" is not closed'),
        ("(a = 1", "( is not closed"),
        ("a = (1]", "] has no matching opening bracket"),
        ("\n\n  $a$ )", "line 3, column 3: $a$ is not closed"),
        ("/* /* */ 1", "the comment is not closed"),
        ("  ", "is empty"),
        ("a = '\x00'", "NUL"),
    ],
)
def test_what_would_reach_beyond_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(MoveError) as refused:
        checked_sql(text, "--where")
    assert said in str(refused.value)
    assert refused.value.next_step


def test_only_a_query_may_end_in_a_semicolon() -> None:
    assert checked_sql("select 1; ", "--query") == "select 1; "
    with pytest.raises(MoveError):
        checked_sql("select 1; select 2", "--query")
