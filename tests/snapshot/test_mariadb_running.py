"""The text of a running statement and its digest text by MariaDB 10.11 are recognised as one statement; values are
removed.
"""

from __future__ import annotations

import time

import pytest

from dbdyno.snapshot.engines.mariadb import live
from dbdyno.snapshot.engines.mariadb.running_statements import LONGEST, OWN_PREFIX, Statements, normalized_words

PAIRS = [
    (r"select * from t where a = 1 and b = 'x''y\'z'", "SELECT * FROM `t` WHERE `a` = ? AND `b` = ? "),
    (
        "SELECT a,b FROM d.t WHERE a IN (1,2) AND b IN ('x')",
        "SELECT `a` , `b` FROM `d` . `t` WHERE `a` IN (...) AND `b` IN (?) ",
    ),
    ("insert into t values (1,'a'),(2,null),(3,'c')", "INSERT INTO `t` VALUES (...) /* , ... */ "),
    ("insert into t (a) values (1),(2)", "INSERT INTO `t` ( `a` ) VALUES (?) /* , ... */ "),
    ("insert into t values (1,now(),'c')", "INSERT INTO `t` VALUES ( ? , NOW ( ) , ? ) "),
    (
        "select * from t where (a,b) in ((1,'x'),(2,'y'))",
        "SELECT * FROM `t` WHERE ( `a` , `b` ) IN ( (...) /* , ... */ ) ",
    ),
    ("select a+-1, -1, - 5, +3, a - 1, 1 - 1 from t", "SELECT `a` + ?, ... , `a` - ?, ... - ? FROM `t` "),
    ("select -(-1), - -1, 2*-3, f(-1)", "SELECT - (?) , ?, ... * ? , `f` (?) "),
    (
        "update t set a = b - 1, b = -1 where a > -2 and a in (-1)",
        "UPDATE `t` SET `a` = `b` - ? , `b` = - ? WHERE `a` > - ? AND `a` IN (?) ",
    ),
    ("select null, true, b from t where b is null", "SELECT ? , TRUE , `b` FROM `t` WHERE `b` IS NULL "),
    ("select count(*) /* c */ from t # d", "SELECT COUNT ( * ) FROM `t` "),
    ("select /*! 1 + */ 2 -- e", "SELECT ? + ? "),
    ('select "double" from t where a = "x"', "SELECT ? FROM `t` WHERE `a` = ? "),
    ("select 0x1F, x'1f', 1e5, .5, N'foo', _utf8'bar'", "SELECT ? , (unknown) , ?, ... , (_charset) ? "),
    ("select @x := 1, @x, @@version", "SELECT @? := ? , @? , @@`version` "),
    ("select distinct a from t limit 5, 10;", "SELECT DISTINCTROW `a` FROM `t` LIMIT ?, ... "),
    ("select `a b`, 1a, ä from t", "SELECT `a b` , `1a` , `ä` FROM `t` "),
    ("select a != 1, b regexp '^a' from t", "SELECT `a` != ? , `b` RLIKE ? FROM `t` "),
    ("select b from t where a =  NAME_CONST('n',-5)", "SELECT `b` FROM `t` WHERE `a` = `n` "),
    ("update t set b =  NAME_CONST('v',_latin1'it''s)' COLLATE 'latin1_bin') ", "UPDATE `t` SET `b` = `v` "),
]


@pytest.mark.parametrize(("text", "digest_text"), PAIRS)
def test_a_text_is_its_digest(text: str, digest_text: str) -> None:
    statements = Statements()
    others = [(f"other {number}", other) for number, (_, other) in enumerate(PAIRS) if other != digest_text]
    before = statements.identifier(text)
    statements.learn([*others, ("its digest", digest_text)])
    assert before.startswith(OWN_PREFIX)
    assert statements.identifier(text) == statements.digest_of(before) == "its digest"
    assert statements.unknown_count() == 0


def test_a_sign_that_the_server_keeps_makes_another_statement() -> None:
    statements = Statements()
    shown = {"a + 7": "`a` + ?", "a - 7": "`a` - ?", "7": "?", "-7": "- ?"}
    statements.learn([(one, f"UPDATE `t` SET `a` = {text} ") for one, text in shown.items()])
    assert [statements.identifier(f"update t set a = {one}") for one in shown] == list(shown)


def test_a_statement_that_no_digest_is_known_of_has_a_text_without_values() -> None:
    statements = Statements()
    known = statements.identifier(
        "select a from t where b = 'secret' and c = 4711 and d in (12, 'secret\\'', x'5e') -- secret"
    )
    assert statements.texts == {known: "select a from t where b = ? and c = ? and d in (...)"}
    assert statements.identifier("") == statements.identifier(" /* only a comment */ ") == ""


@pytest.mark.parametrize(
    "open_end", ["'secret", '"secret', "'secret\\", "'secret''", "/* secret", "`t` where a = 'secret"]
)
def test_a_text_that_was_cut_off_gives_no_value_away(open_end: str) -> None:
    assert "secret" not in " ".join(normalized_words(f"select {open_end}", is_cut=True))


def test_a_long_load_is_known_by_its_beginning() -> None:
    statements = Statements()
    load = "insert into t values " + ", ".join(f"({number}, 'v{number}')" for number in range(900))
    cut = statements.identifier(load[:LONGEST])
    statements.learn(
        [("load", "INSERT INTO `t` VALUES (...) /* , ... */ "), ("other", "INSERT INTO `u` VALUES (...) ")]
    )
    assert statements.digest_of(cut) == "load"


def test_a_digest_that_the_server_cut_is_known_by_its_beginning() -> None:
    statements = Statements()
    names = [f"column_{number} + {number}" for number in range(90)]
    shown = "SELECT " + " , ".join(f"`column_{number}` + ?" for number in range(60)) + " , "
    whole = statements.identifier(f"select {', '.join(names)} from t")
    statements.learn([("short", "SELECT `column_0` + ? "), ("cut", shown)])
    assert statements.digest_of(whole) == "cut"


def test_hostile_texts_take_linear_time() -> None:
    for piece in ("(", "'", "/*", "-", "1,", "(1),", "`", "@", "NAME_CONST('a',", "_a ", "\\", "?, ..."):
        started = time.process_time()
        normalized_words((piece * LONGEST)[:LONGEST])
        assert time.process_time() - started < 0.5, piece


@pytest.mark.parametrize("quote", "'\"")
def test_the_live_screen_shows_no_value_of_a_text_cut_behind_a_backslash(quote: str) -> None:
    assert "secret" not in live.without_values(f"select {quote}secret\\")
