"""Readable files: only existing folders can be named, and no link leads out of them."""

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
    with pytest.raises(EvidenceError, match="is a link to a place outside") as raised:
        places.run("one")
    assert raised.value.where == "one/calls/b000001.parquet"


def test_a_run_with_a_link_that_leads_out_is_in_no_list_and_named_on_the_first_page(tmp_path: Path) -> None:
    made_run(tmp_path / "runs", "good")
    (made_run(tmp_path / "runs", "bad") / "statements.parquet").symlink_to("/etc/hostname")
    places = Places(tmp_path / "runs", tmp_path / "snaps")
    assert [run.id for run in places.runs()] == ["good"]
    assert [one.where for one in places.refusals()] == ["bad/statements.parquet"]
    browser = Browser(tmp_path / "runs", tmp_path / "snaps")
    assert "bad/statements.parquet" in browser.get("/").text
    for path in ("/run?id=bad", "/sql?run=bad&query=select+1", "/compare?a=good&b=bad"):
        assert "place outside of its folder" in browser.get(path).text, path


def copied_store(folder: Path, to: Path) -> Path:
    return shutil.copytree(folder / "snaps", to, ignore=shutil.ignore_patterns("sums"))


@pytest.mark.parametrize("what", ("activity.parquet", "manifest.json", "", "sums"))
def test_a_link_in_a_store_that_leads_out_is_refused_for_sql_and_everywhere_else(
    folder: Path, tmp_path: Path, what: str
) -> None:
    """The file of a snapshot, its folder, or the sums may have been put there by somebody else."""
    store = copied_store(folder, tmp_path / "snaps")
    inside = store / "sums" if what == "sums" else store / "000003" / what
    if what == "sums":
        (tmp_path / "elsewhere").mkdir()
    else:
        inside.rename(tmp_path / "elsewhere")
    inside.symlink_to(tmp_path / "elsewhere")
    browser = Browser(tmp_path / "runs", tmp_path / "snaps")
    where = inside.relative_to(tmp_path).as_posix()
    assert where in browser.get("/").text
    paths = ("/server", "/sql?on=snap:/shop-db:5432&query=select+1", "/report", "/statement?id=1002", "/blocking")
    for path in (*paths, "/plans", "/advice", "/periods?against=1h", "/experiment?id=1002"):
        answer = browser.get(path)
        assert answer.status == 404, path
        assert where in answer.text and "place outside of its folder" in answer.text, path
    assert "1002" not in browser.get("/search?q=stock").text


def test_a_link_that_comes_later_is_refused_too(folder: Path, tmp_path: Path) -> None:
    store = copied_store(folder, tmp_path / "snaps")
    browser = Browser(tmp_path / "runs", tmp_path / "snaps")
    assert browser.get("/blocking").status == 200
    (store / "plans").mkdir()
    (store / "plans" / "p.parquet").symlink_to("/etc/hostname")
    assert browser.get("/blocking").status == 404


def test_a_link_within_a_store_is_followed(folder: Path, tmp_path: Path) -> None:
    store = copied_store(folder, tmp_path / "snaps")
    (store / "notes").symlink_to("000001")
    assert Places(tmp_path / "runs", tmp_path / "snaps").server("", "").store.folder == store


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
