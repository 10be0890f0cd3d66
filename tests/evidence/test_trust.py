"""A run folder is data: it triggers no actions or connections, and damage in it is reported and causes no crash."""

from __future__ import annotations

import json
import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.base import files
from dbdyno.base.errors import CellsError, Error, EvidenceError, PlanError, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.cells.plan import CellsPlan
from dbdyno.bench.cells.restore import checked_access, undo_of
from dbdyno.cells import hosts, iorm_plan
from dbdyno.cells.ssh import Access
from dbdyno.cli.main import cli
from dbdyno.evidence.manifest import Manifest
from dbdyno.evidence.run import Block, Run, SliceRecord, list_runs, new_run
from dbdyno.evidence.seal import is_own_plan
from dbdyno.evidence.trust import refuse_foreign
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.reading.periods import baselines
from dbdyno.snapshot.store.folder import Store
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import plan_from_dict
from dbdyno.study.run.execute import resume, side_effects

PLAN = parse_plan(
    'title = "t"\n[[workload.scripts]]\nname = "s"\ntext = "select 1;"\n[[arm]]\nname = "a"\n', "p"
).to_dict()
CELL = {"address": "cel01", "port": 22, "user": "celladmin", "name": "cel01", "found": [], "ours": [[]]}
REACH = {"keys": [], "known_hosts": None, "jump": None, "timeout_s": 30.0, "parallel": 64, "config": True}
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


def manifest(**changes: Any) -> dict[str, Any]:
    undo = {"type": "PlanUndo", "label": "x", "cells": [CELL], "reach": REACH, "patience_s": 1.0, "settle_s": 0.0}
    iorm = {"undo": undo, "databases": ["a"], "on": [False, True], "patience_s": 1.0}
    return {"plan": PLAN, "iorm": iorm, "kind": "experiment", "seed": 1, "restored": False, **changes}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = new_run(tmp_path / "runs", "x", manifest())
    made.save(status="aborted")
    return made


@as_root
def test_a_folder_of_another_owner_is_read_and_not_obeyed(run: Run) -> None:
    os.chown(run.path, NOBODY, NOBODY)
    assert Run.open(run.path).status == "aborted"
    with pytest.raises(EvidenceError, match="belongs to another user"):
        resume(run)
    with pytest.raises(EvidenceError, match="belongs to another user"):
        run.save(restored=True)
    with pytest.raises(EvidenceError, match="belongs to another user"):
        run.add_block(Block(0, "measure", 1, 2, 3, []))


@as_root
def test_a_manifest_of_another_owner_in_a_folder_of_ours_is_not_obeyed(run: Run) -> None:
    os.chown(run.path / "manifest.json", NOBODY, NOBODY)
    with pytest.raises(EvidenceError, match=r"manifest.json: belongs to another user"):
        refuse_foreign(run.path)


@pytest.mark.parametrize("name", ["", "manifest.json"])
def test_what_others_can_write_is_not_obeyed(run: Run, name: str) -> None:
    (run.path / name).chmod(0o777)
    with pytest.raises(EvidenceError, match="can be written by others") as caught:
        refuse_foreign(run.path)
    assert "chmod -R go-w" in str(caught.value)


def test_a_manifest_that_is_a_link_is_not_obeyed(run: Run) -> None:
    (run.path / "manifest.json").rename(run.path / "other.json")
    (run.path / "manifest.json").symlink_to("other.json")
    with pytest.raises(EvidenceError, match="is a link"):
        refuse_foreign(run.path)


@pytest.mark.parametrize(
    "reach",
    [
        {"config": "/tmp/ssh_config"},
        {"jump": "gate.example.org"},
        {"known_hosts": "/tmp/known_hosts"},
        {"keys": ["/tmp/key"]},
    ],
    ids=str,
)
def test_a_run_folder_does_not_say_how_to_connect(run: Run, reach: JsonObject) -> None:
    run.manifest.iorm["undo"]["reach"] = {**REACH, **reach}
    undo = undo_of(run)
    with pytest.raises(CellsError, match="with its own options") as caught:
        checked_access(run, undo, Access())
    assert "repeat those you trust" in str(caught.value)
    mine = Access(jump="mine")
    assert checked_access(run, undo, mine) == mine


def test_a_run_that_had_no_way_of_its_own_is_reached_as_the_command_line_says(run: Run) -> None:
    assert checked_access(run, undo_of(run), Access()) == Access()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("address", "-oProxyCommand=touch /tmp/x"),
        ("address", "a b"),
        ("address", "x\n"),
        ("address", ["x"]),
        ("address", None),
        ("user", "-l root"),
        ("user", "a@b"),
        ("user", 5),
        ("port", "22"),
        ("port", 0),
        ("port", 70000),
        ("port", True),
        ("found", [[["name", "a; alter cell shutdown services all"]]]),
        ("found", [[["name", "a"], ["share", "1)\n alter cell"]]]),
        ("found", "name=a"),
        ("ours", [[[["share", "1"]]]]),
        ("ours", 5),
    ],
    ids=str,
)
def test_what_a_manifest_says_of_cells_goes_through_the_same_check_as_the_command_line(
    run: Run, name: str, value: object
) -> None:
    run.manifest.iorm["undo"]["cells"] = [{**CELL, name: value}]
    with pytest.raises(CellsError):
        undo_of(run)


def test_an_undo_of_another_kind_is_not_taken_for_one_of_plans(run: Run) -> None:
    run.manifest.iorm["undo"] = {"type": "ServerUndo", "label": "", "data_dir": "/", "folders": ["/"], "keep": False}
    with pytest.raises(CellsError, match="nothing to restore"):
        undo_of(run)


@pytest.mark.parametrize("address", ["cel01", "10.0.0.1", "::1", "a-b.c_d"])
def test_addresses_that_a_user_may_type_are_let_through(address: str) -> None:
    assert hosts.check_host(address, None, None).address == address
    assert iorm_plan.check_plan([[["name", "a"], ["share", "1"]]]) == ((("name", "a"), ("share", "1")),)


def test_what_a_manifest_lacks_is_named(run: Run) -> None:
    (run.path / "manifest.json").write_text(json.dumps({"schema": 1, "iorm": {}, "plan": {}}))
    with pytest.raises(EvidenceError, match="'workload'"):
        CellsPlan.from_plan(plan_from_dict(Run.open(run.path).manifest.plan))


def test_json_without_end_is_no_crash(run: Run) -> None:
    (run.path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(EvidenceError, match=r"nested more deeply|not complete JSON"):
        Run.open(run.path)


def test_a_pipe_in_the_place_of_a_manifest_does_not_hang_the_list(run: Run) -> None:
    os.mkfifo(run.path / "blocks.json")
    from dbdyno.evidence.files import read_json

    with pytest.raises(EvidenceError, match="is not a file"):
        read_json(run.path / "blocks.json")


JUNK = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.just([]), st.just({}))


def mutated(value: Any, dice: random.Random, junk: Any) -> Any:
    """Return the value with one part replaced, removed or duplicated, at any depth."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(sorted(value))
        if dice.random() < 0.2:
            return {name: entry for name, entry in value.items() if name != key}
        return {**value, key: mutated(value[key], dice, junk)}
    if isinstance(value, list) and value and dice.random() < 0.8:
        at = dice.randrange(len(value))
        return [*value[:at], mutated(value[at], dice, junk), *value[at + 1 :]]
    return junk


def read_all(path: Path) -> None:
    """Call every reader of a run folder that needs only the folder's records."""
    for run in list_runs(path.parent):
        for read in (
            run.blocks,
            lambda run=run: run.status,
            lambda run=run: undo_of(run),
            lambda run=run: CellsPlan.from_plan(plan_from_dict(run.manifest.plan)),
            lambda run=run: plan_from_dict(run.manifest.plan),
        ):
            try:
                read()
            except Error:
                continue


def attack(path: Path, seed: int, junk: Any) -> None:
    dice = random.Random(seed)
    first = manifest(schema=1, status="running", process={"pid": 1, "started": None})
    block = {
        "index": 0,
        "kind": "measure",
        "started_ns": 1,
        "ended_ns": 2,
        "rows": 3,
        "slices": [{"arm": 0, "slice": 0}],
    }
    (path / "manifest.json").write_text(json.dumps(mutated(first, dice, junk)))
    (path / "blocks" / "b000000.json").write_text(json.dumps(mutated(block, dice, junk)))
    if dice.random() < 0.2:
        whole = bytearray((path / "manifest.json").read_bytes())
        for _ in range(3):
            whole[dice.randrange(len(whole))] = dice.randrange(256)
        (path / "manifest.json").write_bytes(whole)
    read_all(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = new_run(tmp_path_factory.mktemp("fuzz") / "runs", "x", manifest())
    made.add_block(Block(0, "measure", 1, 2, 3, [SliceRecord(0, 0)]))
    return made.path


@given(seed=st.integers(0, 2**32), junk=JUNK)
@settings(max_examples=120, deadline=None)
def test_a_damaged_run_folder_is_an_error_with_words_and_never_a_crash(folder: Path, seed: int, junk: Any) -> None:
    attack(folder, seed, junk)


@pytest.mark.soak
def test_damaged_run_folders_for_a_minute(folder: Path) -> None:
    import time

    dice = random.Random(1)
    end, tried = time.monotonic() + 60, 0
    junk = (None, True, -1, 2**70, 1e308, float("nan"), "", "x" * 5000, [], {}, [[]], {"a": {}}, "\x00", "../../etc")
    while time.monotonic() < end:
        attack(folder, dice.randrange(2**32), dice.choice(junk))
        tried += 1
    print(f"{tried:,} damaged run folders")


@given(seed=st.integers(0, 2**32), junk=JUNK)
@settings(max_examples=80, deadline=None)
def test_a_damaged_store_of_snapshots_is_an_error_with_words_and_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, seed: int, junk: Any
) -> None:
    place = tmp_path_factory.getbasetemp() / "store"
    (place / "000001").mkdir(parents=True, exist_ok=True)
    (place / "baselines").mkdir(exist_ok=True)
    view = {
        "scope": "server",
        "scope_by": "",
        "appearance": "",
        "elapsed_ns": 1,
        "columns": [["a", "key", "", "BIGINT"]],
    }
    whole = {
        "schema": 1,
        "number": 1,
        "engine": "postgres",
        "target": "a",
        "at": "2026-01-01T00:00:00+00:00",
        "at_ns": 1,
        "note": "",
        "facts": {"problems": []},
        "cost": {},
        "views": {"v": {**view, "rows": 1, "file": "000001/v.parquet", "digest": "x"}},
    }
    dice = random.Random(seed)
    (place / "000001" / "manifest.json").write_text(json.dumps(mutated(whole, dice, junk)))
    (place / "baselines" / "b.json").write_text(json.dumps(mutated({"name": "b", "first": 1, "last": 1}, dice, junk)))
    store = Store(place)
    for read in (
        lambda: [one.at_utc for one in store],
        lambda: find(store, "last"),
        lambda: store.last("a"),
        lambda: baselines(store),
        lambda: [one.columns("v") for one in store],
        lambda: [one.file("v") for one in store],
    ):
        try:
            read()
        except Error:
            continue


@pytest.mark.parametrize("file", ["../../secret.parquet", "/etc/passwd", "000001/../../x.parquet", "*.parquet", 5])
def test_a_snapshot_names_no_file_outside_its_store(tmp_path: Path, file: object) -> None:
    (tmp_path / "store" / "000001").mkdir(parents=True)
    views = {"v": {"columns": [], "file": file}}
    found = {"schema": 1, "number": 1, "target": "a", "at_ns": 1, "views": views, "facts": {}}
    (tmp_path / "store" / "000001" / "manifest.json").write_text(json.dumps(found))
    with pytest.raises(Error):
        Store(tmp_path / "store").open(1).file("v")
    assert list(Store(tmp_path / "store")) == [], "nor is it among those that are read"


def silent_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def resumed(run: Run, *words: str) -> Result:
    return CliRunner().invoke(cli, ["run", "--resume", str(run.path), *words])


def elsewhere(run: Run, dsn: str) -> None:
    """Change the run as an attacker would before sending it: with a server and SQL of the attacker's choice."""
    plan = json.loads(json.dumps(PLAN))
    plan["dsn"] = dsn
    plan["arms"][0]["before_sql"] = ["copy t from program 'id'"]
    said = run.manifest.to_json() | {"plan": plan, "bench": "postgres"}
    del said["iorm"]
    run.manifest = Manifest.from_values(said)
    run.save()


def test_a_run_from_elsewhere_is_shown_and_asked_about_before_anything_is_sent(run: Run) -> None:
    dsn = f"postgresql://a@127.0.0.1:{silent_port()}/b"
    elsewhere(run, dsn)
    done = resumed(run)
    assert done.exit_code == 2
    assert f"connects to {dsn}" in done.stderr and "sends copy t from program 'id'" in done.stderr
    assert "nobody answered; nothing was sent" in done.stderr
    with pytest.raises(PlanError, match="was not confirmed"):
        resume(run)
    with pytest.raises(TargetError, match=r"refused|connect"):
        resume(run, agreed=True)


def test_a_plan_that_names_another_bench_than_its_manifest_is_refused(run: Run) -> None:
    """What is asked about depends on the kind of bench, so a manifest cannot pretend to be of another."""
    elsewhere(run, "postgresql://a@127.0.0.1:1/b")
    run.save(bench="mock")
    with pytest.raises(EvidenceError, match="was made on a mock, but its plan names an engine"):
        resume(run)


def test_a_server_on_the_command_line_does_not_agree_to_foreign_sql(run: Run) -> None:
    elsewhere(run, "postgresql://a@127.0.0.1:1/b")
    done = resumed(run, "--target", "postgresql://own@127.0.0.1:1/b")
    assert done.exit_code == 2 and "connects to postgresql://own@127.0.0.1:1/b" in done.stderr
    assert "copy t from program" in done.stderr


def is_ours(run: Run) -> bool:
    return is_own_plan(run.manifest.plan, run.manifest.seal)


def test_a_run_of_ones_own_is_gone_on_with_without_a_question(run: Run) -> None:
    assert is_ours(run) and is_ours(Run.open(run.path))
    assert side_effects(run) == []


def test_another_user_another_key_or_no_key_are_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DBDYNO_STATE", str(tmp_path / "another"))
    assert not is_ours(run) and side_effects(run)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DBDYNO_STATE", str(tmp_path / "file"))
    assert not is_ours(run)
    assert new_run(tmp_path, "y", manifest()).manifest.seal is None


def test_the_key_is_for_its_owner_alone_and_made_once(run: Run) -> None:
    key = files.state_folder() / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    kept = key.read_bytes()
    new_run(run.path.parent, "y", manifest())
    assert key.read_bytes() == kept and [path.name for path in key.parent.glob(".key*")] == []
