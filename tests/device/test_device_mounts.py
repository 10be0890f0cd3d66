"""`dbdyno device`: folders mounted on modelled devices, as a user sees them."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from device_mounts import empty_folder, require_fuse

from command_line import dbdyno, succeeded
from dbdyno import _core
from dbdyno.base.errors import DeviceError, ModelError
from dbdyno.device.catalogue import device_names, device_of, parameters, settings_of
from dbdyno.device.faults import fault_rule
from dbdyno.device.mounts import (
    MountedFolder,
    check_folders,
    check_machine,
    mount_folder,
    mounted_folders,
    open_mount,
    status,
    unmount,
)
from dbdyno.device.server import start_server
from waiting import until

PLAIN = 'title = "t"\n[devices.v]\nkind = "volume"\niops = 200.0\nwindow_ms = 10.0\n[storage]\nredo = "v"\ndata = "v"\n'


def spec(folder: Path, **more: object) -> dict[str, object]:
    back = folder.parent / "back"
    back.mkdir(exist_ok=True)
    return {"device": "test", "folder": str(folder), "back": str(back), **more}


def test_every_device_names_the_source_of_each_number():
    for name in device_names():
        rows = parameters(device_of(name))
        assert rows, name
        assert all(row["source"] for row in rows)


def test_a_program_sees_files_and_the_folder_below_has_them(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    with mount_folder(spec(folder, toml=PLAIN)):  # type: ignore[arg-type]
        (folder / "sub").mkdir()
        (folder / "sub" / "a").write_text("text")
        (folder / "sub" / "a").rename(folder / "b")
        (folder / "link").symlink_to("b")
        (folder / "b").chmod(0o640)
        with (folder / "b").open("r+") as file:
            file.truncate(2)
            os.fsync(file.fileno())
        assert sorted(path.name for path in folder.iterdir()) == ["b", "link", "sub"]
        assert (folder / "link").read_text() == "te"
        assert status(folder)["device"] == "test"
        (folder / "sub").rmdir()
    assert list(folder.iterdir()) == []
    assert (tmp_path / "back" / "b").read_text() == "te"
    assert (tmp_path / "back" / "b").stat().st_mode & 0o777 == 0o640


def test_synced_writes_take_the_time_of_the_device(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    with mount_folder(spec(folder, toml=PLAIN)) as mount, (folder / "a").open("wb", buffering=0) as file:  # type: ignore[arg-type]
        begin = time.monotonic()
        for _ in range(22):
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
        took_s = time.monotonic() - begin
        # A flush is counted after its reply.
        until(lambda: mount.status()["flush"]["count"] >= 22, 10)
        state = mount.status()
    assert took_s > 0.1  # 200 a second, two of them at once
    assert state["write"]["count"] == 22
    assert state["flush"]["count"] >= 22
    assert 0 < state["floor_ns"] < 5e6


def test_a_command_mounts_shows_and_unmounts(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    done = succeeded("device", "mount", "gp3", folder, "--set", "iops=500", "--seed", 3)
    assert "kernel time and are subtracted" in done.stdout
    (folder / "a").write_text("x")
    listed = json.loads(dbdyno("device", "list", "--mounted", "--format", "json").stdout)
    assert str(folder) in [row["folder"] for row in listed]
    rows = json.loads(dbdyno("device", "status", folder, "--format", "json").stdout)
    assert [row["kind"] for row in rows] == ["read", "write", "flush", "late"]
    twice = dbdyno("device", "mount", "gp3", folder)
    assert (twice.returncode, "mounted on a device already" in twice.stderr) == (2, True)
    assert dbdyno("device", "unmount", folder).returncode == 0
    assert (tmp_path / "mounted.data" / "a").read_text() == "x"


def test_discards_take_time_free_pages_and_wear_is_said(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    slower = ("--set", "firmware_us=500")  # than the way through the kernel
    succeeded("device", "mount", "nvme-client-2024", folder, "--direct-io", *slower)

    def wear() -> dict[str, float]:
        (row,) = json.loads(dbdyno("device", "status", folder, "--wear", "--format", "json").stdout)
        return row

    try:
        with (folder / "a").open("wb", buffering=0) as file:
            for _ in range(4):
                file.write(b"x" * (1 << 20))
        punch = ("fallocate", "--punch-hole", "--offset", "0", "--length", str(2 << 20), str(folder / "a"))
        subprocess.run(punch, check=True)
        rows = {row["kind"]: row for row in json.loads(dbdyno("device", "status", folder, "--format", "json").stdout)}
        # Two pieces of a megabyte, one after the other on the link: 50 us, and 10 us for each.
        assert rows["discard"]["count"] == 1
        assert 500 <= rows["discard"]["p50_us"] < 750
        # The kernel may divide a write within a page, which is then written twice.
        assert 1024 <= wear()["host_pages"] <= 1040
        assert (wear()["trimmed_pages"], wear()["write_amplification"]) == (512, 1.0)
        (folder / "a").unlink()
        until(lambda: wear()["trimmed_pages"] == 1024, 10)
        assert wear()["erases"] == wear()["erases_most"] == 0
    finally:
        unmount(folder)
    _nothing_is_left(folder)


def test_a_killed_mount_says_so_and_can_be_removed(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    for _ in range(5):
        state = start_server(spec(folder, toml=PLAIN))  # type: ignore[arg-type]
        os.kill(state["process"], signal.SIGKILL)
        _wait_for_the_end(state["process"])
        with pytest.raises(DeviceError, match="is dead"):
            status(folder)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("dbdyno.bench.doctor.examine_server", lambda dsn: [])
            assert f"dead mount: {folder}" in dbdyno("doctor").stderr
        assert unmount(folder) is None
    _nothing_is_left(folder)


def test_a_mount_that_polls_says_so_and_ends_like_any_other(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    succeeded("device", "mount", "gp3", folder, "--poll")
    try:
        (folder / "a").write_text("content")
        polls = status(folder)["polls"]
    finally:
        unmount(folder)
    assert polls
    _nothing_is_left(folder)
    assert (tmp_path / "mounted.data" / "a").read_text() == "content"


def test_a_mount_does_not_poll_on_the_only_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    require_fuse()
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    with pytest.raises(DeviceError, match="no processor is left for the program"):
        open_mount({**spec(empty_folder(tmp_path)), "polls": True})  # type: ignore[typeddict-item]


def test_a_program_that_uses_the_folder_is_named_as_the_reason(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    start_server(spec(folder, toml=PLAIN))  # type: ignore[arg-type]
    with (folder / "a").open("w"), pytest.raises(DeviceError, match="cannot be unmounted"):
        unmount(folder)
    unmount(folder)
    _nothing_is_left(folder)


@pytest.mark.soak
def test_two_hundred_mounts_and_kills_leave_nothing(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    for number in range(200):
        state = start_server(spec(folder, toml=PLAIN))  # type: ignore[arg-type]
        (folder / "a").write_text(str(number))
        if number % 2:
            os.kill(state["process"], signal.SIGKILL)
            _wait_for_the_end(state["process"])
        unmount(folder)
    _nothing_is_left(folder)


def test_two_mounts_at_once_do_not_know_each_other(tmp_path: Path):
    require_fuse()
    first, second = empty_folder(tmp_path, "one"), empty_folder(tmp_path, "two")
    (tmp_path / "other").mkdir()
    other = {**spec(second), "back": str(tmp_path / "other")}
    with mount_folder(spec(first)), mount_folder(other):  # type: ignore[arg-type]
        (first / "a").write_text("1")
        assert not (second / "a").exists()
        assert len([one for one in mounted_folders() if one.folder in (first, second)]) == 2


def test_faults_fail_what_they_name_and_are_recorded(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    rules = [fault_rule("eio:path=a*,operation=write,from_bytes=4096"), fault_rule("enospc:path=full,after=1")]
    with mount_folder(spec(folder, faults=rules, direct_io=True)) as mount:  # type: ignore[arg-type]
        with (folder / "a").open("wb", buffering=0) as file:
            file.write(b"x" * 4096)
            with pytest.raises(OSError, match="Input/output error"):
                file.write(b"x" * 10)
        with (folder / "full").open("wb", buffering=0) as file:
            file.write(b"x")
            with pytest.raises(OSError, match="No space left"):
                file.write(b"y")
        rows = mount.faults()
    assert [(row["kind"], row["file"], row["offset_bytes"]) for row in rows] == [
        ("eio", "a", 4096),
        ("enospc", "full", 1),
    ]
    assert all(abs(row["at_ns"] / 1e9 - time.time()) < 60 for row in rows)


def test_a_device_that_is_full_has_no_space(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    small = PLAIN.replace("iops = 200.0", "iops = 1e6\ncapacity_gb = 0.002")
    with mount_folder(spec(folder, toml=small, direct_io=True)), (folder / "a").open("wb", buffering=0) as file:  # type: ignore[arg-type]
        file.write(b"x" * (1 << 20))
        with pytest.raises(OSError, match="No space left"):
            file.write(b"x" * (1 << 20))


def test_a_device_faster_than_the_kernel_is_refused_with_the_figure(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    done = dbdyno("device", "mount", "nvme-2024", folder, "--set", "firmware_us=0", "--set", "command_us=0")
    assert done.returncode == 2
    assert "a write of 4 KB takes 0.6 us" in done.stderr
    _nothing_is_left(folder)
    assert not (tmp_path / "mounted.data").exists()


def _wait_for_the_end(process: int) -> None:
    deadline = time.monotonic() + 5
    while Path(f"/proc/{process}/stat").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.005)


def _nothing_is_left(folder: Path) -> None:
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gp4", "m"), "did you mean gp3?"),
        (("gp3", "m", "--set", "iop=3"), "did you mean iops?"),
        (("gp3", "m", "--set", "iops"), "is not KEY=VALUE"),
        (("gp3", "m", "--set", "iops=-1"), "expected a number from 1"),
        (("gp3", "absent"), "mkdir -p"),
        (("gp3", ".", "--back", "m"), "is not empty (m)"),
        (("gp3", "m", "--back", "m/inside"), "m/inside: the data folder does not exist"),
        (("gp3", "m", "--back", "absent"), "mkdir -p"),
        (("gp3", "m", "--fail", "eoi"), "did you mean eio?"),
        (("gp3", "m", "--fail", "eio:pth=x"), "did you mean path?"),
        (("gp3", "m", "--fail", "eio:operation=sync"), "use one of read, write, flush"),
        (("gp3", "m", "--fail", "slow:ms=fast"), "ms must be a whole number"),
        (("gp3", "m", "--fail", "write-hole:path=x"), "use one of members, stripe_kb"),
        (("gp3", "m", "--fail", "write-hole:members=2"), "3 to 256 members"),
        (("gp3", "m", "--fail", "eio:members=4"), "there is no key of eio 'members'"),
    ],
)
def test_what_cannot_be_mounted_is_refused_and_nothing_changes(tmp_path: Path, words: tuple[str, ...], said: str):
    require_fuse()
    (tmp_path / "m").mkdir()
    done = dbdyno("device", "mount", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["m"]


def test_what_is_not_mounted_can_be_neither_asked_nor_unmounted(tmp_path: Path):
    for verb in ("status", "unmount"):
        done = dbdyno("device", verb, tmp_path)
        assert (done.returncode, "is not mounted on a device" in done.stderr) == (2, True)


def test_a_machine_without_fuse_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dbdyno.device.mounts.FUSE", Path("/dev/absent"))
    with pytest.raises(DeviceError, match="no FUSE") as refused:
        check_machine()
    assert "modprobe fuse" in str(refused.value)


def test_a_user_without_the_helper_is_told_its_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dbdyno.device.mounts.FUSE", Path("/dev/null"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("dbdyno.device.mounts.find_program", lambda name: None)
    with pytest.raises(DeviceError, match="fusermount3") as refused:
        check_machine()
    assert "apt-get install fuse3" in str(refused.value)


def test_a_user_who_may_not_open_fuse_is_told_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dbdyno.device.mounts.FUSE", Path("/dev/null"))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(DeviceError, match="may not open /dev/null"):
        check_machine()


def test_the_mount_of_another_user_is_not_called_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(self: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr("dbdyno.device.mounts.is_mounted", lambda folder: True)
    mount = MountedFolder(tmp_path)
    assert (mount.process(), mount.is_dead()) == (None, False)
    with pytest.raises(DeviceError, match="another user has mounted"):
        status(tmp_path)


def test_a_folder_inside_the_data_is_refused(tmp_path: Path):
    folder = empty_folder(tmp_path)
    with pytest.raises(DeviceError, match="must not contain each other"):
        check_folders(folder, tmp_path)


def test_a_setting_needs_a_name_that_is_one_parameter():
    device = device_of("disk-15000-cache")
    assert settings_of(device, ("disk.rotation_rpm=7200",)) == [("devices.disk.rotation_rpm", "7200")]
    assert settings_of(device, ("battery=false",)) == [("devices.controller.battery", "false")]
    texts = dict(_core.device_texts())
    with pytest.raises(ModelError):
        _core.device_alone_ns(texts["gp3"], [("devices.volume.iops", "none")], True, 4096)


def test_the_mount_table_is_read_with_its_escapes(tmp_path: Path):
    table = tmp_path / "mountinfo"
    table.write_text("1 2 0:1 / /a\\040b rw - fuse dbdyno rw\n3 4 0:2 / /c rw - ext4 /dev/x rw\nbroken\n")
    assert [one.folder for one in mounted_folders(table)] == [Path("/a b")]
