"""`[load] hosts` and `shared_folder`: allowed values, output of a check, and transfer of evidence by the folder."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from cluster import Cluster

from conftest import Desk
from dbdyno.base.errors import PlanError, TargetError
from dbdyno.evidence.run import find_run
from dbdyno.hosts import shared_folder
from dbdyno.hosts import workers as workers_module
from dbdyno.hosts.shared_folder import PlacedPart, SharedFolder, place_part, refuse_unshared_folder
from dbdyno.hosts.workers import Workers
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import plan_from_dict
from dbdyno.study.run.execute import side_effects


def with_load(text: str, load: str) -> str:
    return text.replace("[schedule]", f"[load]\n{load}\n[schedule]")


def test_a_plan_keeps_its_hosts_and_its_folder(desk: Desk) -> None:
    text = (desk.folder / desk.plan()).read_text()
    plan = parse_plan(
        with_load(text, 'hosts = ["a", "me@rack[01-03]:2222"]\nshared_folder = "/mnt/all"'), Path("p.toml")
    )
    assert (plan.hosts, plan.shared_folder) == (["a", "me@rack[01-03]:2222"], "/mnt/all")
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert parse_plan(with_load(text, 'hosts = "a,b"'), Path("p.toml")).hosts == ["a,b"]
    assert parse_plan(text, Path("p.toml")).hosts == []


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ('hosts = ["a b"]', "'a b' is not a valid host"),
        ("hosts = []", "no cell is given"),
        ('hosts = ["@group"]', "a plan has no @FILE of hosts"),
        ("hosts = [1]", "must be"),
        ('hosts = ["a"]\nshared_folder = "here"', "'here' is not an absolute path"),
    ],
)
def test_what_is_no_host_and_no_folder_is_an_error_with_its_line(desk: Desk, load: str, said: str) -> None:
    text = with_load((desk.folder / desk.plan()).read_text(), load)
    with pytest.raises(PlanError) as raised:
        parse_plan(text, Path("p.toml"))
    line = 1 + text.splitlines().index(load.splitlines()[-1])
    assert said in raised.value.message
    assert raised.value.where == f"p.toml:{line}"


def test_a_check_shows_the_hosts_and_reaches_none(desk: Desk) -> None:
    path = desk.folder / desk.plan()
    path.write_text(with_load(path.read_text(), 'hosts = ["nowhere-a", "nowhere-b"]'))
    assert "starts Python processes over SSH on: nowhere-a, nowhere-b" in desk("plan", "check", "p.toml")
    text = path.read_text().replace("model:sas-and-flash", "postgres").replace(", cpu_us = 50", "")
    path.write_text(re.sub("(warmup_)?transactions = .*|settings = .*", "", text))
    said = desk("plan", "check", "p.toml", code=2)
    assert "an embedded engine answers only on this machine" in said


def test_a_run_works_on_the_hosts_of_its_plan(two: Cluster, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = workers_module.open_workers

    @contextlib.contextmanager
    def reached(scheduler: str | None = None, hosts: Sequence[object] = ()) -> Iterator[Workers]:
        asked.extend(str(getattr(host, "address", host)) for host in hosts)
        with real(scheduler or two.address) as workers:
            yield workers

    monkeypatch.setattr(workers_module, "open_workers", reached)
    desk("run", desk.plan(2, 50), "--seed", "7", "--out", "here")
    path = desk.folder / "p.toml"
    path.write_text(with_load(path.read_text(), 'hosts = ["a", "b"]'))
    desk("run", "p.toml", "--seed", "7", "--out", "there")
    assert asked == ["a", "b"]
    assert desk.parts("here") == desk.parts("there")
    desk("run", "p.toml", "--seed", "7", "--out", "options", "--scheduler", two.address)
    assert asked == ["a", "b"]  # the option says where


def test_a_run_from_elsewhere_names_its_hosts_before_it_goes_on(desk: Desk) -> None:
    desk("run", desk.plan(2, 50), "--out", "runs")
    manifest = desk.run("runs") / "manifest.json"
    read = json.loads(manifest.read_text())
    read["plan"]["hosts"] = ["theirs"]
    manifest.write_text(json.dumps(read))
    assert "starts Python processes over SSH on: theirs" in side_effects(find_run("last", desk.folder / "runs"))


def test_a_part_comes_by_the_folder_once_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tmp_path / "b1.parquet"
    part.write_bytes(b"rows")
    with SharedFolder(tmp_path) as shared:
        shared.make()
        refuse_unshared_folder(shared.path, shared.word)
        placed = place_part(part, shared.path)
        assert shared.read(placed) == b"rows"
        assert shared.read(PlacedPart("none", 0)) == b""
        monkeypatch.setattr(shared_folder, "SHOWN_S", 0.0)
        with pytest.raises(TargetError, match=f"does not show {placed.name} here"):
            shared.read(placed)
        with pytest.raises(TargetError, match="is a different folder on this host"):
            refuse_unshared_folder(shared.path, "other")
        shared.close()
        with pytest.raises(TargetError, match="cannot be used on this host: No such file or directory"):
            refuse_unshared_folder(shared.path, shared.word)
        shared.make()  # a host that was cut off had removed it
        refuse_unshared_folder(shared.path, shared.word)
    assert [file.name for file in tmp_path.iterdir()] == ["b1.parquet"]
    began = time.monotonic()
    with pytest.raises(TargetError, match="cannot be written here"):
        SharedFolder(tmp_path / "missing").make()
    assert time.monotonic() - began < 1
