"""Devices fitted to runs of `dbdyno probe`, on mounted devices whose times are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from device_mounts import empty_folder, require_fuse

from command_line import dbdyno, succeeded
from dbdyno.device.mounts import unmount
from dbdyno.device.server import start_server

READ_US, WRITE_US = 2_000, 4_000
BUSY = 4.0
"""Largest accepted factor by which a request is slower on a busy machine; no request is faster than its device."""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder whose device reads in 2 ms, writes in 4 ms, and serves two requests at a time."""
    require_fuse()
    folder = empty_folder(tmp_path_factory.mktemp("known"))
    back = empty_folder(folder.parent, "back")
    times = [f'{{ kind = "constant", us = {us}.0 }}' for us in (READ_US, WRITE_US)]
    toml = (
        'title = "known"\n[devices.d]\nkind = "empirical"\ncapacity_gb = 10.0\nservers = 2\n'
        f'regimes = [{{ read = {times[0]}, write = {times[1]} }}]\n[storage]\nredo = "d"\ndata = "d"\n'
    )
    start_server({"device": "known", "folder": str(folder), "back": str(back), "toml": toml})
    yield folder
    unmount(folder)


def fitted(*words: object, cwd: Path) -> dict[str, object]:
    done = succeeded("device", "fit", *words, "--json", cwd=cwd)
    page: dict[str, object] = json.loads(done.stdout)
    return page


def median_us(page: dict[str, object], operation: str) -> float:
    """Return the median time of an operation in the TOML of a fitted device [us]."""
    text = str(page["toml"]).split(f"{operation} = ")[1]
    probability, us = (
        [float(one) for one in text.split(f"{name} = [")[1].split("]")[0].split(",")] for name in ("probability", "us")
    )
    return next(value for share, value in zip(probability, us, strict=True) if share >= 0.5)


def test_writes_of_a_redo_probe_are_the_times_of_the_device(slow: Path, tmp_path: Path):
    log = slow / "redo"
    probe = dbdyno("probe", "redo", log, "--for", "2s", "--file-size", "8MiB", "--sessions", 2, cwd=tmp_path)
    assert probe.returncode in (0, 1), probe.stderr
    page = fitted("last", cwd=tmp_path)
    assert 0.98 * WRITE_US < median_us(page, "write") < BUSY * WRITE_US
    sentences = " ".join(page["sentences"])  # type: ignore[arg-type]
    assert "how many requests the device serves at once was not measured" in sentences
    assert "The writes had 4 KB" in sentences
    assert [job["job"] for job in page["jobs"]] == ["first half of the writes", "second half of the writes"]  # type: ignore[attr-defined]
    for words, said in (
        (("last", "--path", "2"), "the probe wrote to only one path"),
        (("last", "last"), "only flash probes are fitted together"),
        (("absent",), "names no run"),
        (("absent.json",), "cannot be read"),
    ):
        refused = dbdyno("device", "fit", *words, cwd=tmp_path)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr


def test_two_flash_probes_at_two_depths_are_one_device(slow: Path, tmp_path: Path):
    for depth in (1, 4):
        words = ("--depth", depth, "--file-size", "4MiB", "--round", "300ms", "--rounds", "4")
        succeeded("probe", "flash", slow, *words, cwd=tmp_path)
    runs = sorted((tmp_path / "runs").iterdir())
    page = fitted(*runs, "--seed", 1, cwd=tmp_path)
    assert int(str(page["servers"])) >= 2  # 2 on a machine with time for the probe
    assert 0.98 * READ_US < median_us(page, "read") < BUSY * READ_US
    assert 0.98 * WRITE_US < median_us(page, "write") < BUSY * WRITE_US
    alone = fitted(runs[0], cwd=tmp_path)
    assert "was not measured" in " ".join(alone["sentences"])  # type: ignore[arg-type]


def test_a_run_that_is_no_probe_is_sent_to_calibrate(tmp_path: Path):
    run = tmp_path / "runs" / "r"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text('{"schema": 1, "title": "t", "kind": "workload", "status": "complete"}')
    done = dbdyno("device", "fit", run, cwd=tmp_path)
    assert done.returncode == 2
    assert "is not a run of `dbdyno probe`" in done.stderr
    assert "dbdyno model calibrate" in done.stderr
