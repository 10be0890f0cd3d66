"""Block traces and fio's JSON: parsing, replay on devices, and device fits that recognise known devices."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from command_line import succeeded
from dbdyno.base.errors import DeviceError
from dbdyno.device.block_trace import BlockTrace, read_block_trace
from dbdyno.device.catalogue import device_of
from dbdyno.device.fio import read_fio_json
from dbdyno.device.fit import fit_jobs, fit_trace
from dbdyno.device.replay import largest_gap, largest_outstanding, replayed_ns

BLKPARSE = """\
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000010000   697  D   W 223490 + 8 [kjournald]
  8,0    1        3     0.000510000     0  C   W 223490 + 8 [0]
  8,0    3        4     0.001000000   700  D  RA 8 + 16 [postgres]
  8,0    3        5     0.001100000   700  D  FN [postgres]
  8,0    1        6     0.001300000     0  C  RA 8 + 16 [0]
  8,0    3        7     0.002000000   700  D   R 99 + 8 [postgres]
CPU3 (8,0):
 Reads Queued:           2,       12KiB
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.txt"
    path.write_text(text)
    return path


def test_blkparse_has_what_was_issued_and_completed(tmp_path: Path) -> None:
    trace = read_block_trace(written(tmp_path, BLKPARSE))
    assert trace.form == "blkparse"
    assert trace.arrived_ns.tolist() == [0, 990_000]
    assert trace.is_read.tolist() == [False, True]
    assert trace.offset_bytes.tolist() == [223490 * 512, 8 * 512]
    assert trace.size_bytes.tolist() == [4096, 8192]
    assert trace.response_ns is not None
    assert trace.response_ns.tolist() == [500_000, 300_000]
    assert trace.notes == ("1 requests never end in the trace; they are left out.",)


def test_the_kernels_own_tracer_has_the_lines_of_blkparse_without_numbers(tmp_path: Path) -> None:
    lines = BLKPARSE.splitlines()[:7]
    own = "\n".join(line[:14] + line[23:] for line in lines)
    head = "# tracer: blk\n#\n# DEV   CPU TIMESTAMP     PID ACT FLG\n#  |     |     |           |   |   |\n"
    trace, other = (read_block_trace(written(tmp_path, text)) for text in (own, BLKPARSE))
    assert trace.arrived_ns.tolist() == other.arrived_ns.tolist()
    trace = read_block_trace(written(tmp_path, head + own))
    assert trace.form == "kernel block tracer"
    assert trace.response_ns is not None
    assert trace.response_ns.tolist() == [500_000, 300_000]


@pytest.mark.soak
def test_a_trace_of_this_kernel_has_what_fio_counted(tmp_path: Path) -> None:
    tracing, fio = Path("/sys/kernel/tracing"), shutil.which("fio")
    tracers = tracing / "available_tracers"
    if os.geteuid() != 0 or fio is None or not tracers.exists() or "blk" not in tracers.read_text().split():
        pytest.skip("needs root, fio, and a kernel with the blk tracer; mount -t tracefs none /sys/kernel/tracing")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    loop = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True).stdout.strip()
    switch = Path("/sys/block") / Path(loop).name / "trace/enable"
    try:
        (tracing / "options/blk_classic").write_text("1")
        (tracing / "trace").write_text("")
        switch.write_text("1")
        (tracing / "current_tracer").write_text("blk")
        options = [
            "--name=r",
            "--rw=randrw",
            "--bs=4k",
            "--direct=1",
            "--ioengine=psync",
            "--number_ios=500",
            "--size=32m",
        ]
        command = [fio, *options, f"--filename={loop}", "--output-format=json"]
        (job,) = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["jobs"]
        text = (tracing / "trace").read_text()
    finally:
        (tracing / "current_tracer").write_text("nop")
        switch.write_text("0")
        (tracing / "options/blk_classic").write_text("0")
        subprocess.run(["losetup", "-d", loop], check=True)
    trace = read_block_trace(written(tmp_path, text))
    counts = [int(np.sum(trace.is_read)), int(np.sum(~trace.is_read))]
    assert counts == [job["read"]["total_ios"], job["write"]["total_ios"]]
    assert trace.response_ns is not None
    assert 0 < np.mean(trace.response_ns) < max(job[kind]["clat_ns"]["mean"] for kind in ("read", "write"))


def test_an_iolog_has_its_waits_in_version_2_and_its_times_in_version_3(tmp_path: Path) -> None:
    two = "fio version 2 iolog\nf add\nf open\nf write 0 512\nf wait 250\nf read 4096 8192\nf datasync 0 0\nf close\n"
    three = (
        "fio version 3 iolog\n1 f add\n2 f open\n9 f write 0 512\n259 f read 4096 8192\n300 f datasync\n400 f close\n"
    )
    for text in (two, three):
        trace = read_block_trace(written(tmp_path, text))
        assert trace.form == "fio iolog"
        assert trace.arrived_ns.tolist() == [0, 250_000]
        assert trace.size_bytes.tolist() == [512, 8192]
        assert trace.response_ns is None
        assert trace.notes == ("1 flushes and discards take no time on these devices; they are left out.",)


def test_msr_has_units_of_100_ns(tmp_path: Path) -> None:
    text = "128166372003061629,hm,1,Read,383496192,32768,113736\n128166372016382155,hm,1,Write,2822144000,65536,1634\n"
    for head in ("", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n"):
        trace = read_block_trace(written(tmp_path, head + text))
        assert trace.arrived_ns.tolist() == [0, 1_332_052_600]
        assert trace.response_ns is not None
        assert trace.response_ns.tolist() == [11_373_600, 163_400]


def test_a_latency_log_says_that_its_arrivals_are_coarse(tmp_path: Path) -> None:
    trace = read_block_trace(written(tmp_path, "5, 1000000, 0, 4096, 0, 0\n9, 2000000, 1, 512, 8192, 0\n"))
    assert trace.arrived_ns.tolist() == [0, 3_000_000]
    assert trace.offset_bytes.tolist() == [0, 8192]
    assert trace.notes == ("Arrivals are known only to the millisecond, so it is not known which requests overlapped.",)


def test_a_cut_last_line_is_told_and_another_bad_line_is_an_error(tmp_path: Path) -> None:
    lines = [f"{128166372003061629 + at},hm,1,Read,0,4096,100\n" for at in range(60)]
    cut = read_block_trace(written(tmp_path, "".join(lines) + "1281663720"))
    assert (len(cut), cut.notes) == (60, ("Line 61, the last one, is cut off; it is left out.",))
    for at in (3, 50):
        bad = [*lines[:at], "128166372003061629,hm,1,Erase,0,4096,100\n", *lines[at:]]
        with pytest.raises(DeviceError, match="the line cannot be read: '128166372003061629,hm,1,Erase") as raised:
            read_block_trace(written(tmp_path, "".join(bad)))
        assert str(raised.value.where).endswith(f"trace.txt:{at + 1}")


@pytest.mark.parametrize(
    "row",
    ["128166372003061629,hm,1,Read,-1,4096,1", "1281663720030616,hm,1,Read,0,0,1", f"{10**30},hm,1,Read,{2**64},1,1"],
)
def test_numbers_that_no_request_has_are_refused(tmp_path: Path, row: str) -> None:
    with pytest.raises(DeviceError):
        read_block_trace(written(tmp_path, row + "\n"))


@pytest.mark.parametrize("text", ["", "hello\n", '{"jobs": []}', "fio version 3 iolog\n1 f add\n", "\x00\xff\n" * 90])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DeviceError):
        read_block_trace(written(tmp_path, text))


def test_damaged_traces_are_read_or_refused_but_never_break(tmp_path: Path) -> None:
    seed = random.randrange(10**9)
    print("seed", seed)
    dice = random.Random(seed)
    good = [BLKPARSE, "fio version 3 iolog\n1 f add\n9 f write 0 512\n259 f read 4096 8192\n"]
    for _ in range(300):
        text = list(dice.choice(good))
        for _ in range(dice.randint(1, 6)):
            text[dice.randrange(len(text))] = dice.choice("0 9+,.\nRWDC-x\x00é")
        try:
            trace = read_block_trace(written(tmp_path, "".join(text)))
            assert len(trace) > 0
        except DeviceError as error:
            assert error.message


def made(us: float, servers: int, *, sigma: float = 0.4) -> str:
    times = f'{{ kind = "lognormal", median_us = {us}, sigma = {sigma} }}'
    return (
        f'title = "known"\n[devices.d]\nkind = "empirical"\ncapacity_gb = 10.0\nservers = {servers}\n'
        f'regimes = [{{ read = {times}, write = {times} }}]\n[storage]\nredo = "d"\ndata = "d"\n'
    )


def traced(toml: str, *, us_between: float, count: int = 20_000, seed: int = 5) -> BlockTrace:
    """Return a trace of requests at random times, with the response times of a known device."""
    rng = np.random.default_rng(seed)
    arrived = np.cumsum(rng.exponential(us_between * 1e3, count)).astype(np.int64)
    offsets, sizes = rng.integers(0, 10**9, count), np.full(count, 4096)
    trace = BlockTrace("MSR CSV", arrived - arrived[0], rng.random(count) < 0.7, offsets, sizes, None)
    found = replayed_ns(trace, toml, (), seed=1)
    return BlockTrace("MSR CSV", trace.arrived_ns, trace.is_read, offsets, sizes, found)


@pytest.mark.parametrize(("servers", "us_between"), [(1, 250.0), (4, 60.0), (16, 14.0)])
def test_a_known_device_is_found_again(tmp_path: Path, servers: int, us_between: float) -> None:
    page = fit_trace(traced(made(100.0, servers), us_between=us_between), name="d", title="t", capacity_gb=10.0, seed=2)
    assert page["servers"] == servers
    for row in page["rows"]:
        if row["figure"] in ("p50", "p90"):
            assert row["error"] == pytest.approx(0, abs=0.1), row
    assert page["gap"] is not None
    assert page["gap"] < 0.1


def test_too_few_requests_or_none_with_times_are_refused() -> None:
    few = traced(made(100.0, 1), us_between=200.0, count=300)
    with pytest.raises(DeviceError, match="300 requests are too few"):
        fit_trace(few, name="d", title="t", capacity_gb=1.0)
    with pytest.raises(DeviceError, match="has no response times"):
        fit_trace(few.faster(2.0), name="d", title="t", capacity_gb=1.0)


def test_a_trace_without_overlaps_does_not_say_how_many_are_served_at_once() -> None:
    apart = traced(made(100.0, 4), us_between=1e9, count=1_000)
    page = fit_trace(apart, name="d", title="t", capacity_gb=1.0)
    assert page["servers"] == 1
    assert "No two requests were under way at once" in page["sentences"][0]


def fio_json(jobs: list[tuple[str, int, float, float]]) -> str:
    """Return JSON as fio writes it, from name, depth, reads per second and mean latency [us] of each job."""

    def part(iops: float, us: float) -> dict[str, object]:
        percentile = {f"{p:.6f}": us * 1e3 * (0.5 + p / 100) for p in (1, 50, 99)}
        times = {"min": us * 400, "max": us * 2000, "mean": us * 1e3, "percentile": percentile}
        return {"total_ios": round(iops * 10), "iops": iops, "clat_ns": times}

    entries = [
        {"jobname": name, "job options": {"iodepth": str(depth)}, "read": part(iops, us), "write": {"total_ios": 0}}
        for name, depth, iops, us in jobs
    ]
    return json.dumps({"fio version": "fio-3.33", "jobs": entries})


def test_servers_follow_from_throughput_times_service_time(tmp_path: Path) -> None:
    path = written(tmp_path, fio_json([("d1", 1, 10_000, 100.0), ("d4", 4, 39_000, 102.0), ("d32", 32, 80_000, 400.0)]))
    page = fit_jobs(read_fio_json(path), name="d", title="t", capacity_gb=1.0)
    assert page["servers"] == 8
    assert {row["job"]: round(row["modelled_iops"]) for row in page["jobs"]} == {
        "d1": 10_000,
        "d4": 40_000,
        "d32": 80_000,
    }
    assert "d4 (read) has the largest error: +3%" in " ".join(page["sentences"])


def test_a_fit_to_one_depth_says_what_was_not_measured(tmp_path: Path) -> None:
    path = written(tmp_path, fio_json([("d1", 1, 10_000, 100.0)]))
    sentences = " ".join(fit_jobs(read_fio_json(path), name="d", title="t", capacity_gb=1.0)["sentences"])
    assert "how many requests the device serves at once was not measured" in sentences
    assert "so its error cannot be measured" in sentences


@pytest.mark.parametrize("text", ["{", '{"jobs": 3}', '{"jobs": [{}]}', '{"a": 1}'])
def test_json_that_is_not_of_fio_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DeviceError, match="is not JSON output of fio"):
        read_fio_json(written(tmp_path, text))


def test_figures_of_samples() -> None:
    assert largest_gap(np.array([1, 2, 3, 4]), np.array([3, 4, 5, 6])) == pytest.approx(0.5)
    assert largest_outstanding(np.array([0, 1, 5]), np.array([5, 3, 9])) == 2


def test_fit_mount_and_replay_as_a_user_would(tmp_path: Path, html_page: None) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed; make setup-test")
    job = ["--filename", str(tmp_path / "file"), "--size=8m", "--bs=4k", "--runtime=1", "--time_based", "--rw=randread"]
    output = ["--output-format=json+", f"--output={tmp_path / 'fio.json'}", f"--write_iolog={tmp_path / 'io.log'}"]
    subprocess.run(["fio", "--name=d1", *job, *output], check=True, capture_output=True, timeout=60)
    succeeded("device", "fit", tmp_path / "fio.json", "-o", tmp_path / "mine.toml")
    assert device_of(str(tmp_path / "mine.toml")).machine.title == "fitted to fio.json"
    words = ("model", "replay", tmp_path / "io.log", "--device", tmp_path / "mine.toml", "--json")
    replayed = succeeded(*words)
    page = json.loads(replayed.stdout)
    assert page["requests"] > 100
    assert page["seconds"] == pytest.approx(1.0, abs=0.3)
    succeeded("model", "replay", tmp_path / "io.log", "--device", "gp3", "--set", "iops=100", "-o", tmp_path / "a.html")
    assert "gp3 does not keep up" in (tmp_path / "a.html").read_text()
