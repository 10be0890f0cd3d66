"""Power cuts under SQLite and PostgreSQL: right settings lose nothing, and what is known to lose is found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from device_mounts import require_fuse

from command_line import dbdyno
from dbdyno.base.errors import DeviceError, TargetError
from dbdyno.base.processes import python_command, python_environment
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.cuts.campaign import Campaign, run_campaign
from dbdyno.cuts.ledger import Content, Ledger, judge, payload_of
from dbdyno.cuts.model import campaign_model
from dbdyno.cuts.plan import BUILT_IN, checked, plan_of
from dbdyno.report.html import render_html
from skipped import skip_for


def campaign(name: str, cuts: int, seed: int = 7) -> Campaign:
    require_fuse()
    print("seed", seed)
    return run_campaign(plan_of(name), cuts, seed)


def sums(name: str, cuts: int, seed: int = 7) -> dict[str, float]:
    found = campaign(name, cuts, seed)
    return campaign_model(plan_of(name), seed, found.rows, found.faults)["sums"]


def test_a_ledger_names_what_is_lost_doubled_damaged_or_of_nobody():
    ledger = Ledger()
    for number in (1, 2, 3, 4):
        ledger.try_one(number)
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
        found = sums(name, 8)
        assert (found["cuts"], found["lost"], found["corrupt"], found["halves"]) == (8, 0, 0, 0)
        assert found["acknowledged"] > 0


def test_sqlite_without_syncs_and_on_a_device_that_lies_is_found_out():
    off = sums("sqlite-off", 12)
    assert off["lost"] + off["corrupt"] > 0
    found = campaign("sqlite-lying-flush", 14)
    assert any(row["lost"] or row["corrupt"] for row in found.rows)
    assert any(row["kind"] == "lying-flush" and "cuts.db" in row["file"] for row in found.faults)


def test_a_failing_cut_is_replayed_by_its_seed_and_number():
    first = campaign("sqlite-wal-normal", 6, seed=7)
    failed = next(row for row in first.rows if row["lost"])
    again = run_campaign(plan_of("sqlite-wal-normal"), 6, 7, only=failed["cut"]).rows[-1]
    same = ("cut", "after_changes", "tried", "acknowledged", "found", "lost", "pages_lost", "pages_torn")
    assert [again[key] for key in same] == [failed[key] for key in same]  # type: ignore[literal-required]


def test_a_command_shows_a_page_and_ends_with_1_if_something_is_lost(tmp_path: Path):
    require_fuse()
    page = tmp_path / "cuts.json"
    done = dbdyno("device", "cut", "sqlite-wal-normal", "--cuts", 6, "--seed", 7, "-o", page)
    assert done.returncode == 1, done.stderr
    model = json.loads(page.read_text())
    assert model["failed"]
    assert "acknowledged commits lost" in model["headline"]
    assert "NOT SURVIVED" in render_html(model).upper()


def test_a_killed_campaign_leaves_no_mount_and_no_folder_in_use():
    require_fuse()
    command = python_command("dbdyno", "device", "cut", "sqlite-wal", "--cuts", "1000", "--seed", "1")
    process = subprocess.Popen(
        command, env=python_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    ours = f"dbdyno-cuts-{process.pid}-"
    _wait(lambda: ours in Path("/proc/self/mountinfo").read_text())
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=20)
    _wait(lambda: ours not in Path("/proc/self/mountinfo").read_text())


def _wait(condition: object, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_plans_are_checked_with_the_key_and_what_is_allowed():
    for values, said in [
        ({"title": "t", "engine": "oracle"}, "one of sqlite, postgres"),
        ({"title": "t", "engine": "sqlite", "sesions": 1}, "did you mean sessions?"),
        ({"title": "t", "engine": "sqlite", "sessions": 0}, "from 1 to 64"),
        ({"engine": "sqlite"}, "needs 'title'"),
        ({"title": "t", "engine": "sqlite", "settings": "x"}, "is no dict"),
    ]:
        with pytest.raises(DeviceError) as refused:
            checked(values, "plan.toml")
        assert said in str(refused.value)
    with pytest.raises(DeviceError, match="no plan of power cuts"):
        plan_of("postgress")
    settings = checked({"title": "t", "engine": "postgres", "settings": {"fsync": False}}, "x").settings
    assert settings == {"fsync": "false"}


def _require_postgres() -> None:
    require_fuse()
    try:
        find_binaries()
    except TargetError as error:
        skip_for(error)


@pytest.mark.long
def test_postgresql_with_its_defaults_loses_nothing():
    _require_postgres()
    found = sums("postgres", 3)
    assert (found["lost"], found["corrupt"], found["halves"], found["ghosts"]) == (0, 0, 0, 0)
    assert found["acknowledged"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("name", ["postgres", "sqlite", "sqlite-wal"])
def test_hundreds_of_cuts_of_a_right_configuration_lose_nothing(name: str):
    _require_postgres()
    found = sums(name, 300, seed=int(time.time()))
    assert (found["lost"], found["corrupt"], found["halves"], found["doubled"], found["ghosts"]) == (0, 0, 0, 0, 0)


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in BUILT_IN if name.endswith(("-off", "-flush", "-normal", "-full"))])
def test_what_is_known_to_lose_is_found_in_a_hundred_cuts(name: str):
    _require_postgres()
    found = sums(name, 100)
    if name == "postgres-synchronous-commit-off":
        assert 0 < found["oldest_lost_ms"] < 1000  # three times wal_writer_delay, and the kill
        assert (found["corrupt"], found["halves"]) == (0, 0)
    assert found["lost"] + found["corrupt"] + found["damaged"] > 0
