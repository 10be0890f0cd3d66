"""Effects that a calibrated machine predicts: advice on a real server, and predictions compared with measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from calibrated import CALIBRATED
from command_line import dbdyno, succeeded
from dbdyno.advise import proofs
from dbdyno.advise.experiments import Load, plan_text, read
from dbdyno.advise.facts import Facts
from dbdyno.advise.judge import judge, rules
from dbdyno.advise.kinds import Server, Setting
from dbdyno.advise.predictions import OWN_LOAD, PredictedEffect, with_machine
from dbdyno.advise.proofs import Proof, save_proof, stored_proofs
from dbdyno.base.errors import AdviceError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.pages.advice import page as advice_page
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.prediction import effects
from dbdyno.study.prediction.effects import Band, Effect
from dbdyno.study.prediction.host import calibrate_host
from host_made import host

SETTINGS = {"synchronous_commit": "on", "commit_delay": "0", "commit_siblings": "5", "fsync": "on"}


def server(**settings: str) -> Facts:
    """Return the facts of a PostgreSQL server with these settings."""
    rows = {
        Server: [Server("postgres", "15.18", 150018, identity="77")],
        Setting: [Setting(name, value) for name, value in {**SETTINGS, **settings}.items()],
    }
    return Facts("made", "server", rows)


def effect(
    change: str, value: float, low: float, high: float, p99: float = 0.0, proposed: str = "1"
) -> PredictedEffect:
    tail = Band(p99, p99 - 0.01, p99 + 0.01)
    found = Effect(Band(value, low, high), tail, "log device", "cores")
    return PredictedEffect(change, "0", proposed, found, 8, "built-in tpcb-like", "mine.toml: made")


def advised(*rows: PredictedEffect) -> dict[str, dict[str, object]]:
    facts = server()
    asked = [rule for rule in rules() if rule.family == "predicted"]
    model = judge(Facts(facts.title, facts.kind, {**facts.rows, PredictedEffect: list(rows)}), asked)
    return {one["rule"]: one for one in model["findings"]}


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute effects from few, short simulations, which are enough to show their sign."""
    monkeypatch.setattr(effects, "DRAWS", 2)
    monkeypatch.setattr(effects, "TRANSACTIONS", 200)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine whose commits wait half a millisecond for the device."""
    path = tmp_path_factory.mktemp("machine") / "mine.toml"
    path.write_text(calibrate_host(host(), scale=10).toml())
    return path


def test_a_change_is_advised_if_its_whole_band_gains():
    assert set(advised(effect("synchronous_commit", 0.4, 0.3, 0.5, proposed="off"))) == {"asynchronous_commit"}
    assert not advised(effect("synchronous_commit", 0.04, 0.03, 0.05, proposed="off"))
    assert not advised(effect("cores", 0.4, -0.01, 0.5))
    assert set(advised(effect("cores", 0.4, 0.3, 0.5))) == {"more_cores"}


def test_of_several_devices_the_best_is_named():
    found = advised(
        effect("device", 0.2, 0.1, 0.3, proposed="gp3"), effect("device", 0.9, 0.8, 1.0, proposed="nvme-2024")
    )
    assert "nvme-2024" in str(found["log_device"]["sentence"])


def test_fewer_sessions_are_advised_if_the_tail_gets_shorter_and_no_throughput_is_lost():
    assert set(advised(effect("sessions", -0.01, -0.02, 0.0, p99=-0.4))) == {"fewer_sessions"}
    assert not advised(effect("sessions", -0.1, -0.2, 0.0, p99=-0.4))
    assert not advised(effect("sessions", 0.0, -0.01, 0.01, p99=-0.1))


def test_a_machine_says_what_commits_the_device_and_sessions_bring(machine: Path):
    facts = with_machine(server(), machine, 4, None)
    by = {(one.change, one.proposed): one for one in facts.rows[PredictedEffect]}
    assert {change for change, _ in by} == {"synchronous_commit", "commit_delay", "device", "cores", "sessions"}
    off = by["synchronous_commit", "off"]
    assert off.effect.throughput.low <= off.effect.throughput.value <= off.effect.throughput.high
    assert off.effect.throughput.low > 0.2
    assert off.load == "built-in tpcb-like"
    assert by["device", "nvme-2024"].effect.throughput.value > by["device", "gp3"].effect.throughput.value


def test_settings_of_the_server_replace_those_of_the_machine(machine: Path):
    changes = {
        one.change for one in with_machine(server(synchronous_commit="off"), machine, 1, None).rows[PredictedEffect]
    }
    # Nobody waits for the log: neither its device nor a delay matters.
    assert changes == {"cores"}


def test_a_machine_without_costs_of_the_mix_predicts_for_its_own_load_or_says_what_is_missing(tmp_path: Path):
    path = tmp_path / "own.toml"
    path.write_text(CALIBRATED)
    facts = with_machine(server(), path, 2, None)
    assert {one.load for one in facts.rows[PredictedEffect]} == {OWN_LOAD}
    own = with_machine(server(), path, 2, Load("x.sql", "update t set n = 1 where id = 1;\n"))
    (one, *_) = own.rows[PredictedEffect]
    assert one.load == "your x.sql"
    assert "has no costs" in one.notes[0]


def test_what_no_machine_can_say_is_refused_or_not_judged(machine: Path):
    with pytest.raises(AdviceError, match="with a PostgreSQL server"):
        with_machine(Facts("made", "run", {}), machine, None, None)
    model = judge(
        with_machine(server(fsync="off"), machine, None, None), [r for r in rules() if r.family == "predicted"]
    )
    assert {one["why"].partition(":")[0] for one in model["not_judged"]} == {"fsync is off"}


def test_a_plan_has_the_prediction_its_sessions_and_its_load():
    (found,) = advised(effect("synchronous_commit", 0.4, 0.3, 0.5, proposed="off")).values()
    text = plan_text({"facts": {"identity": "77"}}, found, None)
    experiment, own = read(text, "plan.toml")
    assert own and experiment.predicted == (0.4, 0.3, 0.5)
    plan = parse_plan(text, Path("plan.toml"))
    assert plan.sessions == 8
    other, _ = read(plan_text({"facts": {}}, found, Load("x.sql", "select 1;\n")), "plan.toml")
    assert other.predicted is None, "the prediction is for another load"


def test_a_prediction_agrees_with_a_proof_where_their_intervals_meet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(proofs, "state_folder", lambda: tmp_path)
    words = dict.fromkeys(("rule", "subject", "setting", "found", "proposed", "engine", "ran_on", "verdict"), "x")
    words |= dict.fromkeys(("headline", "run", "target", "load", "at"), "x")
    proof = Proof(**words, gates=(), predicted=(0.4, 0.3, 0.5), measured=(0.6, 0.45, 0.8))
    assert proof.model_comparison.endswith("they agree")
    far = Proof(**words, gates=(), predicted=(0.4, 0.3, 0.5), measured=(0.1, 0.0, 0.2))
    assert "+40.0 % (+30.0 % to +50.0 %)" in far.model_comparison and far.model_comparison.endswith("they disagree")
    assert Proof(**words, gates=()).model_comparison == ""
    save_proof(proof)
    assert stored_proofs() == [proof]
    (file,) = (tmp_path / "advice").iterdir()
    before = {
        name: value for name, value in json.loads(file.read_text()).items() if name not in ("predicted", "measured")
    }
    file.write_text(json.dumps(before))
    assert stored_proofs() == [Proof(**words, gates=())], "results of earlier versions are read"


def test_the_page_has_the_prediction():
    (found,) = advised(effect("cores", 0.4, 0.3, 0.5)).values()
    page = advice_page({"kind": "advice", "facts": {}, "findings": [found]})
    (each,) = next(section for section in page.sections if section.parts).parts
    expected = "expected: the model predicts throughput +40 % (+30 % to +50 %)"
    expected += " and p99 +0 % (-1 % to +1 %), with 8 sessions"
    assert any(text.startswith(expected) for text in each.sentences)


def test_a_real_server_is_advised_by_a_machine_and_the_proof_compares(machine: Path, tmp_path: Path):
    with EmbeddedPostgres(settings={"effective_cache_size": "8MB"}) as engine:
        dsn = make_conninfo("", **engine.conninfo())
        asked = (
            "advise",
            dsn,
            "--only",
            "predicted",
            "--only",
            "planner",
            "--machine",
            str(machine),
            "--sessions",
            "2",
        )
        done = succeeded(*asked, "--plan", "plans", "--format", "json", cwd=tmp_path)
        found = {one["rule"]: one for one in json.loads(done.stdout)["findings"]}
        path = next((tmp_path / "plans").glob("*-synchronous_commit.toml"))
        short = "blocks = 6\nwarmup_blocks = 1\nturn_transactions = 20\n\n[watch]\noverhead_blocks = 0"
        path.write_text(path.read_text().replace("blocks = 20", short).replace("scale = 10", "scale = 1"))
        proved = dbdyno("advise", "--prove", path, "--target", dsn, "--yes", cwd=tmp_path)
        again = json.loads(dbdyno(*asked, "--format", "json", cwd=tmp_path).stdout)
    assert found["asynchronous_commit"]["predicted"]["low"] > 0
    assert found["effective_cache_size"]["predicted"]["words"].startswith("effective_cache_size is not in the model")
    assert proved.returncode in (0, 1), proved.stderr
    assert "the model predicted +" in proved.stderr
    assert ("they agree" in proved.stderr) or ("they disagree" in proved.stderr)
    proof = next(one for one in again["findings"] if one["rule"] == "asynchronous_commit")["proof"]
    assert proof["counts"] and proof["measured"][1] <= proof["measured"][0] <= proof["measured"][2]


def test_sessions_are_those_of_a_machine(tmp_path: Path):
    refused = dbdyno("advise", "host", "--sessions", "4", cwd=tmp_path)
    assert refused.returncode == 2 and "--sessions works only with --machine" in refused.stderr
