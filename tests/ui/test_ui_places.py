"""What may be read: names of folders that are there, and no link that leads out of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from asking import Browser

from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.ui.places import Places


def made_run(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    manifest = {"schema": 1, "kind": "trace", "title": name, "status": "complete", "started_at": "2026-11-26T10:00:00"}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


@pytest.mark.parametrize("name", ("../outside/secret", "..", ".", "", "/etc", "secret/../../outside/secret", "a\0b"))
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    made_run(tmp_path / "outside", "secret")
    made_run(tmp_path / "runs", "inside")
    places = Places(tmp_path / "runs", tmp_path / "snaps")
    assert places.run("inside").id == "inside"
    with pytest.raises(EvidenceError, match="there is no run"):
        places.run(name)
    with pytest.raises(EvidenceError, match="there is no move"):
        places.job(name)
    with pytest.raises(SnapshotError, match="no such server"):
        places.server(name, "")


def test_a_folder_that_is_a_link_is_absent(tmp_path: Path) -> None:
    outside = made_run(tmp_path / "outside", "secret")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "secret").symlink_to(outside)
    places = Places(tmp_path / "runs", tmp_path / "snaps")
    assert places.runs() == []
    with pytest.raises(EvidenceError, match="there is no run"):
        places.run("secret")


def test_a_link_in_a_run_that_leads_out_is_refused_and_named(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs", "one")
    (run / "calls").mkdir()
    (run / "calls" / "own.parquet").write_bytes(b"")
    (run / "calls" / "again.parquet").symlink_to("own.parquet")
    places = Places(tmp_path / "runs", tmp_path / "snaps")
    assert places.run("one").id == "one"
    (run / "calls" / "b000001.parquet").symlink_to("/etc/hostname")
    with pytest.raises(EvidenceError, match="is a link that leads out") as raised:
        places.run("one")
    assert raised.value.where == "one/calls/b000001.parquet"


def test_a_link_in_a_store_is_not_read(folder: Path, tmp_path: Path) -> None:
    """The file of a snapshot may have been put there by somebody else."""
    shutil.copytree(folder / "snaps", tmp_path / "snaps", ignore=shutil.ignore_patterns("sums"))
    for one in (tmp_path / "snaps").glob("*/activity.parquet"):
        one.rename(tmp_path / f"{one.parent.name}.parquet")
        one.symlink_to(tmp_path / f"{one.parent.name}.parquet")
    answer = Browser(tmp_path / "runs", tmp_path / "snaps").get("/server")
    assert answer.status == 404
    assert "is not a file" in answer.text


def test_a_run_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    made_run(tmp_path / "runs", "good")
    (made_run(tmp_path / "runs", "torn") / "manifest.json").write_text("{")
    assert [run.id for run in Places(tmp_path / "runs", tmp_path / "snaps").runs()] == ["good"]


def test_a_run_is_opened_again_when_its_manifest_changes(tmp_path: Path) -> None:
    path = made_run(tmp_path / "runs", "one") / "manifest.json"
    places = Places(tmp_path / "runs", tmp_path / "snaps")
    assert places.run("one") is places.run("one")
    path.write_text(path.read_text().replace('"title": "one"', '"title": "renamed"'))
    assert places.run("one").manifest.title == "renamed"


def test_a_folder_of_stores_has_the_servers_of_each(folder: Path, tmp_path: Path) -> None:
    for name in ("east", "west"):
        shutil.copytree(folder / "snaps", tmp_path / name, ignore=shutil.ignore_patterns("sums"))
    servers = Places(tmp_path / "runs", tmp_path).servers()
    assert [(one.name, one.target) for one in servers] == [("east", "shop-db:5432"), ("west", "shop-db:5432")]
