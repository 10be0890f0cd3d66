"""Power cuts under engines and our own stores: safe settings lose nothing, and known losses are found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from device_mounts import require_fuse

from command_line import dbdyno
from dbdyno.base.errors import DeviceError, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.processes import python_command, python_environment
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.mariadb.binaries import find_programs
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.cli.device.cut import Progress
from dbdyno.cuts.campaign import Campaign, run_campaign
from dbdyno.cuts.engine import informative_line
from dbdyno.cuts.evidence import STORES
from dbdyno.cuts.ledger import Content, Ledger, judge, payload_of
from dbdyno.cuts.model import CutRow, campaign_model, recoveries
from dbdyno.cuts.own_stores import KINDS, content
from dbdyno.cuts.plan import BUILT_IN, CutPlan, check_plan, plan_of
from dbdyno.cuts.postgres import PostgresCuts, control_file_problem, initdb_options
from dbdyno.cuts.shrink import Shrinker, shrink
from dbdyno.report.html import render_html
from skipped import skipped_on
from waiting import until

SURVIVED: CutRow = {**dict.fromkeys(CutRow.__annotations__, 0), "corrupt": "", "repaired": ""}  # type: ignore[typeddict-item]


SEED, CUTS = 7, 5
"""Seed and number of cuts: the fifth cut loses commits of SQLite whenever its settings or its device allow it."""


def campaign(name: str, cuts: int, seed: int = SEED) -> Campaign:
    require_fuse()
    print("seed", seed)
    return run_campaign(plan_of(name), cuts, seed)


def sums(name: str, cuts: int, seed: int = SEED) -> dict[str, float]:
    found = campaign(name, cuts, seed)
    return campaign_model(plan_of(name), seed, found.rows, found.faults)["sums"]


def cut_model(*words: object) -> JsonObject:
    """Return the page's model of `dbdyno device cut` in a campaign that loses something."""
    require_fuse()
    done = dbdyno("device", "cut", *words, "--seed", SEED, "--format", "json")
    assert done.returncode == 1, done.stderr
    model: JsonObject = json.loads(done.stdout)
    return model


@pytest.fixture(scope="module")
def unsynced() -> JsonObject:
    """Return the model of a campaign on SQLite whose log is synced too rarely."""
    return cut_model("sqlite-wal-normal", "--cuts", CUTS)


@pytest.fixture(scope="module")
def shrunk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, JsonObject]:
    """Return the smallest plan of a campaign on SQLite without syncs, and its model."""
    least = tmp_path_factory.mktemp("shrunk") / "least.toml"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dbdyno.cuts.shrink.TRIES_MOST", 8)
        return least, cut_model("sqlite-off", "--cuts", CUTS, "--shrink", least)


def test_a_ledger_names_what_is_lost_doubled_damaged_or_of_nobody():
    ledger = Ledger()
    for number in (1, 2, 3, 4):
        ledger.record_attempt(number)
    for number in (1, 2, 3):
        ledger.acknowledge(number)
    rows = [(1, payload_of(1)), (1, payload_of(1)), (3, "x"), (9, payload_of(9))]
    found = judge(ledger, Content(rows, {0: 3}, [0, 0, 0, 0]))
    assert (found.lost, found.doubled, found.damaged, found.ghosts, found.halves) == ([2], [1], [3], [9], [0])
    whole = [(number, payload_of(number)) for number in (1, 2, 3, 4)]
    assert judge(ledger, Content(whole, {0: 4}, [0] * 4)).is_right
    assert judge(ledger, Content(whole[:3], {0: 3}, [0] * 3)).is_right
    assert judge(ledger, Content(corrupt="bad page")).corrupt == "bad page"


def test_sqlite_as_it_should_be_set_loses_nothing():
    for name in ("sqlite", "sqlite-wal"):
        found = sums(name, CUTS)
        assert (found["cuts"], found["lost"], found["corrupt"], found["halves"]) == (CUTS, 0, 0, 0)
        assert found["acknowledged"] > 0


def test_sqlite_without_syncs_and_on_a_device_that_lies_is_found_out(shrunk: tuple[Path, JsonObject]):
    off = shrunk[1]["sums"]
    assert off["lost"] + off["corrupt"] > 0
    found = campaign("sqlite-lying-flush", CUTS)
    assert any(row["lost"] or row["corrupt"] for row in found.rows)
    assert any(row["kind"] == "lying-flush" and "cuts.db" in row["file"] for row in found.faults)


def test_a_failing_cut_is_replayed_by_its_seed_and_number(unsynced: JsonObject):
    failed = next(row for row in unsynced["cuts"] if row["lost"])
    again = run_campaign(plan_of("sqlite-wal-normal"), CUTS, SEED, only=failed["cut"]).rows[-1]
    same = ("cut", "after_changes", "tried", "acknowledged", "found", "lost", "pages_lost", "pages_torn")
    assert [again[key] for key in same] == [failed[key] for key in same]  # type: ignore[literal-required]


def test_a_command_shows_a_page_if_something_is_lost(unsynced: JsonObject):
    assert unsynced["failed"]
    assert "acknowledged commits lost" in unsynced["headline"]
    assert "NOT SURVIVED" in render_html(unsynced).upper()


def test_evidence_of_a_campaign_names_what_a_cut_took_that_was_not_survived(unsynced: JsonObject):
    taken = [row for row in unsynced["faults"] if row["cut"] in unsynced["failed"]]
    assert {row["kind"] for row in taken} <= {"lost-page", "torn-page", "undone-name"}
    assert any(row["file"].startswith("cuts.db") for row in taken)
    cut = next(row for row in unsynced["cuts"] if row["cut"] == unsynced["failed"][0])
    lost = [row for row in taken if row["cut"] == cut["cut"] and row["kind"] == "lost-page"]
    assert len(lost) >= cut["pages_lost"] > 0


def test_an_interrupted_campaign_has_the_cuts_so_far():
    require_fuse()

    def stop_at_three(row: CutRow) -> None:
        if row["cut"] == 3:
            raise KeyboardInterrupt

    found = run_campaign(plan_of("sqlite-wal"), 1000, 7, progress=stop_at_three)
    assert (found.interrupted, [row["cut"] for row in found.rows]) == (True, [1, 2, 3])
    assert found.faults
    assert "dbdyno-cuts" not in Path("/proc/self/mountinfo").read_text()


def test_a_campaign_that_is_interrupted_before_its_first_cut_has_nothing_to_show(monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dbdyno.cuts.campaign.check_machine", lambda: None)
    monkeypatch.setattr("dbdyno.cuts.campaign.Campaign.run_database", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(plan_of("sqlite"), 5, 7)


def test_progress_says_how_many_minutes_are_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    times = iter([0.0, 10.0, 60.0, 70.0])
    monkeypatch.setattr("dbdyno.cli.device.cut.time.monotonic", lambda: next(times))
    progress = Progress(1000)
    for cut in (10, 100, 110):
        progress.add({**SURVIVED, "cut": cut})
    assert capsys.readouterr().err == "cut 100 of 1000: 0 failed, about 9 min left\n"


@pytest.mark.parametrize("content", [b"", bytes(120), b"4711\n/data\n"])
def test_a_lock_file_without_a_process_number_is_removed_before_a_start(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dbdyno.cuts.servers.ServerCuts.start", lambda self: None)
    with Guardian() as guardian:
        engine = PostgresCuts(plan_of("postgres"), guardian)
        engine.back = tmp_path
        (tmp_path / "postmaster.pid").write_bytes(content)
        engine.start()
    has_number = content.startswith(b"4")
    assert (tmp_path / "postmaster.pid").exists() == has_number
    assert engine.repaired == ("" if has_number else "postmaster.pid contained no process number and was removed")


def test_a_killed_campaign_leaves_no_mount_and_no_folder():
    require_fuse()
    command = python_command("dbdyno", "device", "cut", "sqlite-wal", "--cuts", "1000", "--seed", "1")
    process = subprocess.Popen(
        command, env=python_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    ours = f"dbdyno-cuts-{process.pid}-"
    assert until(lambda: ours in Path("/proc/self/mountinfo").read_text())
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=20)
    assert until(lambda: ours not in Path("/proc/self/mountinfo").read_text())
    assert until(lambda: not list(Path(tempfile.gettempdir()).glob(f"{ours}*")))


def test_plans_are_checked_with_the_key_and_what_is_allowed():
    for values, said in [
        ({"title": "t", "engine": "oracle"}, "one of sqlite, postgres, mariadb"),
        ({"title": "t", "engine": "sqlite", "sesions": 1}, "did you mean sessions?"),
        ({"title": "t", "engine": "sqlite", "sessions": 0}, "from 1 to 64"),
        ({"engine": "sqlite"}, "no key 'title'"),
        ({"title": "t", "engine": "sqlite", "settings": "x"}, "is not of type dict"),
    ]:
        with pytest.raises(DeviceError) as refused:
            check_plan(values, "plan.toml")
        assert said in str(refused.value)
    with pytest.raises(DeviceError, match="no plan of power cuts"):
        plan_of("postgress")
    settings = check_plan({"title": "t", "engine": "postgres", "settings": {"fsync": False}}, "x").settings
    assert settings == {"fsync": "false"}


def test_a_control_file_must_be_whole_and_of_a_server_in_production():
    right = "pg_control version number: 1300\nDatabase cluster state:               in production\n"
    assert control_file_problem(right) == ""
    assert "is shut down" in control_file_problem(right.replace("in production", "shut down"))
    warned = "pg_controldata: WARNING: Calculated CRC checksum does not match value stored in file.\n"
    assert "WARNING" in control_file_problem(right + warned)
    assert "could not open" in control_file_problem('pg_controldata: error: could not open file "x"\n')


def test_the_last_words_of_a_server_are_those_that_say_why():
    said = "a [Note] start\nb [ERROR] InnoDB: page 3 is corrupt\nc [ERROR] Aborting\nd [Note] end\n"
    assert informative_line(said) == "b [ERROR] InnoDB: page 3 is corrupt"
    assert (informative_line("x\n FATAL: y \n z"), informative_line("x\n\n"), informative_line("")) == (
        "FATAL: y",
        "x",
        "no answer",
    )


def test_page_checksums_are_a_setting_of_a_plan_that_is_on_or_off():
    assert initdb_options("on") == initdb_options("true") == ["--data-checksums"]
    with pytest.raises(DeviceError, match="data_checksums must be on or off"):
        initdb_options("maybe")
    assert check_plan({"title": "t", "engine": "postgres", "settings": {"data_checksums": False}}, "x").settings == {
        "data_checksums": "false"
    }


def _require_postgres() -> None:
    require_fuse()
    with skipped_on(TargetError):
        find_binaries()


@pytest.mark.long
def test_postgresql_with_its_defaults_loses_nothing():
    _require_postgres()
    found = sums("postgres", 2)
    assert (found["lost"], found["corrupt"], found["halves"], found["ghosts"]) == (0, 0, 0, 0)
    assert found["acknowledged"] > 0


def _require_mariadb() -> None:
    require_fuse()
    with skipped_on(TargetError):
        find_programs({})


# A server that is killed while a session logs in leaves the driver's socket to Python's collector.
LEFT_SOCKET = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@LEFT_SOCKET
@pytest.mark.long
def test_mariadb_with_its_defaults_loses_nothing_and_its_log_is_measured():
    _require_mariadb()
    found = campaign("mariadb", 2)
    assert not [row for row in found.rows if row["lost"] or row["corrupt"] or row["halves"] or row["ghosts"]]
    assert max(row["acknowledged"] for row in found.rows) > 0
    assert any(row["log_bytes"] for row in found.rows)


@pytest.mark.parametrize("store", STORES)
def test_our_own_stores_read_back_what_they_were_given(store: str, tmp_path: Path):
    own = KINDS[store](tmp_path)
    for number in (1, 2, 3):
        own.add(number)
    found = content(own)
    assert (sorted(row[0] for row in found["rows"]), found["corrupt"]) == ([1, 2, 3], "")  # type: ignore[attr-defined]
    assert all(payload == payload_of(number) for number, _, payload in found["rows"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("store", [STORES[0], *(pytest.param(one, marks=pytest.mark.soak) for one in STORES[1:])])
def test_nothing_of_our_own_evidence_is_lost(store: str):
    found = sums(f"evidence-{store}", 3)
    assert (found["lost"], found["corrupt"], found["damaged"], found["doubled"], found["ghosts"]) == (0, 0, 0, 0, 0)
    assert found["acknowledged"] > 0


def test_a_store_of_ours_on_a_device_that_lies_is_found_out():
    require_fuse()
    plan = CutPlan("lying", "evidence", {"store": "settings"}, fail=("lying-flush",))
    rows = run_campaign(plan, 5, 7).rows
    assert any(row["lost"] or row["corrupt"] or row["damaged"] for row in rows)


def test_a_failing_cut_is_shrunk_to_a_plan_that_replays_it(shrunk: tuple[Path, JsonObject]):
    least, model = shrunk
    found, first = model["shrunk"], next(row for row in model["cuts"] if row["cut"] == model["failed"][0])
    assert found["after_changes"] <= first["after_changes"]
    assert (found["failures"], found["repeats"]) == (1, 1)
    assert plan_of(str(least)).settings == {"synchronous": "off"}
    again = dbdyno("device", "cut", least, "--seed", SEED, "--only", found["cut"])
    assert again.returncode == 1, again.stderr
    assert "THE SMALLEST CUT THAT FAILS" in render_html(model).upper()


def test_a_step_of_shrinking_is_kept_only_if_the_cut_still_fails(monkeypatch: pytest.MonkeyPatch):
    search = Shrinker(1, 3)
    needed = {"synchronous": "off"}
    row = {"cut": 3, "after_changes": 40}

    def once(plan: CutPlan) -> dict[str, int] | None:
        search.tries += 1
        after = plan.after_changes or 40
        return {"cut": 3, "after_changes": after} if plan.settings.items() >= needed.items() and after >= 17 else None

    monkeypatch.setattr(search, "try_cut", once)
    plan = CutPlan("t", "sqlite", {"journal_mode": "wal", **needed}, fail=("slow:ms=1",))
    found, last = search.smallest_plan(plan, row)  # type: ignore[arg-type]
    assert (found.settings, found.fail, found.after_changes) == (needed, (), 17)
    assert (found.cuts_of_a_database, found.recovery_percent, found.sector_bytes) == (1, 0, 4096)
    assert last["after_changes"] == 17


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path):
    for name, plan in BUILT_IN.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(plan.to_toml())
        assert plan_of(str(path)) == plan


def test_recovery_times_are_grouped_by_the_size_of_the_log():
    rows = [{"log_bytes": size, "recovery_s": size / 10, "corrupt": ""} for size in (5, 1, 4, 2, 3, 0)]
    rows.append({"log_bytes": 9, "recovery_s": 1.0, "corrupt": "bad page"})
    found = recoveries(rows, groups=2)  # type: ignore[arg-type]
    assert [(one["cuts"], one["log_bytes"], one["p50_s"], one["max_s"]) for one in found] == [
        (3, 3, 0.2, 0.3),
        (2, 5, 0.5, 0.5),
    ]


@pytest.mark.soak
@pytest.mark.parametrize("name", ["sqlite-off", "postgres-fsync-off"])
def test_the_least_plan_of_a_loss_still_loses(name: str):
    _require_postgres()
    rows = campaign(name, 30).rows
    failed = next(row for row in rows if row["lost"] or row["corrupt"])
    found = shrink(plan_of(name), 7, failed)
    assert found.failures > 0
    assert found.plan.cuts_of_a_database == 1


RIGHT = (
    *("postgres", "postgres-wal-fsync", "postgres-wal-open-datasync", "postgres-wal-open-sync"),
    *("postgres-synchronous-commit-local", "postgres-checksums-off", "mariadb", "sqlite", "sqlite-wal"),
    *(f"evidence-{store}" for store in STORES),
)


WRONG = ("-off", "-flush", "-normal", "-full", "-0", "-2", "-hole")


@LEFT_SOCKET
@pytest.mark.soak
@pytest.mark.parametrize("name", RIGHT)
def test_hundreds_of_cuts_of_a_right_configuration_lose_nothing(name: str):
    _require_postgres()
    _require_mariadb()
    found = sums(name, 300, seed=int(time.time()))
    assert (found["lost"], found["corrupt"], found["halves"], found["doubled"], found["ghosts"]) == (0, 0, 0, 0, 0)


@LEFT_SOCKET
@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in BUILT_IN if name not in RIGHT and name.endswith(WRONG)])
def test_what_is_known_to_lose_is_found_in_a_hundred_cuts(name: str):
    _require_postgres()
    _require_mariadb()
    found = sums(name, 100)
    if name == "postgres-synchronous-commit-off":
        assert 0 < found["oldest_lost_ms"] < 1000  # three times wal_writer_delay, and the kill
        assert (found["corrupt"], found["halves"]) == (0, 0)
    assert found["lost"] + found["corrupt"] + found["damaged"] > 0
