"""Tests of arms with an external client, on a real server, through the command line."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.base.errors import PlanError
from dbdyno.bench.clients import costs
from dbdyno.bench.clients.builtin import BUILTIN_CLIENTS
from dbdyno.bench.clients.process import ClientLostError
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.library import STUDIES
from dbdyno.study.plan.file import read_plan
from dbdyno.study.plan.plan import Plan, Schedule
from dbdyno.study.run.execute import start
from soaked import first

PRETENDED = Path(__file__).parents[1] / "bench" / "pretend_client.py"
TWO = '[[arm]]\nname = "own"\n[[arm]]\nname = "other"\nclient = "psycopg"\n'


def blocks(lab) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(lab.folder.glob("runs/*/blocks/*.json"))]


def rows(lab, sql: str) -> list[dict]:
    return json.loads(lab("sql", sql, "--format", "json").stdout)


@pytest.mark.soak
def test_two_clients_do_the_same_and_are_told_apart(lab):
    script = "\\set id random(1, 50)\nbegin;\nselect :id as one from generate_series(1, 3);\nend;\n"
    lab("run", lab.plan(TWO, script=script))
    found = rows(lab, "select arm, kind, min(rows) as least, max(rows) as most from calls group by all order by all")
    expected = [("begin", 0, 0), ("commit", 0, 0), ("exec", 3, 3), ("transaction", None, None)]
    for arm in ("other", "own"):
        own = [(row["kind"], row["least"], row["most"]) for row in found if row["arm"] == arm]
        assert [row[0] for row in own] == [row[0] for row in expected]
        assert own[2] == expected[2] and own[3] == expected[3]
    names = rows(lab, "select distinct statement from calls order by 1")
    assert len(names) == 4, "the same names in both arms"
    sessions = rows(lab, "select arm, count(distinct session) as n from calls group by arm")
    assert {row["n"] for row in sessions} == {2}
    assert rows(lab, "select count(*) as n from calls where error is not null") == [{"n": 0}]
    manifest = json.loads(next(lab.folder.glob("runs/*/manifest.json")).read_text())
    assert manifest["arms"][1]["changes"]["client"].startswith("psycopg (psycopg 3")
    assert all(block["report"]["arms"][1]["client_cpu_ns"] > 0 for block in blocks(lab)[1:])
    times = rows(lab, "select min(started_ns) as first, max(started_ns + elapsed_ns) as last from calls")[0]
    whole = [(block["started_ns"], block["ended_ns"]) for block in blocks(lab)]
    slack = 50_000_000
    assert min(whole)[0] - slack <= times["first"] and times["last"] <= max(whole)[1] + slack


def test_ways_of_sending_and_fetch_sizes_are_factors(lab):
    factors = """[[factor]]
client = ["psycopg"]
[[factor]]
statement_mode = ["literals", "binds", "prepared"]
[[factor]]
fetch_size = [1, 100]
"""
    script = "\\set n random(1, 50)\nselect i from generate_series(1, 20) i, pg_sleep(0.001) where i <> :n;\n"
    lab("run", lab.plan(factors, script=script, blocks=2))
    found = rows(lab, "select arm, min(rows) as least, max(rows) as most from calls group by arm")
    assert len(found) == 6 and all((row["least"], row["most"]) == (19, 20) for row in found)


def test_errors_of_a_client_have_their_sqlstate_and_no_data(lab, dsn):
    script = "\\set n random(0, 1)\nselect 1 / :n, 'hunter2' from pg_sleep(0.001);\n"
    lab("run", lab.plan('[[arm]]\nname = "a"\nclient = "psycopg"\n', script=script), code=1)
    found = rows(lab, "select error, count(*) as n from calls group by error order by error nulls first")
    assert [row["error"] for row in found] == [None, "22012"] and all(row["n"] > 0 for row in found)
    first = next(own["first_error"] for block in blocks(lab) for own in block["report"]["arms"] if own["first_error"])
    assert "division by zero" in first and "22012" in first
    everything = b"".join(path.read_bytes() for path in lab.folder.glob("runs/*/*.json"))
    from psycopg.conninfo import conninfo_to_dict

    assert conninfo_to_dict(dsn)["password"].encode() not in everything


def test_an_error_is_told_in_the_same_words_by_every_client(lab):
    """SQLSTATE, condition and message are those of our own load; they name the constraint, but not the row."""
    made = "create temp table if not exists once (id int primary key);\n"
    script = f"select pg_sleep(0.001);\n{made}insert into once values (4711);\n"
    arms = "".join(
        f'[[arm]]\nname = "{name}"\nclient = "{name}"\n'
        for name in ("psycopg", "asyncpg", "jdbc", "node-postgres", "pandas", "adbc")
        if BUILTIN_CLIENTS[name].missing() is None
    )
    plan = lab.plan(f'[[arm]]\nname = "own"\n{arms}', script=script, blocks=2, more='expected_errors = ["23505"]')
    lab("run", plan)
    found = rows(lab, "select distinct error, message, expected from calls where error is not null")
    message = 'duplicate key value violates unique constraint "once_pkey"'
    assert found == [{"error": "23505", "message": message, "expected": True}]


def test_an_open_loop_counts_from_when_a_transaction_was_due(lab):
    """One session gets 400 statements of 5 ms per second: each waits for the earlier ones, and its response time
    includes that wait."""
    arms = '[[arm]]\nname = "a"\nclient = "psycopg"\nsessions = 1\nrate_per_s = 400\n'
    lab("run", lab.plan(arms, script="select pg_sleep(0.005);", blocks=2), code=0)
    sql = (
        "select min(started_ns - intended_ns) as least, max(started_ns - intended_ns) as most, min(elapsed_ns) as took"
    )
    (found,) = rows(lab, f"{sql} from calls where kind = 'transaction'")
    assert found["least"] >= 0 and found["most"] > found["took"] >= 5_000_000
    own = [block["report"]["arms"][0] for block in blocks(lab)]
    assert max(one["lag_max_ns"] for one in own) >= found["most"] and not any(one["skipped"] for one in own)


def test_a_client_stands_as_far_away_as_its_network_says(lab):
    """With every client a statement takes at least twice the delay."""
    names = [name for name in ("psycopg", "jdbc") if BUILTIN_CLIENTS[name].missing() is None]
    arms = "".join(f'[[arm]]\nname = "{name}"\nclient = "{name}"\nnetwork = {{delay = "3ms"}}\n' for name in names)
    lab("run", lab.plan(arms + '[[arm]]\nname = "own"\nnetwork = {delay = "3ms"}\n', blocks=2))
    found = rows(lab, "select arm, min(elapsed_ns) as least, count(error) as errors from calls group by arm")
    assert len(found) == len(names) + 1
    assert all(row["least"] >= 6_000_000 and row["errors"] == 0 for row in found)
    lines = [own for block in blocks(lab) for own in block["report"]["lines"]]
    assert {own["arm"] for own in lines if own["pieces"] > 0} == set(range(len(names) + 1))


def test_a_client_that_does_not_go_through_the_line_is_named(lab, tmp_path):
    plan = lab.plan(arm("honest", tmp_path / "pid") + 'network = {delay = "1ms"}\n')
    assert "connected only 0 times through its arm's emulated network" in lab("run", plan, code=2).stderr


def arm(how: str, file: Path) -> str:
    words = json.dumps([sys.executable, str(PRETENDED), how, str(file)])
    return f'[[arm]]\nname = "own"\n[[arm]]\nname = "bad"\nclient = {words}\n'


def ended(file: Path) -> bool:
    return not Path(f"/proc/{file.read_text()}").exists()


def test_a_client_that_lies_ends_the_run_and_loses_no_whole_block(lab, tmp_path):
    said = lab("run", lab.plan(arm("backwards", tmp_path / "pid")), code=2).stderr
    assert "the client " in said and "reports impossible operations: times go backwards" in said
    assert ended(tmp_path / "pid")
    (run,) = lab.folder.glob("runs/*")
    assert json.loads((run / "manifest.json").read_text())["status"] == "aborted"
    assert not list(run.glob("calls/*.tmp")) and not list(run.glob("calls/*.parquet")), "nothing of a block that lies"


def test_a_client_that_dies_has_its_block_run_again_and_marked(lab, tmp_path):
    done = lab("run", lab.plan(arm("dies", tmp_path / "pid")))
    assert "is run again: the client" in done.stderr and "ended with exit 3: out of wits" in done.stderr
    marked = [block["index"] for block in blocks(lab) if any("run again" in mark for mark in block["marks"])]
    assert marked == [0] and [block["index"] for block in blocks(lab)] == [0, 1, 2, 3]
    assert ended(tmp_path / "pid")


def test_a_client_whose_times_are_too_short_is_named_and_its_block_is_run_again_and_marked(lab, tmp_path):
    """Regression: a client that reported half of each latency was taken for twice as fast."""
    path = lab.folder / lab.plan(arm("half", tmp_path / "pid"))
    path.write_text(path.read_text().replace('turn = "60ms"', 'turn = "240ms"'))  # 0.4 s of two sessions and more
    done = lab("run", path.name)
    assert "is run again: the client" in done.stderr and "its times are too short" in done.stderr
    marked = {block["index"]: [mark for mark in block["marks"] if "too short" in mark] for block in blocks(lab)}
    assert list(marked) == [0, 1, 2, 3]
    # On a busy machine slices grow within the first block, which then has less than 0.4 s.
    assert [at for at, marks in marked.items() if marks] in ([0], [1])
    assert ended(tmp_path / "pid")


def sweep(lab, *names: str) -> Plan:
    """Return a plan that compares clients; `dies` is one that exits."""
    dying = json.dumps([sys.executable, str(PRETENDED), "dies"])
    client = {"own": "", "psycopg": 'client = "psycopg"', "dies": f"client = {dying}"}
    arms = "".join(f'[[arm]]\nname = "{name}"\n{client[name]}\n' for name in names)
    return replace(read_plan(lab.folder / lab.plan(arms, blocks=2)), kind="sweep")


def test_a_sweep_begins_anew_without_a_client_that_dies_again_and_again(lab):
    """Its earlier blocks are kept, and the question names the dropped client and the reason."""
    run = start(sweep(lab, "own", "psycopg", "dies"), lab.folder / "runs")
    assert [arm["name"] for arm in run.manifest.arms] == ["own", "psycopg"]
    assert "Left out, since it was lost in 3 tries: the client" in run.manifest.question
    assert "out of wits" in run.manifest.question
    states = [json.loads(path.read_text())["status"] for path in lab.folder.glob("runs/*/manifest.json")]
    assert sorted(states) == ["aborted", "complete"]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("own", "dies"), id="a pair"),
        pytest.param(("dies", "own", "psycopg"), id="the base", marks=pytest.mark.soak),
    ],
)
def test_without_a_client_that_all_are_compared_with_nothing_is_begun_anew(lab, names):
    with pytest.raises(ClientLostError):
        start(sweep(lab, *names), lab.folder / "runs")
    assert len(list(lab.folder.glob("runs/*/manifest.json"))) == 1


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ('[[arm]]\nname = "a"\nclient = "psycpg"\n', "there is no client 'psycpg'"),
        ('[[arm]]\nname = "a"\nclient = ["no-such-program"]\n', "there is no program 'no-such-program'"),
        ('[[arm]]\nname = "a"\nfetch_size = 5\n', "fetch_size needs an external client"),
        ('[[arm]]\nname = "a"\nclient = "psycopg"\nprotocol = "simple"\nstatement_mode = "binds"\n', "not both"),
        ('[[arm]]\nname = "a"\nclient = []\n', "arm.client is empty"),
        ('[[arm]]\nname = "a"\nclient = 5\n', 'a name such as "psycopg", or the words of a command'),
    ],
)
def test_what_no_client_can_do_is_refused_before_anything_runs(lab, arms, words):
    assert words in lab("plan", "check", lab.plan(arms), code=2).stderr


def test_a_plan_check_shows_the_client_and_starts_none(lab, tmp_path):
    said = lab("plan", "check", lab.plan(arm("dies", tmp_path / "pid") + "fetch_size = 1000\n")).stdout
    assert (
        f"client {Path(sys.executable).name} {PRETENDED.name}, statements sent as prepared, 1,000 rows at a time"
        in said
    )
    assert not (tmp_path / "pid").exists()


def test_a_script_that_only_our_own_client_runs_is_refused_with_its_line(lab):
    plan = lab.plan('[[arm]]\nname = "a"\nclient = "psycopg"\n', script="select 1 as one \\gset\nselect :one;")
    said = lab("plan", "check", plan, code=2).stderr
    assert "script s, line 1: another client cannot keep results" in said


def test_a_plan_from_elsewhere_says_which_programs_it_would_start():
    from dbdyno.bench.postgres.bench import PostgresBench
    from dbdyno.study.plan.file import parse_plan

    text = f'title = "t"\n[workload]\nscripts = [{{text = "select 1;"}}]\n{TWO}'
    text += '[[arm]]\nname = "third"\nclient = ["./own", "--fast"]\n'
    plan = parse_plan(text, Path("/elsewhere/plan.toml"))
    said = PostgresBench.side_effects(plan, None)
    assert any("starts the client psycopg" in line for line in said)
    assert any("starts the client /elsewhere/./own --fast" in line or "/elsewhere/own --fast" in line for line in said)


def test_the_conformance_test_passes_psycopg_and_fails_what_pretends(lab, dsn, monkeypatch):
    monkeypatch.setattr(costs, "TURN_NS", 40_000_000)
    found = json.loads(lab("client", "check", "psycopg", "--target", dsn, "--format", "json").stdout)
    assert len(found) == 18
    assert [row for row in found if row["verdict"] == "failed"] == []
    client, own = (row["detail"] for row in found if row["verdict"] == "noted")
    assert all("/s, mean " in cost and " us of CPU each" in cost for cost in (client, own)), "by one measure"
    words = ("client", "check", "--target", dsn, "--", sys.executable, str(PRETENDED), "honest")
    said = lab(*words, code=1).stdout
    assert "ok      starts: pretended 1.0" in said and "failed  counts rows: rows of an empty query" in said
    assert "failed  accounts for all of its time: a statement that sleeps 200 ms was reported with 0.2 ms" in said
    assert "failed  keeps sessions: connections on the server: expected 3, found 0" in said


def test_the_clients_are_listed_with_what_installs_them(lab, monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CLIENTS", str(tmp_path))
    found = {row["client"]: row for row in json.loads(lab("client", "list", "--format", "json").stdout)}
    assert list(found) == list(BUILTIN_CLIENTS) and found["psycopg"]["installed"] == "yes"
    assert found["jdbc"]["installed"] == "no" and "make setup-clients" in found["jdbc"]["next"]


@pytest.mark.parametrize("name", [name for name in BUILTIN_CLIENTS if name not in ("psycopg", "duckdb-scan")])
def test_a_built_in_client_reads_the_same_rows(lab, name):
    """Tests the installed clients; CI has only psycopg."""
    if (gone := BUILTIN_CLIENTS[name].missing()) is not None:
        pytest.skip(gone)
    arms = f'[[arm]]\nname = "a"\nclient = "{name}"\n'
    lab("run", lab.plan(arms, script="select i, i * 0.5 as half, 'x' as word from generate_series(1, 7) i;", blocks=2))
    assert rows(lab, "select distinct rows, error from calls") == [{"rows": 7, "error": None}]


def test_duckdb_over_the_attached_server_reads_its_tables_and_refuses_what_it_would_answer_alone(lab):
    if (gone := BUILTIN_CLIENTS["duckdb-scan"].missing()) is not None:
        pytest.skip(gone)
    more = """setup = ["create table attached as select i, 'x' as word from generate_series(1, 7) i"]
teardown = ["drop table attached"]"""
    arms = '[[arm]]\nname = "a"\nclient = "duckdb-scan"\n'
    lab("run", lab.plan(arms, script="select i, word from attached where i <= 5;", blocks=2, more=more))
    assert rows(lab, "select distinct rows, error from calls") == [{"rows": 5, "error": None}]
    alone = lab("run", lab.plan(arms, script="select 1 as alone;", blocks=2), code=2).stderr
    assert "the client duckdb-scan cannot go on: DuckDB answers this query by itself" in alone


@pytest.mark.parametrize(
    ("study", "options", "factors"),
    first(
        ("bind-variables", {"sessions": "1", "client": "psycopg"}, ["statement_mode"]),
        ("drivers", {"client": "dbdyno,psycopg", "rows": "5,50"}, ["rows", "client"]),
        ("fetch-size", {"fetch_size": "1,10", "rows": "20", "delay": "none,1ms"}, ["delay", "fetch_size"]),
        count=2,
    ),
)
def test_a_study_of_clients_runs_at_a_small_size(tmp_path, dsn, study, options, factors):
    plan = STUDIES[study].plan(options, quick=True, target=dsn)
    small = Schedule(blocks=2, warmup_blocks=0, turn_ns=60_000_000, slice_ns=15_000_000)
    run = start(replace(plan, schedule=small), tmp_path)
    model = analyse(run)
    assert model["run"]["blocks_whole"] == 2 and sum(block.rows for block in run.blocks()) > 10
    assert not any(arm["error_codes"] for arm in model["arms"])
    assert run.manifest.plan["factors"] == factors
    assert any(warning["code"] == "client CPU" for warning in model["warnings"])


@pytest.mark.parametrize(
    ("study", "options", "words"),
    [
        ("fetch-size", {"delay": "far"}, "'far' is not a duration"),
        ("fetch-size", {"client": "dbdyno"}, "the built-in client reads all rows at once"),
        ("fetch-size", {"rows": "1,2"}, "expected only one number of rows for the table"),
        ("bind-variables", {"statement_mode": "guessed"}, "is not a level of this factor"),
        ("drivers", {"client": "odbc"}, "is not a level of this factor"),
        ("bind-variables", {"plan_time": "maybe"}, "is not a level of this factor"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(study, options, words):
    with pytest.raises(PlanError, match=words):
        STUDIES[study].plan(options)


def test_planning_is_told_where_the_server_counts_it():
    from dbdyno.study.analysis.measured import resources

    plan = STUDIES["bind-variables"].plan({"plan_time": "on"})
    assert plan.watch.statements and plan.schedule.switch == "turns"
    assert plan.embedded_settings == {"pg_stat_statements.track_planning": "on"}
    assert not STUDIES["bind-variables"].plan({}).watch.statements
    rows = [
        {"arm": 0, "plans": 1.0, "plan_ns": 19_500.0, "executions": 1.0},
        {"arm": 1, "plans": 0.001, "plan_ns": 70.0, "executions": 1.0},
    ]
    said = "Planning of a transaction: 19.5 us with literals (plans: 1); 70.0 ns with prepared (plans: 0.001)."
    hits = "Executions that took a plan that a session had kept: 0 % with literals; 99.9 % with prepared."
    assert resources._planning_sentences(rows, {0: "literals", 1: "prepared"}) == [said, hits]
    assert resources._planning_sentences([{"arm": 0}, {"arm": 1}], {}) == []


def test_drivers_says_which_clients_it_leaves_out(monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CLIENTS", str(tmp_path))
    plan = STUDIES["drivers"].plan({})
    assert "Left out, since they are not installed (make setup-clients): " in plan.question
    assert "jdbc" in plan.question and all(arm.client != "jdbc" for arm in plan.arms)


def test_drivers_runs_a_client_that_takes_seconds_only_where_it_is_named():
    """R calls pgjdbc for each value, which takes seconds for 10,000 rows of four; the default study leaves it out and
    takes two minutes."""
    assert BUILTIN_CLIENTS["r-jdbc-rows"].slow
    assert all(arm.client != "r-jdbc-rows" for arm in STUDIES["drivers"].plan({}).arms)
    (named,) = STUDIES["drivers"].plan({"client": "r-jdbc-rows"}).arms
    assert named.client == "r-jdbc-rows"
