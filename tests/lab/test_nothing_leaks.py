"""Tests that no file of a run, packed or not, contains a password or a value of a row."""

from __future__ import annotations

from pathlib import Path

import duckdb
import psycopg
from psycopg.conninfo import conninfo_to_dict

SECRET = "Zq7hunterValue"
"""Value in a row that the server can echo: in messages, DETAIL, CONTEXT, and function texts."""

HIDDEN = f"""
create table hidden (v text unique, n int check (n < 5));
insert into hidden values ('{SECRET}', 1);
create function tell() returns int language plpgsql as $$
  begin raise exception 'client % is broke', (select v from hidden) using detail = (select v from hidden),
    hint = (select v from hidden); end $$;
create function slow(text) returns int language sql as 'select 1 from pg_sleep(0.02)';
"""
SCRIPTS = """
[workload]
protocol = "extended"
scripts = [
  {name = "twice", text = "insert into hidden select v from hidden;"},
  {name = "cast", text = "select v::int from hidden;"},
  {name = "check", text = "update hidden set n = 9;"},
  {name = "raise", text = "select tell();"},
  {name = "ends", text = "select 1 from hidden where slow(v) = 1;"},
]
"""
ARMS = '[[arm]]\nname = "a"\n[[arm]]\nname = "b"\nsettings = {work_mem = "1MB"}\n'


def everything(folder: Path) -> str:
    """Return all text in all files: the values of Parquet, the bytes of anything else."""
    parts = []
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            parts.append(str(duckdb.from_parquet(str(path)).fetchall()))
        if path.is_file():
            parts.append(path.read_bytes().decode("utf-8", "replace"))
    return "\n".join(parts)


def test_neither_a_password_nor_a_value_of_a_row_is_left_in_a_run_folder(lab, dsn: str, html_page: None) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(HIDDEN)
    try:
        plan = lab.folder / lab.plan(ARMS, blocks=6)
        text = plan.read_text()
        begin, end = text.index("[workload]"), text.index("[load]")
        text = text[:begin] + SCRIPTS + text[end:]
        plan.write_text(text.replace("overhead_blocks = 0", "overhead_blocks = 0\nactivity_hz = 200"))
        done = lab("run", plan.name, code=1)
        page = lab("report", "last", "-o", "page.html")
    finally:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("drop table hidden; drop function tell; drop function slow")
    password = conninfo_to_dict(dsn)["password"]
    plan.unlink()  # the user's own file, which holds both
    kept = everything(lab.folder) + done.stdout + done.stderr + page.stdout + page.stderr
    assert "23505" in kept and "22P02" in kept and "P0001" in kept, "the errors themselves are told"
    assert "PgSleep" in kept, "the watcher saw sessions at work"
    for secret in (SECRET, password):
        assert secret not in kept, kept[max(0, kept.index(secret) - 300) :][:600]
