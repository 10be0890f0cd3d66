"""Statements of two sets of traces that count as one, with any values and with any additions by tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_text import header

from dbdyno.study.analysis.traces.compare import compare_traces
from dbdyno.study.analysis.traces.options import ComparisonOptions
from dbdyno.study.analysis.traces.statement_matching import fold_text
from dbdyno.trace.source import open_traces


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select a from t where id = 17", 'select a from t where id = :"SYS_B_0"'),
        ("select a from t where id = 17 and b = 'x'", "select a from t where id = $1 and b = $2"),
        ("select a from t where id = :id", "SELECT a FROM t\n WHERE id = ?"),
        ("select a from t /*traceparent='00-4bf9',route='/x'*/", "select a from t"),
        ("select a from t -- by 12\n where b = 1.5e3", "select a from t where b = 2"),
        ("select a from t where b in (1, 2, 3)", "select a from t where b in (:1,:2)"),
    ],
)
def test_texts_of_one_statement_are_folded_alike(one: str, other: str):
    assert fold_text(one) == fold_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select a from t1 where id = 1", "select a from t2 where id = 1"),
        ('select "a1" from t', 'select "a2" from t'),
        ("select /*+ full(t) */ a from t", "select a from t"),
        ("select '--' from t", "select '/*' from u"),
        ("select a from t where b in (1, 2) and c = 1", "select a from t where b in (1, 2)"),
    ],
)
def test_texts_of_several_statements_are_not(one: str, other: str):
    assert fold_text(one) != fold_text(other)


def trace(texts: list[str], misses: int) -> str:
    """Return the trace of a session that parses each text once, executes it and fetches its rows."""
    tim, lines = 900_000_000_000, header("101.2002")
    for at, text in enumerate(texts):
        own = sorted(set(texts)).index(text)
        cursor, cost = 140_000_000_001_000 + at % 40 * 232, 700 if misses else 30
        tim += 100 + cost
        lines += [
            "=====================",
            f"PARSING IN CURSOR #{cursor} len={len(text)} dep=0 uid=84 oct=3 lid=84 tim={tim} hv={own + misses * 10**6}"
            f" ad='7f3a9c10' sqlid='{misses}{own:012d}'",
            text,
            "END OF STMT",
            f"PARSE #{cursor}:c={cost},e={cost},p=0,cr=0,cu=0,mis={misses},r=0,dep=0,og=1,plh=1,tim={tim}",
        ]
        tim += 90
        lines.append(f"EXEC #{cursor}:c=40,e=61,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=1,plh=1,tim={tim}")
        tim += 90
        lines.append(f"FETCH #{cursor}:c=30,e=40,p=0,cr=3,cu=0,mis=0,r=1,dep=0,og=1,plh=1,tim={tim}")
        tim += 400
        lines.append(
            f"WAIT #{cursor}: nam='SQL*Net message from client' ela= 300 driver id=1 #bytes=1 p3=0 obj#=-1 tim={tim}"
        )
    return "\n".join(lines) + "\n"


def test_a_statement_with_literals_meets_what_cursor_sharing_makes_of_it(tmp_path: Path):
    """Both were "only in" their set, with +6.7 s and -6.2 s, before the hard parses that were the cause."""
    (tmp_path / "exact.trc").write_text(trace([f"select name from orders where id = {n}" for n in range(500)], 1))
    (tmp_path / "force.trc").write_text(trace(['select name from orders where id = :"SYS_B_0"'] * 500, 0))
    with open_traces([str(tmp_path / "exact.trc")]) as one, open_traces([str(tmp_path / "force.trc")]) as other:
        model = compare_traces(one, other, ComparisonOptions(names=("exact", "force")))
    statements = [row for row in model["lines"] if row["family"] == "statement"]
    assert [row["only_in"] for row in statements] == [None]
    words = [cause["sentence"] for why in model["why"] for cause in why["causes"]]
    assert words[0].startswith("0 hard parses instead of 500; 500 of the texts differ only in literals"), words
    assert not any(" is only in " in word for word in words), words
