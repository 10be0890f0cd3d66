"""Every kind of fault: its effect on a program, and the row that records when, in which file and where it occurred."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from device_mounts import empty_folder, require_fuse

from command_line import dbdyno, succeeded
from dbdyno import _core
from dbdyno.base.device_types import DeviceStatus
from dbdyno.cuts.model import FAULTS_MOST, reported_faults
from dbdyno.device.faults import KINDS, fault_rule
from dbdyno.device.mounts import mount_folder, transport


@contextlib.contextmanager
def file_with(fault: str, below: Path) -> Iterator[tuple[_core.DeviceMount, int]]:
    """Open a file of one page in a folder with a fault."""
    require_fuse()
    folder, back = empty_folder(below), empty_folder(below, "back")
    (back / "a").write_bytes(b"x" * 4096)
    spec = {"device": "t", "folder": str(folder), "back": str(back), "faults": [fault_rule(fault)], "cuts": True}
    with mount_folder(spec) as mount:  # type: ignore[arg-type]
        file = os.open(folder / "a", os.O_RDWR)
        try:
            yield mount, file
        finally:
            with contextlib.suppress(OSError):  # what is unmounted answers errors
                os.close(file)


def only_row(mount: _core.DeviceMount) -> tuple[str, str, str, int]:
    (row,) = mount.faults()
    assert abs(row["at_ns"] / 1e9 - time.time()) < 60
    return row["kind"], row["operation"], row["file"], row["offset_bytes"]


def test_an_error_hits_the_operation_and_range_that_it_names_and_no_other(tmp_path: Path):
    with file_with("eio:operation=read,from_bytes=100,count=1", tmp_path) as (mount, file):
        os.pwrite(file, b"y", 0)
        with pytest.raises(OSError, match="Input/output error"):
            os.pread(file, 4096, 0)
        assert os.pread(file, 1, 0) == b"y"
        assert only_row(mount) == ("eio", "read", "a", 0)


def test_space_ends_after_as_many_writes_as_are_named(tmp_path: Path):
    with file_with("enospc:after=2,count=1", tmp_path) as (mount, file):
        os.pwrite(file, b"1", 0)
        os.pwrite(file, b"2", 1)
        with pytest.raises(OSError, match="No space left"):
            os.pwrite(file, b"3", 2)
        os.pwrite(file, b"4", 3)
        assert only_row(mount) == ("enospc", "write", "a", 2)


def test_a_slow_path_takes_its_additional_time(tmp_path: Path):
    with file_with("slow:path=a,operation=flush,ms=80,count=1", tmp_path) as (mount, file):
        begin = time.monotonic()
        os.fsync(file)
        assert time.monotonic() - begin >= 0.08
        assert only_row(mount) == ("slow", "flush", "a", 0)


def test_a_stuck_device_answers_when_it_is_unmounted_and_not_before(tmp_path: Path):
    ended: list[str] = []

    def write() -> None:
        try:
            os.pwrite(file, b"z", 7)
        except OSError as error:
            ended.append(error.strerror or "")

    with file_with("stuck:operation=write", tmp_path) as (mount, file):
        writer = threading.Thread(target=write)
        writer.start()
        writer.join(0.1)
        assert writer.is_alive()
        assert not ended
        assert only_row(mount) == ("stuck", "write", "a", 7)
        mount.unmount(at_once=True)
        writer.join(10)
        assert len(ended) == 1


def test_a_flush_that_lies_reports_success_and_a_cut_takes_what_it_should_have_written(tmp_path: Path):
    found = set()
    for seed in range(12):
        below = tmp_path / str(seed)
        with file_with("lying-flush", below) as (mount, file):
            os.pwrite(file, b"y" * 4096, 0)
            os.fsync(file)
            assert only_row(mount) == ("lying-flush", "flush", "a", 0)
            mount.cut(seed, 512)
        found.add((below / "back" / "a").read_bytes()[:1])
    assert found == {b"x", b"y"}


def test_a_flush_that_failed_is_followed_by_one_that_says_success(tmp_path: Path):
    with file_with("failed-flush:count=1", tmp_path) as (mount, file):
        os.pwrite(file, b"y", 0)
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(file)
        os.fsync(file)
        assert only_row(mount) == ("failed-flush", "flush", "a", 0)


def test_a_write_hole_damages_synced_pages_that_share_a_row_with_one_that_is_not(tmp_path: Path):
    require_fuse()
    page, pages, hit = 4096, 256, set()
    for seed in range(16):
        below = tmp_path / str(seed)
        folder, back = empty_folder(below), empty_folder(below, "back")
        rule = fault_rule("write-hole:members=4,stripe_kb=64")
        spec = {"device": "t", "folder": str(folder), "back": str(back), "faults": [rule], "cuts": True}
        spec["names"] = "with-files"
        synced = [bytes([number]) * page for number in range(pages)]
        with mount_folder(spec) as mount, (folder / "a").open("wb", buffering=0) as file:  # type: ignore[arg-type]
            file.write(b"".join(synced))
            os.fsync(file)
            os.pwrite(file.fileno(), b"\xff" * page, 0)
            report = mount.cut(seed, 512)
        found = (back / "a").read_bytes()
        damaged = [number for number in range(1, pages) if found[number * page :][:page] != synced[number]]
        assert set(damaged) <= {16, 32}  # the same place of the other two pieces of its row
        rows = [row["offset_bytes"] // page for row in report["rows"] if row["kind"] == "rebuilt-page"]
        assert [number for number in rows if number] == damaged
        assert report["pages_rebuilt"] == len(rows)
        hit |= set(damaged)
    assert hit == {16, 32}


def test_no_kind_of_fault_is_without_a_test():
    text = Path(__file__).read_text()
    assert not [kind for kind in KINDS if f'"{kind}:' not in text and f'"{kind}"' not in text]


def test_a_cut_leaves_a_row_for_each_page_and_name_that_it_took(tmp_path: Path):
    kinds = set()
    for seed in range(20):
        below = tmp_path / str(seed)
        with file_with("eio:path=absent", below) as (mount, file):
            os.pwrite(file, b"y" * 8192, 4096)
            (below / "mounted" / "new").write_text("n")
            report = mount.cut(seed, 512)
        assert len(report["rows"]) == report["pages_lost"] + report["pages_torn"] + report["names_undone"]
        for row in report["rows"]:
            kinds.add(row["kind"])
            assert row["file"] == "new" if row["kind"] == "undone-name" else row["file"] in ("a", "new")
            assert row["offset_bytes"] in (0, 4096, 8192)
    assert kinds == {"lost-page", "torn-page", "undone-name"}


def test_faults_of_cuts_that_were_not_survived_are_all_kept():
    rows = [{"cut": cut} for cut in [1] * FAULTS_MOST + [2] * 5 + [3] * 5]
    kept = reported_faults(rows, {3})  # type: ignore[arg-type]
    assert [sum(row["cut"] == cut for row in kept) for cut in (1, 2, 3)] == [FAULTS_MOST, 0, 5]


def test_a_command_lists_the_faults_of_a_mount(tmp_path: Path):
    require_fuse()
    folder = empty_folder(tmp_path)
    succeeded("device", "mount", "gp3", folder, "--direct-io", "--fail", "eio:operation=write,after=1")
    try:
        with (folder / "a").open("wb", buffering=0) as file:
            file.write(b"x" * 10)
            with pytest.raises(OSError, match="Input/output error"):
                file.write(b"y" * 20)
        rows = json.loads(dbdyno("device", "status", folder, "--faults", "--format", "json").stdout)
        assert [(row["kind"], row["file"], row["offset_bytes"], row["bytes"]) for row in rows] == [("eio", "a", 10, 20)]
    finally:
        dbdyno("device", "unmount", folder)


def test_the_way_of_requests_is_said_whatever_the_kernel_has(tmp_path: Path):
    switch = tmp_path / "enable_uring"
    state = cast(DeviceStatus, {"polls": False, "transport": "read"})
    assert "this kernel has no FUSE over io_uring" in transport(state, switch)
    switch.write_text("N\n")
    assert "is off in this kernel" in transport(state, switch)
    switch.write_text("Y\n")
    assert "is on in this kernel" in transport(state, switch)
    assert transport(cast(DeviceStatus, {"polls": True, "transport": "ring"})) == "polls for requests, over io_uring"
