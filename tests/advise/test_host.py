"""A Linux host described by /sys and /proc, which are folders of the test: what is read, and which rules fire."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import dbdyno, succeeded
from dbdyno.advise.facts import Facts
from dbdyno.advise.host.parts import Device, Kernel, Mount
from dbdyno.advise.host.read import read
from dbdyno.advise.judge import judge, rules
from dbdyno.base.errors import AdviceError
from dbdyno.base.json_types import JsonObject

STAT = "90000 0 8000000 1 10000 0 4000000 1 0 1000000 {weighted}"
HOST = {
    "proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nOdd: x kB\n",
    "proc/uptime": "1000.00 1.0",
    "proc/vmstat": "pswpin 10\ncompact_stall 10\nzone_reclaim_failed 0\n",
    "proc/mounts": "/dev/sda1 / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n",
    "proc/sys/vm/dirty_ratio": "20\n",
    "proc/sys/vm/dirty_bytes": "67108864",
    "proc/sys/vm/swappiness": "60",
    "proc/sys/vm/zone_reclaim_mode": "0",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/devices/system/node/node0/x": "",
    "sys/devices/system/node/node1/x": "",
    "sys/block/sda/stat": STAT.format(weighted=2_000_000),
    "sys/block/sda/sda1/x": "",
    "sys/block/sda/queue/scheduler": "none [mq-deadline] bfq",
    "sys/block/sda/queue/nr_requests": "64",
    "sys/block/sda/queue/read_ahead_kb": "128",
    "sys/block/sda/queue/write_cache": "write back",
    "sys/block/sda/queue/rotational": "0",
    "sys/block/sda/device/queue_depth": "32",
    "sys/block/loop0/stat": "0 0 0 0 0 0 0 0 0 0 0",
}


def host(tmp_path: Path, **more: str | None) -> Facts:
    """Return the host with other files; `__` in a name stands for a slash, and None removes the file."""
    files = {**HOST, **{name.replace("__", "/"): text for name, text in more.items()}}
    for name, text in files.items():
        if text is not None:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    return read(tmp_path)


def found(facts: Facts) -> dict[str, JsonObject]:
    return {one["rule"]: one for one in judge(facts, rules())["findings"]}


def test_what_is_read(tmp_path: Path) -> None:
    facts = host(tmp_path)
    (device,) = facts.rows_of(Device)
    assert (device.name, device.scheduler, device.limit, device.is_rotational) == ("sda", "mq-deadline", 32, False)
    assert device.under_way == 2 and device.written_bytes == 4_000_000 * 512
    kernel = facts.row_of(Kernel)
    assert kernel.nodes == 2 and kernel.values["/proc/meminfo:MemAvailable"] == 32 * 1024**3
    assert [one.device for one in facts.rows_of(Mount)] == ["sda"]


def test_a_host_without_evidence_gets_no_advice(tmp_path: Path) -> None:
    assert found(host(tmp_path)) == {}


def test_a_queue_that_was_full_while_busy(tmp_path: Path) -> None:
    one = found(host(tmp_path, sys__block__sda__stat=STAT.format(weighted=30_000_000)))["device_queue"]
    assert "30 requests" in one["sentence"] and one["fix"] == ["echo 64 > /sys/block/sda/device/queue_depth"]
    assert {each["what"]: each["value"] for each in one["evidence"]}["time of a request"] == pytest.approx(0.3e9)


def test_the_smaller_limit_counts_and_without_a_depth_it_is_nr_requests(tmp_path: Path) -> None:
    more = {"sys__block__sda__device__queue_depth": None}
    assert "device_queue" not in found(host(tmp_path, sys__block__sda__stat=STAT.format(weighted=30_000_000), **more))


def test_dirty_pages_that_take_long_at_the_rate_seen(tmp_path: Path) -> None:
    one = found(host(tmp_path, proc__sys__vm__dirty_bytes="0"))["dirty_pages"]
    limit, rate = (each["value"] for each in one["evidence"])
    assert limit == 32 * 1024**3 * 20 // 100 and rate == pytest.approx(4_000_000 * 512 / 1000)


def test_pages_swapped_in_and_swappiness_alone_is_nothing(tmp_path: Path) -> None:
    one = found(host(tmp_path, proc__vmstat="pswpin 5000\n"))["swapping"]
    assert one["sentence"].startswith("5 pages a second")


def test_huge_pages_need_both_the_setting_and_the_stalls(tmp_path: Path) -> None:
    always = {"sys__kernel__mm__transparent_hugepage__enabled": "[always] madvise never"}
    assert "compaction" not in found(host(tmp_path, **always))
    assert "compaction" in found(host(tmp_path, proc__vmstat="compact_stall 5000\n", **always))
    assert "compaction" not in found(
        host(tmp_path, proc__vmstat="compact_stall 5000\n", sys__kernel__mm__transparent_hugepage__enabled="[never]")
    )


def test_reclaim_of_a_node_needs_mode_nodes_and_counts(tmp_path: Path) -> None:
    on = {"proc__sys__vm__zone_reclaim_mode": "1"}
    assert "zone_reclaim" not in found(host(tmp_path, **on))
    assert "zone_reclaim" in found(host(tmp_path, proc__vmstat="zone_reclaim_failed 7\n", **on))


@pytest.mark.parametrize(("cache", "fired"), [("write back", True), ("write through", False)])
def test_no_barriers_matter_on_a_volatile_cache_only(tmp_path: Path, cache: str, fired: bool) -> None:
    mounts = "/dev/mapper/vg-data /my\\040disk xfs rw,nobarrier 0 0\n"
    more = {"sys__block__dm-0__dm__name": "vg-data", "sys__block__dm-0__stat": STAT.format(weighted=1)}
    model = found(host(tmp_path, proc__mounts=mounts, **{"sys__block__dm-0__queue__write_cache": cache}, **more))
    assert ("barriers" in model) is fired
    if fired:
        assert model["barriers"]["level"] == "critical" and model["barriers"]["subject"] == "/my disk"


def test_files_that_are_not_there_are_left_out_and_rules_say_so(tmp_path: Path) -> None:
    for name in ("proc/meminfo", "sys/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    model = judge(read(tmp_path), rules())
    assert model["findings"] == [] and {"swapping", "dirty_pages"} <= {one["rule"] for one in model["not_judged"]}


def test_a_folder_that_is_no_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AdviceError, match="Linux host"):
        read(tmp_path)


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="no /proc of Linux here")
def test_this_host_can_be_read() -> None:
    done = succeeded("advise", "host", "--format", "json")
    model = json.loads(done.stdout)
    assert any(one["what"].endswith("swappiness") for one in model["host"]) and model["facts"]["what"] == "host"
    assert "The host" in dbdyno("advise", "host").stdout
