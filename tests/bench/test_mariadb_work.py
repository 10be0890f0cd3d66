"""The work of each arm on a MariaDB server, as the server counts it, and the causes that Why derives from it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.mariadb.work_counters import index_counters, session_counters
from dbdyno.evidence.query import connect
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.analysis.pair import analyse_pair
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import start
from mariadb_server import MariaServer, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

OF_A_CUSTOMER = 20
PLAN = """\
title = "work"
target = "{dsn}"
[workload]
setup = ["drop table if exists orders", "create table orders (id int primary key, cust int, amount int{index})",
  "insert into orders select seq, seq div 20, seq from seq_1_to_20000", "analyze table orders"]
scripts = [{{name = "s", text = '''{script}'''}}]
[load]
sessions = 1
[schedule]
blocks = 5
warmup_blocks = 1
turn = "150ms"
slice = "50ms"
[watch]
overhead_blocks = 0
activity_hz = 200
{watch}
[verdict]
metric = "mean"
accept = ["level", "difference"]
"""
SUM = "select sum(amount){more} from orders{hint} where cust = :c;"
INDEX = ", key orders_cust (cust)"


def script(*, more: str = "", hint: str = "") -> str:
    return "\\set c random(1, 999)\n" + SUM.format(more=more, hint=hint)


def arm(name: str, **keys: str) -> str:
    return f'[[arm]]\nname = "{name}"\n' + "".join(f"{key} = {value}\n" for key, value in keys.items())


def scripted(text: str) -> str:
    return f"[{{name = \"s\", text = '''{text}'''}}]"


def run_of(server: MariaServer, folder: Path, arms: str, *, index: str = INDEX, watch: str = "") -> Run:
    text = PLAN.format(dsn=server.dsn, script=script(), index=index, watch=watch)
    return start(parse_plan(text + arms, folder / "plan.toml"), folder, seed=1)


def why_of(run: Run) -> JsonObject:
    found: JsonObject = analyse(run)["why"][0]
    assert not found["withheld"] and found["causes"], found
    assert found["causes"][0]["share"] > 0.3
    return found


def said(why: JsonObject) -> str:
    return " ".join(cause["sentence"] for cause in why["causes"])


def test_an_index_that_one_arm_ignores_is_the_first_cause(maria: MariaServer, tmp_path: Path):
    """The arms alternate in slices, so that the server's own counters are of both. It was called the same work."""
    arms = arm("used") + arm("ignored", scripts=scripted(script(hint=" ignore index (orders_cust)")))
    run = run_of(maria, tmp_path, arms)
    assert run.manifest.switch == "slices"
    why = why_of(run)
    first = why["causes"][0]
    assert (first["code"], first["about"]) == ("plan", "test.orders")
    assert "index orders_cust is not used, a transaction reads 20,000 rows by full scan (Handler_read_rnd_" in said(why)
    assert "20,000 rows read instead of" in first["evidence"][0] and "same work" not in said(why)
    connection, _ = connect(run)
    [(blocks,)] = connection.sql(
        "select count(distinct block) from metrics where source = 'session status' and arm = 'ignored'"
    ).fetchall()
    assert blocks == 6, "the sessions are counted in every block"


def test_an_index_that_one_arm_drops_is_the_first_cause(maria: MariaServer, tmp_path: Path):
    arms = arm("with", before_sql='["create index if not exists orders_cust on orders (cust)"]')
    arms += arm("without", before_sql='["drop index if exists orders_cust on orders"]')
    run = run_of(maria, tmp_path, arms, index="")
    assert run.manifest.switch == "turns"
    first = why_of(run)["causes"][0]
    assert (first["code"], first["about"]) == ("index", "orders_cust")
    assert "is not there with without: a transaction reads 20,000 rows by full scan" in first["sentence"]


def test_an_index_that_is_dropped_between_two_runs_is_the_first_cause(maria: MariaServer, tmp_path: Path):
    first, second = (run_of(maria, tmp_path, arm("load"), index=index) for index in (INDEX, ""))
    cause = analyse_pair(first, second)["why"][0]["causes"][0]
    assert (cause["code"], cause["about"]) == ("index", "orders_cust")


def test_a_function_that_costs_more_is_the_same_work_as_it_was_counted(maria: MariaServer, tmp_path: Path):
    arms = arm("plain") + arm("slow", scripts=scripted(script(more=", benchmark(7000, md5('x'))")))
    first = why_of(run_of(maria, tmp_path, arms))["causes"][0]
    assert first["sentence"] == "CPU of the server's sessions, for the same work"
    counted = float(OF_A_CUSTOMER + 1)  # the last call finds no row
    assert first["evidence"][-1] == (
        f"a transaction with slow and plain: {counted:.3g} and {counted:.3g} rows read (metrics: session status)"
    )


def test_nothing_is_called_the_same_where_no_work_is_counted(maria: MariaServer, tmp_path: Path):
    """Without counters all that is left are waits and CPU."""
    arms = arm("used") + arm("ignored", scripts=scripted(script(hint=" ignore index (orders_cust)")))
    why = why_of(run_of(maria, tmp_path, arms, watch="counters = false"))
    assert "same work" not in said(why) and "work was not counted" in said(why)
    assert not any("turns" in note for note in why["notes"]), "turns would not count it either"


def test_a_sessions_status_holds_a_statement_as_soon_as_it_has_ended(maria: MariaServer):
    program = {"dbdyno/a": "a"}
    with contextlib.closing(maria.connect(program_name="dbdyno/a")) as one, contextlib.closing(maria.connect()) as two:
        made = "create or replace table test.t (id int primary key, k int, key k (k))"
        rows(one, f"{made} select seq id, seq k from test.seq_1_to_100")
        before, by_index = dict_of(session_counters(two, program)), index_counters(two)
        rows(one, "select count(id + k) from test.t ignore index (k)")
        after, again = dict_of(session_counters(two, program)), index_counters(two)
        rows(two, "drop table test.t")
    assert after["a", "handler_read_rnd_next"] - before["a", "handler_read_rnd_next"] == 101
    assert after["a", "rows_read"] - before["a", "rows_read"] == 100
    values = [{one.object: one.value for one in found} for found in (by_index, again)]
    assert values[1]["test/t/"] - values[0].get("test/t/", 0) == 100
    assert values[1]["test/t/k"] == values[0].get("test/t/k", 0)


def dict_of(found: list[tuple[str, Any]]) -> dict[tuple[str, str], float]:
    return {(arm_name, metric.metric): metric.value for arm_name, metric in found}
