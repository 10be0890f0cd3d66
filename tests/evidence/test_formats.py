"""Files of earlier versions can be read by this version: each format, as it was written at that version's release."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from interface import interface, sample

from command_line import dbdyno
from dbdyno.bench.clients.reader import StreamReader
from dbdyno.bench.clients.stream import Record

FORMATS = sorted(path for path in (Path(__file__).parent / "formats").iterdir() if path.is_dir())


@pytest.fixture(params=FORMATS, ids=lambda path: path.name)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of the files that an earlier version wrote."""
    shutil.copytree(request.param, tmp_path / "old")
    return tmp_path / "old"


def test_a_run_has_the_verdict_that_it_had(old: Path) -> None:
    (run,) = (old / "runs").iterdir()
    before = json.loads((run / "manifest.json").read_text())["verdict"]["decision"]
    done = dbdyno("compare", run, "--json", cwd=old)
    assert json.loads(done.stdout)["verdict"]["decision"] == before == "faster"
    assert dbdyno("report", run, "--format", "text", cwd=old).returncode == 0
    assert len(json.loads(dbdyno("runs", "--plan", "plan.toml", "--json", cwd=old).stdout)) == 1


def test_an_import_and_a_kept_result_are_read(old: Path) -> None:
    assert dbdyno("compare", "imported", cwd=old).returncode == 0
    (row,) = json.loads(dbdyno("results", "log", "results", "--json", cwd=old).stdout)
    assert row["machine"] == "made-once"
    model = json.loads(dbdyno("trend", "plan.toml", "--results", "results", "--json", cwd=old).stdout)
    assert len(model["runs"]) == 1 and model["runs"][0]["values"]["two"] > 1


def test_an_imported_trace_has_its_profile(old: Path) -> None:
    kept = dbdyno("trace", "profile", "traced", "--json", cwd=old)
    anew = dbdyno("trace", "profile", "one.trc", "--json", cwd=old)
    assert kept.returncode == anew.returncode == 0
    assert json.loads(kept.stdout)["profile"] == json.loads(anew.stdout)["profile"]


def test_a_store_of_snapshots_has_its_intervals(old: Path) -> None:
    assert len(json.loads(dbdyno("snap", "list", "--store", "snaps", "--json", cwd=old).stdout)) == 5
    assert dbdyno("snap", "check", "--store", "snaps", cwd=old).returncode == 0
    report = dbdyno("snap", "report", "1", "5", "--store", "snaps", "--json", cwd=old)
    assert report.returncode == 0 and json.loads(report.stdout)["kind"] == "snapshot"


def test_the_public_names_are_there_and_calls_of_them_still_work(old: Path) -> None:
    before, now = json.loads((old / "interface.json").read_text())["python"], interface()["python"]
    for name, parameters in before.items():
        assert name in now, f"{name} is gone: it must warn with DeprecationWarning for one minor version"
        for parameter in parameters or ():
            assert parameter in now[name], f"{name} has no parameter {parameter} any longer"
        for parameter, needed in (now[name] or {}).items():
            assert not needed or parameter in (parameters or {}), f"{name} needs the new parameter {parameter}"


def test_records_of_a_client_are_read_as_they_were_meant(old: Path) -> None:
    before, now = json.loads((old / "interface.json").read_text())["client_protocol"], interface()["client_protocol"]
    assert before["version"] in (now["version"], now["version"] - 1)
    assert before["kinds"].items() <= now["kinds"].items()
    for kind, word in before["kinds"].items():
        (read,) = StreamReader().feed(bytes.fromhex(before["records"][word]))
        assert _fields(read) == _fields(sample(int(kind)))


def _fields(read: Any) -> tuple[object, ...]:
    """Return the fields of a record, or of the only row of an array."""
    names = ("kind", "session", "slice", "statement", "started_ns", "elapsed_ns", "rows", "code", "vendor")
    row = read if isinstance(read, Record) else read[0]
    values = (getattr(row, name) if isinstance(row, Record) else row[name].item() for name in names)
    return tuple(value.decode() if isinstance(value, bytes) else value for value in values)
