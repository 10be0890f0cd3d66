"""Plans that test a recommendation: their text, how it is parsed, and how a result changes the recommendation."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import dbdyno
from dbdyno.advise import experiments, proofs
from dbdyno.advise.experiments import Load, plan_text, untestable
from dbdyno.advise.facts import Facts
from dbdyno.advise.judge import choose_rules, judge, rules, worst_findings
from dbdyno.advise.kinds import Database, Io, Server, Setting, Statement, Wal
from dbdyno.advise.proofs import Proof, proof_of, save_proof, stored_proofs
from dbdyno.base.errors import AdviceError
from dbdyno.base.json_types import JsonObject
from dbdyno.cli.advise.prove import load_of, plan_of, write_plans
from dbdyno.evidence.manifest import Manifest
from dbdyno.study.plan.file import parse_plan, read_plan

SERVER = Server("postgres", "17.2", 170002, identity="7301")
SETTINGS = (
    Setting("shared_buffers", "16384", "8kB"),
    Setting("effective_cache_size", "1024", "8kB"),
    Setting("wal_buffers", "4", "8kB"),
    Setting("work_mem", "4096", "kB"),
    Setting("jit", "on"),
    Setting("random_page_cost", "4"),
    Setting("seq_page_cost", "1"),
    Setting("track_io_timing", "off"),
    Setting("block_size", "8192"),
    Setting("fsync", "off"),
)
SORT = Statement(
    "77", "select x\nfrom t order by \x1b[31m y", 10, 6e4, 10, 0, 0, 20_000, temp_ms=3e4, jit_ms=2e4, jit_functions=5
)
READS = Database("app", 2_000_000, 0, None, 0, 0, 10, 1, 1e6, 1, 1, 10.0, is_current=True)
IO = [
    Io("client backend", "relation", "normal", 20_000, 20_000 * 0.5, 20_000 * 8192, 0),
    Io("client backend", "relation", "bulkread", 20_000, 20_000 * 0.4, 20_000 * 8192, 0),
]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DBDYNO_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def judged(results: tuple[Proof, ...] = (), server: Server = SERVER) -> JsonObject:
    rows = {Statement: [SORT], Database: [READS], Io: IO, Wal: [Wal(10 * 2**20, 9, 0, 5000, 10.0)]}
    return judge(Facts("db1", "server", {Server: [server], Setting: SETTINGS, **rows}), rules(), results)


def of(rule: str, model: JsonObject) -> JsonObject:
    return next(one for one in model["findings"] if one["rule"] == rule)


def result(verdict: str = "refuted", ran_on: str = "7301", at: str = "2026-11-23T01:02:03+00:00", **more: str) -> Proof:
    about = {"rule": "effective_cache_size", "subject": "effective_cache_size", "setting": "effective_cache_size"}
    known = {**about, "found": "8MB", "proposed": "256MB", "engine": "7301", **more}
    return Proof(
        **known, ran_on=ran_on, verdict=verdict, headline="", gates=(), run="r1", target="db1", load="x", at=at
    )


OWN = Load("report.sql", "\\set a random(1, 9)\nselect :a, '\x7f\"\\';\n")
TESTED = {"effective_cache_size", "wal_buffers", "random_page_cost", "track_io_timing", "jit", "temp_files"}


def test_every_rule_with_a_setting_that_fires_has_a_plan_that_the_reader_takes(tmp_path: Path) -> None:
    model = judged()
    write_plans(model, tmp_path / "plans", OWN, force=False)
    plans = {path.name: read_plan(path) for path in (tmp_path / "plans").iterdir()}
    assert {one["rule"] for one in model["findings"] if not untestable(one, OWN)} == TESTED
    number = of("temp_files", model)["number"]
    sort = plans[f"advise-{number:02d}-work_mem.toml"]
    assert [arm.settings for arm in sort.arms] == [{"work_mem": "4MB"}, {"work_mem": "64MB"}]
    assert [arm.name for arm in sort.arms] == ["found", "proposed"]
    assert sort.workload.scripts[0].text == OWN.script and len(plans) == len(TESTED)
    assert sort.dsn is None and not any(plan.alter_system for plan in plans.values()), "a server is named by hand"


def test_the_comments_say_what_is_tested_by_which_figures_and_what_refutes_it() -> None:
    model = judged()
    text = plan_text(model, of("random_page_cost", model), None)
    assert "random_page_cost says 4" in text and "random read of a page: 500 µs" in text
    assert "random_page_cost says 4" in text and "built-in mix oltp-read-only. Your own load is the better test" in text
    spoiled = plan_text(model, of("temp_files", model), OWN)
    assert "\x1b" not in spoiled and "better test" not in spoiled, "a statement's text is one visible line"


@pytest.mark.parametrize(("unit", "value", "written"), [("8kB", "16384", "128MB"), ("kB", "4097", "4097kB")])
def test_a_value_is_written_as_the_server_takes_it(unit: str, value: str, written: str) -> None:
    assert Setting("x", value, unit).as_text == written
    assert Setting("x", "4").as_text == "4" and Setting("x", "-1", "8kB").as_text == "-1"
    assert Setting("x", "300", "s").as_text == "300s"


def test_what_cannot_be_tested_is_said_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = judged()
    write_plans(model, tmp_path, None, force=False)
    said = capsys.readouterr().err
    assert "fsync: not testable by a setting" in said
    assert "temp_files: it is about one statement 77: give that as --workload" in said
    assert not list(tmp_path.glob("*work_mem*")) and list(tmp_path.glob("*wal_buffers*"))
    finding = {**of("wal_buffers", model), "test": {**of("wal_buffers", model)["test"], "found": ""}}
    assert "not known" in untestable(finding, None)


def test_the_fix_of_a_sort_too_large_for_memory_is_no_setting() -> None:
    large = replace(SORT, temp_written=2_000_000)
    rows = {Server: [SERVER], Setting: SETTINGS, Statement: [large]}
    assert judge(Facts("x", "server", rows), choose_rules(["temp_files"]))["findings"][0]["test"] is None


def test_no_plan_is_overwritten_without_force(tmp_path: Path) -> None:
    model = judged()
    write_plans(model, tmp_path, None, force=False)
    first = next(tmp_path.iterdir())
    first.write_text("mine")
    with pytest.raises(AdviceError, match="exists already; no plan was written"):
        write_plans(model, tmp_path, OWN, force=False)
    assert first.read_text() == "mine" and not list(tmp_path.glob("*work_mem*"))
    write_plans(model, tmp_path, None, force=True)
    assert first.read_text() != "mine"


def test_shared_buffers_meet_more_data_than_they_hold() -> None:
    finding = {**of("wal_buffers", judged()), "rule": "shared_buffers"}
    test = {"setting": "shared_buffers", "found": "512MB", "proposed": "1GB", "of_statement": False, "gains": True}
    assert parse_plan(plan_text(judged(), {**finding, "test": test}, None), Path("p")).workload.scale == 64


def test_a_workload_is_a_mix_or_a_script_that_parses(tmp_path: Path) -> None:
    assert load_of("tpcb-like") == Load("tpcb-like")
    (tmp_path / "s.sql").write_text("select 1;\n")
    assert load_of(str(tmp_path / "s.sql")) == Load("s.sql", "select 1;\n")
    with pytest.raises(AdviceError, match="built-in mix: tpcb-like"):
        load_of("tpcc")


def test_a_plan_knows_its_advice_and_whether_it_was_changed() -> None:
    model = judged()
    text = plan_text(model, of("wal_buffers", model), None)
    experiment, own = experiments.read(text, "p")
    assert own and (experiment.found, experiment.proposed, experiment.engine) == ("32kB", "16MB", "7301")
    assert not experiments.read(text.replace("blocks = 12", "blocks = 6"), "p")[1]
    assert not experiments.read(text.replace('"7301"', '"7302"', 1), "p")[1]
    for other in ("title = 'x'\n", "# advice: {}\n", "# advice: []\n", text.replace('"gains": true', '"gains": 1')):
        with pytest.raises(AdviceError, match="which advice it tests"):
            experiments.read(other, "p")


def proving(tmp_path: Path, text: str, *more: str) -> Any:
    (tmp_path / "p.toml").write_text(text)
    return dbdyno("advise", "--prove", "p.toml", "--target", "postgres", *more, cwd=tmp_path)


def test_prove_goes_to_the_named_target_alone_and_asks_before_what_was_changed(tmp_path: Path) -> None:
    text = plan_text(judged(), of("wal_buffers", judged()), None)
    assert dbdyno("advise", "--prove", "p.toml").returncode == 2
    told = proving(tmp_path, text.replace('"16MB"}', '"1MB"}'))
    assert told.returncode == 2 and "no longer the value found" in told.stderr
    told = proving(tmp_path, text.replace('name = "found"', 'name = "found"\ndsn = "host=evil"'))
    assert told.returncode == 2 and "other servers or clients" in told.stderr
    told = proving(tmp_path, text.replace("builtin = ", "teardown = ['drop table theirs']\nbuiltin = "))
    assert told.returncode == 2 and "sends drop table theirs" in told.stderr and "nobody answered" in told.stderr
    assert not (tmp_path / "runs").exists()
    told = dbdyno("advise", "--prove", "p.toml", "--target", "model:x", cwd=tmp_path)
    assert told.returncode == 2 and "on PostgreSQL" in told.stderr


def test_one_finding_is_proved_by_its_rule_or_its_number() -> None:
    model = judged()
    number = str(of("wal_buffers", model)["number"])
    assert plan_of(model, "wal_buffers", None) == plan_of(model, number, None)
    with pytest.raises(AdviceError, match="no findings match 'x'"):
        plan_of(model, "x", None)
    with pytest.raises(AdviceError, match="not testable"):
        plan_of(model, "fsync", None)


@pytest.mark.parametrize(
    ("decision", "gains", "verdict"),
    [
        ("faster", True, "proved"),
        ("same", True, "refuted"),
        ("slower", True, "refuted"),
        ("same", False, "proved"),
        ("slower", False, "refuted"),
        ("unclear", True, "cannot tell"),
        ("provisional", True, "cannot tell"),
        ("no verdict", False, "cannot tell"),
    ],
)
def test_what_a_decision_means_for_an_advice(decision: str, gains: bool, verdict: str) -> None:
    assert proofs.verdict_of(decision, gains) == verdict


def test_a_mix_without_a_statement_whose_plan_changes_refutes_no_cost_of_the_planner() -> None:
    model = judged()
    finding = of("random_page_cost", model)
    mix, own = (experiments.read(plan_text(model, finding, load), "p")[0] for load in (None, OWN))
    assert mix.is_blind and not own.is_blind
    assert proofs.verdict_of("same", True, mix.is_blind) == "cannot tell"
    assert proofs.verdict_of("slower", True, mix.is_blind) == "refuted"
    assert "no difference of 2 %" in plan_text(model, finding, OWN)
    assert "no difference of 2 %" not in plan_text(model, finding, None)


def test_a_result_is_kept_with_the_gates_that_failed(state: Path) -> None:
    experiment, _ = experiments.read(plan_text(judged(), of("wal_buffers", judged()), None), "p")
    gates = [{"name": "work", "ok": False}, {"name": "drift", "ok": True}, {"name": "work", "ok": False}]
    analysis = {"verdict": {"decision": "no verdict", "headline": "h"}, "gates": gates}
    save_proof(
        proof_of(experiment, analysis, Manifest.from_values({"targets": {"db1": {"system_identifier": "7301"}}}), "r1")
    )
    (state / "advice" / "torn.json").write_text("{")
    (found,) = stored_proofs()
    assert found.is_on_same_engine and "cannot tell on 20" in found.as_text and "gates failed: work" in found.details


def test_a_result_of_an_embedded_server_says_so() -> None:
    experiment, _ = experiments.read(plan_text(judged(), of("wal_buffers", judged()), None), "p")
    analysis = {"verdict": {"decision": "faster", "headline": "h"}, "gates": []}
    embedded = {"system_identifier": "9", "owned": True, "server_version": "15.18"}
    found = proof_of(experiment, analysis, Manifest.from_values({"targets": {"host=/tmp/x": embedded}}), "r1")
    assert not found.is_on_same_engine and found.as_text.startswith("proved on another server (embedded 15.18) on 20")


def test_a_result_that_cannot_be_kept_is_an_error_that_names_the_run(state: Path) -> None:
    state.write_text("a file")
    with pytest.raises(AdviceError, match="it is still in run r1"):
        save_proof(result())


def test_refuted_advice_comes_last_says_by_which_run_and_fails_no_build() -> None:
    assert judged()["findings"][-1]["rule"] != "effective_cache_size"
    model = judged((result(),))
    last = model["findings"][-1]
    assert last["rule"] == "effective_cache_size" and last["refuted"]
    assert last["proof"]["words"] == "refuted on 2026-11-23 by run r1"
    assert not any("effective_cache_size" in line for line in worst_findings(model, "hint"))


def test_the_last_result_decides_and_one_of_another_server_does_not() -> None:
    later = result("proved", at="2026-11-24T00:00:00+00:00")
    elsewhere = result(ran_on="9", at="2026-11-25T00:00:00+00:00")
    found = of("effective_cache_size", judged((result(), later, elsewhere)))
    assert found["proof"]["words"].startswith("proved on 2026-11-24") and not found["refuted"]
    found = of("effective_cache_size", judged((elsewhere,)))
    assert "refuted on another server (db1)" in found["proof"]["words"] and not found["refuted"]


def test_a_result_with_another_value_stands_beside_the_advice_and_does_not_refute_it() -> None:
    """An experiment adds calls that do not spill to the statistics, so what is proposed afterwards is less."""
    found = of("effective_cache_size", judged((result(proposed="1GB"),)))
    assert found["proof"]["words"].startswith("refuted with effective_cache_size 1GB on 2026-11-23 by")
    assert not found["refuted"] and found["test"]["proposed"] != "1GB"
    own = of("effective_cache_size", judged((result("proved"), result(proposed="1GB", at="2026-11-25T00:00:00+00:00"))))
    assert own["proof"]["words"].startswith("proved on 2026-11-23"), "a result with the value itself comes first"


def test_a_larger_value_that_was_proved_stays_the_proposed_one() -> None:
    now = of("effective_cache_size", judged())["test"]["proposed"]
    proved = of("effective_cache_size", judged((result("proved", proposed="64TB"),)))
    assert now != "64TB" and proved["test"]["proposed"] == "64TB" and "'64TB'" in proved["fix"][0]
    assert proved["proof"]["words"].startswith("proved on 2026-11-23")
    smaller = of("effective_cache_size", judged((result("proved", proposed="1MB"),)))
    assert smaller["test"]["proposed"] == now and "proved with effective_cache_size 1MB" in smaller["proof"]["words"]


@pytest.mark.parametrize("other", [{"engine": "9"}, {"subject": "other"}])
def test_a_result_is_of_one_engine_and_subject(other: dict[str, str]) -> None:
    assert of("effective_cache_size", judged((result(**other),)))["proof"] is None


def test_without_an_identity_no_result_is_anybodys() -> None:
    model = judged((result(engine="", ran_on=""),), replace(SERVER, identity=""))
    assert of("effective_cache_size", model)["proof"] is None


def test_a_written_plan_is_toml_with_its_advice_in_a_comment() -> None:
    text = plan_text(judged(), of("wal_buffers", judged()), OWN)
    assert text.startswith("# advice: {") and tomllib.loads(text)["workload"]["scripts"][0]["text"] == OWN.script
