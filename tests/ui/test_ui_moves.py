"""Moves and rehearsals have their pages: what was proved and rejected, which statement became slower and why."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import duckdb
import psycopg
import pytest
from asking import Browser, Seen
from psycopg.conninfo import make_conninfo

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

pytestmark = pytest.mark.drawn(drawn=False)
ROWS, BAD = 200, 5


def moved(made: Path) -> Browser:
    """Move files into a table that rejects some of their rows; return a browser for it."""
    (made / "fruit").mkdir()
    names = f"case when id % {ROWS // BAD} <> 0 then 'apple' end as name"
    with duckdb.connect() as files:
        files.execute(
            f"copy (select id::integer as id, {names} from range(1, {ROWS + 1}) as numbers(id))"
            f" to '{made}/fruit/a.parquet' (format parquet)"
        )
    with EmbeddedPostgres() as engine:
        with psycopg.connect(**engine.conninfo(), autocommit=True) as conn:
            conn.execute("create table fruit (id int, name text not null)")
        words = ("--table", "fruit", "--job", made / "runs" / "fruit-in", "--rejects", made / "bad.jsonl")
        (made / "runs").mkdir()
        done = dbdyno("move", made / "fruit", "--to", make_conninfo("", **engine.conninfo()), *words)
        assert done.returncode in (0, 1), done.stderr
    return Browser(made / "runs", made / "snaps")


def test_a_move_s_page_has_its_proof_and_its_rejects_as_its_command_has_them(tmp_path: Path) -> None:
    there = moved(tmp_path)
    home = Seen(there.get("/").text)
    assert "/run?job=fruit-in" in home.links and f"{BAD} rows rejected" in home.words
    page = there.get("/run?job=fruit-in").text
    seen = Seen(page).words
    assert f"{ROWS} rows in" in seen and "What was proved" in seen and f"{ROWS - BAD} rows added" in seen
    assert seen.count("not-null constraint") == BAD
    words = shlex.split(re.findall(r"<code>(dbdyno [^<]*)</code>", page)[-1])
    assert f"{BAD} rows rejected" in dbdyno(*words[1:]).stdout
    assert json.loads(there.get("/run?job=fruit-in&format=json").body)["kind"] == "move"
    assert b"<svg" in there.get("/run?job=fruit-in&format=svg").body
    answer = there.get("/run?job=../runs/fruit-in")
    assert answer.status == 404 and "there is no move" in Seen(answer.text).words


@pytest.mark.soak
def test_the_page_of_a_rehearsal_names_the_slower_statement_and_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "rehearse")
    import rehearsal_help as rehearsals

    with rehearsals.shop() as engine:
        chosen = ("customer", "orders of", "region", "update")
        capture = rehearsals.capture(engine, "shop", tmp_path / "capture", repeats=6, chosen=chosen)
        old = rehearsals.database(engine, "old", template="shop")
        new = rehearsals.database(engine, "new", "drop index orders_customer", template="shop")
        done = dbdyno("rehearse", old, new, "--load", capture, "--out", tmp_path / "runs")
        assert done.returncode in (0, 1), done.stderr
    browser = Browser(tmp_path / "runs", tmp_path / "snaps")
    link = next(one for one in Seen(browser.get("/runs").text).links if one.startswith("/run?id="))
    words = Seen(browser.get(link).text).words
    assert "orders_customer does not exist on the new side" in words and "Slower statements" in words
    assert json.loads(browser.get(f"{link}&format=json").body)["kind"] == "rehearsal"
