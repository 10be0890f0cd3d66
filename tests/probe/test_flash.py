"""`dbdyno probe flash` as users see it: phases, steady state, refused requests, and what it never touches."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import command_line
from command_line import checked
from dbdyno import _core
from dbdyno.base.errors import TargetError
from dbdyno.bench.host.flash import device_users
from dbdyno.evidence.run import find_run
from dbdyno.stats.steady_state import steadiness, steady_after
from dbdyno.study.analysis.analyse import analyse
from waiting import until

SHORT = ("--file-size", "4MiB", "--sync", "dsync", "--round", "20ms", "--rounds", "5")


def probe(folder: Path, *words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return command_line.dbdyno("probe", "flash", *words, cwd=folder, stdin=stdin)


@pytest.mark.parametrize(
    ("values", "after"),
    [
        ([70, 70, 70, 70, 70], 5),
        ([110, 90, 100, 90, 110], 5),  # a range of exactly 20 %, no slope
        ([112, 90, 100, 90, 110], None),  # of more
        ([95, 97.5, 100, 102.5, 105], 5),  # a rise of exactly 10 %
        ([94, 97, 100, 103, 106], None),  # of more, the range is within 20 %
        ([300, 200, 100, 70, 69, 71, 70, 70], 8),
        ([70, 70, 70, 70], None),  # too few
        ([0, 0, 0, 0, 0], None),
        ([], None),
    ],
)
def test_steady_is_what_snia_calls_so(values: list[float], after: int | None) -> None:
    assert steady_after(values) == after
    found = steadiness(values)
    assert (found is not None and found.steady) is (after == len(values))


def test_a_probe_leaves_phases_a_report_and_no_file(tmp_path: Path, html_page: None) -> None:
    done = checked(probe(tmp_path, ".", *SHORT))
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    run = find_run("last", tmp_path / "runs")
    model = analyse(run)
    phases = [phase["phase"] for phase in model["phases"]]
    assert phases == ["first write", "fill", "read", *["overwrite"] * 5, "read"]
    fill = model["phases"][1]
    first = model["phases"][0]
    assert first["requests"] * 4096 + fill["requests"] * 2**20 >= 4 * 2**20
    assert fill["requests"] * 2**20 - 4 * 2**20 < 2**20
    answer = "MEASURED  Steady after 5 rounds" if model["steady"]["after"] else "CANNOT TELL  Not steady after 5 rounds"
    assert answer in done.stdout
    assert "overwrite 5" in done.stdout
    assert "through the page cache" in done.stdout
    html = (run.path / "report.html").read_text()
    assert "Reads and overwrites over time" in html
    listed = checked(command_line.dbdyno("runs", cwd=tmp_path))
    assert "complete" in listed.stdout


def test_every_request_is_in_the_evidence(tmp_path: Path) -> None:
    assert probe(tmp_path, "new-file", *SHORT, "--depth", "3", "--seed", "7").returncode == 0
    run = find_run("last", tmp_path / "runs")
    asked = "select arm, count(*) as n, count(distinct session) as sessions, min(elapsed_ns) as least from calls"
    done = command_line.dbdyno("sql", f"{asked} group by arm", "--format", "json", cwd=tmp_path)
    rows = {row["arm"]: row for row in json.loads(done.stdout)}
    told = {name: sum(b.rows for b in run.blocks() if b.report["phase"] == name) for name in rows}
    assert {name: row["n"] for name, row in rows.items()} == told
    assert set(rows) == {"first write", "fill", "read", "overwrite"}
    assert rows["overwrite"]["sessions"] == 3
    assert all(row["least"] > 0 for row in rows.values())
    two = command_line.dbdyno("compare", run.path, run.path, cwd=tmp_path)
    assert (two.returncode, "or a flash probe" in two.stderr) == (2, True), two.stderr
    again = command_line.dbdyno("report", "last", "--format", "csv", cwd=tmp_path)
    assert again.stdout.splitlines()[0].startswith("block,phase,round")


def test_a_probe_whose_time_is_over_says_so(tmp_path: Path) -> None:
    """A busy machine had used the whole millisecond up before the first request: "contains no request", exit 2."""
    done = probe(tmp_path, ".", "--file-size", "64MiB", "--sync", "dsync", "--for", "1ns", "--depth", "2")
    assert done.returncode == 1, done.stderr
    assert "NO VERDICT  The probe ended before the first round of overwriting." in done.stdout
    assert "Give it more time (--for)" in done.stdout
    (block,) = find_run("last", tmp_path / "runs").blocks()
    assert (block.report["phase"], block.rows) == ("first write", 2), "one request of each session"
    few = probe(tmp_path, ".", "--file-size", "4MiB", "--sync", "dsync", "--round", "20ms", "--rounds", "2")
    assert few.returncode in (0, 1), few.stderr
    # On a machine that is not steady itself, that is the answer.
    assert few.returncode == 1 or "A steady state needs 5 rounds; there were fewer." in few.stdout


def test_what_is_there_is_never_written_to(tmp_path: Path) -> None:
    kept = tmp_path / "precious"
    kept.write_bytes(b"x" * 10_000)
    (tmp_path / "link").symlink_to(kept)
    for name, words in (("precious", "is there already"), ("link", "is there already"), ("/dev/null", "is a device")):
        done = probe(tmp_path, name, *SHORT)
        assert done.returncode == 2
        assert words in done.stderr
        assert "--destroy" in done.stderr
    for name, stdin, words in (
        ("precious", "", "nothing was changed"),
        ("precious", "precious\n", "nothing was changed"),  # the whole path is asked for
        ("link", "yes\n", "nothing was changed"),
        (".", "", "is a folder"),
        ("missing", "", "cannot be overwritten"),
        ("/dev/null", "/dev/null\n", "neither a file nor a block device"),
    ):
        done = probe(tmp_path, name, *SHORT, "--destroy", stdin=stdin)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert kept.read_bytes() == b"x" * 10_000
    assert not (tmp_path / "runs").exists()


def test_a_file_that_its_owner_gives_up_is_overwritten_and_stays(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_bytes(b"\0" * 2**20)
    done = checked(probe(tmp_path, "given", *SHORT[2:], "--destroy", stdin=f"{given.resolve()}\n"))
    assert "The first 1.00 MiB of it will be overwritten" in done.stdout
    assert given.stat().st_size == 2**20
    assert given.read_bytes() != b"\0" * 2**20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "3KiB"], "make no request"),
        (["--size", "2MiB"], "make no request"),
        (["--sync", "soon"], "is not a way"),
        (["--round", "1ms"], "too short"),
        (["--depth", "0"], "not in the range"),
        (["--file-size", "900PiB"], "'900PiB' is not a size"),
        (["--file-size", "900000GiB"], "879 TiB and 16 MiB to spare are needed there"),
    ],
)
def test_values_that_make_no_sense_are_refused(tmp_path: Path, words: list[str], said: str) -> None:
    done = probe(tmp_path, ".", *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_killed_or_interrupted_probe_leaves_its_rounds_and_no_file(tmp_path: Path) -> None:
    for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        out = tmp_path / number.name
        words = ["probe", "flash", tmp_path, *SHORT[:4], "--round", "100ms", "--rounds", "1000", "--out", out]
        child = subprocess.Popen(
            [sys.executable, "-m", "dbdyno", *map(str, words)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda out=out: len(list(out.glob("*/blocks/*.json"))) >= 4, 60)
        child.send_signal(number)
        # A quiet machine may have become steady by then.
        assert child.wait(60) in (code, 0)
        run = find_run("last", out)
        assert run.status in ("aborted", "complete")
        assert len(analyse(run)["phases"]) >= 4
        assert not list(tmp_path.glob("dbdyno-flash*"))
        if run.status == "aborted":
            again = command_line.dbdyno("run", "--resume", run.path, cwd=tmp_path)
            assert again.returncode == 2
            assert "is a run of flash without a plan" in again.stderr


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """Yield a block device of 4 MiB: a loop device, if this user is allowed to create one."""
    if shutil.which("losetup") is None:
        pytest.skip("losetup is not installed, or this user is not root: no block device to write to")
    image = tmp_path / "image"
    image.write_bytes(b"\0" * (4 << 20))
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    path = Path(made.stdout.strip())
    yield path
    subprocess.run(["losetup", "--detach", str(path)], check=True)


def test_a_device_is_overwritten_when_nothing_uses_it(device: Path, tmp_path: Path) -> None:
    done = checked(probe(tmp_path, device, *SHORT[4:], "--destroy", stdin=f"{device}\n"))
    assert f"block device {device}" in done.stdout
    assert f"{device} has 4.00 MiB." in done.stdout


def test_a_mounted_device_is_refused_twice(device: Path, tmp_path: Path) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed: no file system to mount")
    subprocess.run(["mkfs.ext4", "-q", str(device)], check=True)
    if subprocess.run(["mount", str(device), str(place)], check=False).returncode:
        pytest.skip("this user may not mount: needs root outside of a container")
    try:
        done = probe(tmp_path, device, *SHORT, "--destroy", stdin=f"{device}\n")
        assert done.returncode == 2
        assert f"{device.name} is mounted at {place}" in done.stderr
        spec = {"seed": 1, "path": str(device), "block_bytes": 4096, "file_bytes": None, "depth": 1}
        with pytest.raises(TargetError, match="is in use"):  # the kernel's own word
            _core.FlashProbe({**spec, "sync": "direct", "destroy": True})  # type: ignore[typeddict-item]
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_what_uses_a_device_is_found_in_its_parts_too(tmp_path: Path) -> None:
    proc, sys_ = tmp_path / "proc", tmp_path / "sys"
    part = sys_ / "class/block/sdx/sdx1"
    part.mkdir(parents=True)
    (part / "partition").write_text("1\n")
    (sys_ / "class/block/sdx1").symlink_to(part)
    (part / "dev").write_text("8:99\n")
    (proc / "self").mkdir(parents=True)
    disk = Path("/dev/sdx")
    assert device_users(disk, proc, sys_) == ""
    (proc / "swaps").write_text("Filename Type Size\n/dev/sdx1 partition 100\n")
    assert device_users(disk, proc, sys_) == "sdx1 is swap space"
    (proc / "self/mountinfo").write_text("36 35 8:99 / /data rw - ext4 /dev/sdx1 rw\n")
    assert device_users(disk, proc, sys_) == "sdx1 is mounted at /data"
    (part / "holders/dm-0").mkdir(parents=True)
    assert device_users(disk, proc, sys_) == "dm-0 is made of sdx1"
