"""Real engines on modelled devices: what a run records about the devices, and what remains after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from device_mounts import empty_folder, require_fuse

from command_line import dbdyno, succeeded
from dbdyno.base.errors import DeviceError, TargetError
from dbdyno.base.processes import python_command, python_environment
from dbdyno.bench.engine.volumes import volumes_of
from dbdyno.bench.mariadb.binaries import find_programs
from dbdyno.bench.mariadb.embedded import EmbeddedMariaDB
from dbdyno.bench.mariadb.session import open_session, rows
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.undo import stop_server
from dbdyno.device.mounts import mounted_folders, status, unmount
from skipped import skipped_on
from waiting import until

pytestmark = pytest.mark.usefixtures("own_interpreters")

PLAN = """
title = "commits"
[workload]
kind = "commit-loop"
[schedule]
blocks = 2
warmup_blocks = 0
turn = "{turn}"
slice = "{turn}"
[watch]
overhead_blocks = 0
[verdict]
metric = "mean"
operation = "commit"
[[factor]]
device = ["io2", "gp3"]
"""


def require(find: Callable[[], object]) -> None:
    require_fuse()
    with skipped_on(TargetError):
        find()


@pytest.mark.long
def test_commits_take_the_time_of_the_device_and_the_run_says_so(tmp_path: Path, html_page: None):
    require(find_binaries)
    (tmp_path / "p.toml").write_text(PLAN.format(turn="200ms"))
    done = dbdyno("run", "p.toml", "--seed", 1, cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    assert [row["device"] for row in manifest["volumes"]] == ["io2", "gp3"]
    assert all(row["carries"] == "data and log" and row["floor_ns"] > 0 for row in manifest["volumes"])
    assert len({arm["target"] for arm in manifest["arms"]}) == 2
    model = json.loads((run / "analysis.json").read_text())
    times = {arm["name"]: arm["quantiles_ns"]["p50"] for arm in model["arms"]}
    assert times["gp3"] > 480_000  # what 4 KB take on it, and the log is written in pieces of 8
    assert 271_000 < times["io2"] < times["gp3"]
    for row in model["volumes"]:
        assert row["writes"] > 0
        assert row["flushes"] > 0
        assert row["late_p50_ns"] is not None
    sql = "select count(*) from read_parquet($1) where source = 'device'"
    found = duckdb.connect().execute(sql, [f"{run}/metrics/*.parquet"]).fetchone()
    assert found is not None
    assert found[0] > 0
    succeeded("report", str(run), "-o", tmp_path / "page.html")
    assert "Modelled devices below the engine" in (tmp_path / "page.html").read_text()
    for facts in manifest["targets"].values():
        assert not Path(facts["data_folder"]).parents[1].exists()


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder that the engine's user can enter."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def begun(folder: Path, work: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a long run; return its process and the folder where its device is mounted."""
    text = PLAN.format(turn="20s").replace('["io2", "gp3"]', '["gp3"]')
    (folder / "p.toml").write_text(text)
    process = subprocess.Popen(
        python_command("dbdyno", "run", "p.toml"),
        env={**python_environment(), "TMPDIR": str(work)},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    mounts: list[Path] = []

    def is_mounted() -> bool:
        mounts[:] = [mount.folder for mount in mounted_folders() if mount.folder.is_relative_to(work)]
        return bool(mounts) and (folder / "runs").exists()

    assert until(is_mounted)
    return process, mounts[0]


def guardian_of(process: int) -> int:
    """Return the process ID of the guardian that a process started."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            words = (entry / "cmdline").read_bytes().split(b"\0") if (entry / "cmdline").exists() else []
            if b"dbdyno.bench.guardian" in words and str(process).encode() in words:
                return int(entry.name)
    raise AssertionError("no guardian")


@pytest.mark.long
def test_the_guardian_stops_the_server_and_unmounts_when_all_others_are_killed(tmp_path: Path, work: Path):
    require(find_binaries)
    process, mount = begun(tmp_path, work)
    serving = status(mount)["process"]
    os.kill(process.pid, signal.SIGKILL)
    os.kill(serving, signal.SIGKILL)
    process.wait()
    assert until(lambda: not mount.parent.exists())
    assert mount not in [one.folder for one in mounted_folders()]


@pytest.mark.long
def test_what_is_left_when_the_guardian_is_killed_too_is_named_and_can_be_removed(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
):
    require(find_binaries)
    process, mount = begun(tmp_path, work)
    serving, guardian = status(mount)["process"], guardian_of(process.pid)
    try:
        for killed in (guardian, process.pid, serving):
            os.kill(killed, signal.SIGKILL)
        process.wait()
        with pytest.raises(DeviceError, match="is dead"):
            status(mount)
        monkeypatch.setattr("dbdyno.bench.doctor.examine_server", lambda dsn: [])
        assert f"dead mount: {mount}" in dbdyno("doctor").stderr
    finally:
        stop_server(mount / "data", fast_s=0, immediate_s=1)
        assert unmount(mount) is None
    shutil.rmtree(mount.parent)


def test_a_mount_ends_some_time_after_the_process_that_started_it(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    (tmp_path / "back").mkdir()
    program = (
        "import os, signal, sys; from dbdyno.device import server; server.GRACE_S = 0.2\n"
        "server.start_server({'device': 't', 'folder': sys.argv[1], 'back': sys.argv[2]}, lifeline=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    words = [sys.executable, "-c", program, str(folder), str(tmp_path / "back")]
    subprocess.run(words, env=python_environment(), check=False, timeout=30)
    assert until(lambda: folder not in [mount.folder for mount in mounted_folders()])


@pytest.mark.long
def test_mariadb_has_data_log_and_temporary_files_on_its_devices():
    require(lambda: find_programs({}))
    volumes = volumes_of({"data": "gp3", "wal": "io2"})
    with EmbeddedMariaDB(volumes=volumes) as server:
        connection = open_session(server.parameters())
        log, data, temporary = rows(connection, "select @@innodb_log_group_home_dir, @@datadir, @@tmpdir")[0]
        rows(connection, "create table t (i int)")
        rows(connection, "insert into t values (1)")
        states = {volume.device: state for volume, state in server.volumes.states()}
        connection.close()
        folder = server.folder
        assert Path(log).is_relative_to(folder / "log-volume")
        assert Path(data).is_relative_to(folder / "volume")
        assert Path(temporary).is_relative_to(folder / "volume")
        assert states["io2"]["write"]["count"] > 0
        assert states["gp3"]["write"]["count"] > 0
    assert not folder.exists()


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("study", ["redo-device", "redo-block-size", "flash-log", "temp-device", "key-lookup"])
def test_a_study_runs_over_devices_and_its_page_has_the_model_beside_it(study: str, tmp_path: Path, html_page: None):
    require(find_binaries)
    options = ["--set", "place=disk,flash"] if study == "key-lookup" else []
    target = {"temp-device": ["--target", "model:sas-and-flash"], "key-lookup": ["--target", "model:exadata-x2"]}
    for words in (["--target", "postgres+device:gp3"], target.get(study, [])):
        done = dbdyno("run", study, "--quick", "--seed", 1, *options, *words, cwd=tmp_path)
        assert done.returncode in (0, 1), done.stderr
    first, second = sorted((tmp_path / "runs").iterdir())
    done = dbdyno("compare", str(first), str(second), "-o", tmp_path / "pair.html", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert "Both runs, arm by arm" in (tmp_path / "pair.html").read_text()
