"""`dbdyno probe` as users see it: evidence, report, refused requests, and the files that remain."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno import _core
from dbdyno.base.errors import PlanError
from dbdyno.bench.host.probe import LogArm
from dbdyno.evidence.run import find_run
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.library import find_study
from dbdyno.study.plan.plan import Plan
from waiting import until

Command = Callable[..., subprocess.CompletedProcess[str]]
SMALL = ("--file-size", "4MiB", "--sync", "dsync")


def rows(dbdyno: Command, sql: str) -> list[dict[str, object]]:
    done = dbdyno("sql", sql, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def carried_out(done: subprocess.CompletedProcess[str]) -> bool:
    """Return True if a finished probe gave a number. On a busy machine with an unsteady disk a gate withholds it, with
    exit code 1; the evidence is complete in both cases.
    """
    assert done.returncode in (0, 1), done.stderr
    words = done.stdout.splitlines()[1]
    assert words.startswith(
        "NO VERDICT" if done.returncode else ("MEASURED", "FASTER", "SLOWER", "CANNOT", "NO DIFFERENCE", "PROVISIONAL")
    )
    return done.returncode == 0


def test_a_probe_leaves_evidence_a_report_and_no_file(dbdyno: Command, tmp_path: Path, html_page: None) -> None:
    done = dbdyno("probe", "redo", "redo.log", "--commits", "400", "--sessions", "4", *SMALL)
    if carried_out(done):
        assert done.stdout.splitlines()[1].startswith("MEASURED  A commit takes ")
        assert "The probe itself costs" in done.stdout
    assert not (tmp_path / "redo.log").exists()
    run = find_run("last", tmp_path / "runs")
    html = (run.path / "report.html").read_text()
    assert "The log and its paths" in html
    assert "redo.log" in html


def test_every_commit_is_in_the_evidence_with_its_wait(dbdyno: Command) -> None:
    done = dbdyno("probe", "redo", "redo.log", "--commits", "400", "--sessions", "4", "--size", "512,4KiB", *SMALL)
    carried_out(done)
    calls = rows(
        dbdyno,
        "select calls.kind, count(*) as n, sum(redo_bytes) as redo from calls"
        " join slices using (block, slice) where counts group by all order by 1",
    )
    assert [(row["kind"], row["n"]) for row in calls] == [("commit", 400), ("transaction", 400)]
    waits = rows(
        dbdyno,
        "select event, object, count(*) as n, min(elapsed_ns) as least, any_value(fidelity) as f"
        " from waits where block > 0 group by all order by event desc, object",
    )
    found = {(row["event"], row["object"]): row for row in waits}
    assert found["log file sync", "session"]["n"] == 400
    writes = found["log file parallel write", "lgwr"]["n"]
    assert writes == found["log file parallel write", "first path"]["n"]
    assert all(row["f"] == "exact" and row["least"] > 0 for row in waits)
    # A session waits for its commit: calls and waits tell the same times.
    apart = rows(
        dbdyno,
        "select count(*) as n from calls c join waits w on w.event ="
        " 'log file sync' and w.session = c.session and w.started_ns = c.started_ns"
        " and w.elapsed_ns = c.elapsed_ns where c.kind = 'commit' and c.block > 0",
    )
    assert apart[0]["n"] == 400


def test_the_counters_of_a_race_add_up(dbdyno: Command, tmp_path: Path) -> None:
    done = dbdyno("probe", "redo", "one", "two", "--race", "--commits", "500", *SMALL)
    carried_out(done)
    assert "outliers prevented" in done.stdout, "also where the verdict is withheld"
    (log,) = analyse(find_run("last", tmp_path / "runs"))["logs"]
    race = log["race"]
    assert race["first"] + race["second"] == race["races"]
    assert race["races"] + race["skipped_busy"] == log["writes"]
    assert log["commits"] == 500
    assert log["paths"][0]["writes"] == log["writes"]
    assert "both paths of race are on" in done.stdout


def test_two_runs_are_laid_side_by_side(dbdyno: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = dbdyno("probe", "redo", name, "--commits", "200", "--out", name + "-runs", *SMALL)
        carried_out(done)
    first, second = (next((tmp_path / f"{name}-runs").iterdir()) for name in ("a", "b"))
    done = dbdyno("compare", first, second)
    assert done.returncode in (0, 1), done.stderr
    assert "in mean latency" in done.stdout or "mean latency" in done.stdout
    carried_out(dbdyno("compare", first))
    assert dbdyno("stats", "summary", f"{first}:calls").returncode == 0


def test_a_kept_log_is_recovered(dbdyno: Command) -> None:
    done = dbdyno("probe", "redo", "one", "two", "--commits", "100", "--keep", *SMALL)
    carried_out(done)
    done = dbdyno("probe", "recover", "one", "two")
    assert done.returncode == 0, done.stderr
    # 100 commits that count and as many as a block to warm up.
    assert "Recovered: writes 1 to 105, 105 commits." in done.stdout
    found = json.loads(dbdyno("probe", "recover", "one", "--format", "json").stdout)
    assert found[0]["writes"] == 105


def test_an_open_loop_counts_from_the_intended_moment(dbdyno: Command, tmp_path: Path) -> None:
    done = dbdyno(
        "probe",
        "redo",
        "log",
        "--rate",
        "500",
        "--sessions",
        "50",
        "--for",
        "1s",
        "--file-size",
        "4MiB",
        "--sync",
        "dsync",
    )
    assert done.returncode in (0, 1), done.stderr
    found = rows(
        dbdyno,
        "select count(*) as n, count(intended_ns) as meant,"
        " min(started_ns - intended_ns) as early from calls"
        " where kind = 'transaction' and block > 0",
    )[0]
    # Poisson with mean 500: four standard deviations and a little for the ends of blocks.
    assert 390 <= int(str(found["n"])) <= 610
    assert found["meant"] == found["n"]
    assert found["early"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/dev/null",), "/dev/null: is a device, and the probe would destroy what is on it"),
        (("precious",), "precious: is there already and was not made by the probe"),
        (("no/such/log",), "no/such/log: cannot be made"),
        (("log", "--race"), "--race: a race needs two paths"),
        (("log", "log"), "path: both paths are the same"),
        (("log", "--size", "big"), 'size: "big" is not a size'),
        (("log", "--block-size", "700"), "block size: 700 is not a block size"),
        (("log", "--sync", "never"), 'sync: "never" is not a way to sync'),
        (("log", "--file-size", "900000GiB"), "log: 879 TiB and 16 MiB to spare are needed there"),
        (("log", "--file-size", "8KiB"), "file size: 8192 bytes hold fewer than 4 writes"),
        (("log", "--rate", "5", "--think", "1ms"), "rate: a rate and a think time are given"),
        (("log", "--for", "1s", "--commits", "5"), "--for and --commits exclude each other"),
    ],
)
def test_what_cannot_be_done_is_said_with_the_next_step(
    dbdyno: Command, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "precious").write_text("letters")
    done = dbdyno("probe", "redo", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"dbdyno: {said}"), done.stderr
    assert "next: " in done.stderr
    assert (tmp_path / "precious").read_text() == "letters"
    assert not (tmp_path / "log").exists()
    assert not list((tmp_path / "runs").glob("*"))


def test_direct_io_in_memory_names_the_way_round(dbdyno: Command) -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("no /dev/shm")
    done = dbdyno("probe", "redo", f"/dev/shm/dbdyno-test-{os.getpid()}")
    assert done.returncode == 2
    assert "lies in memory (tmpfs)" in done.stderr
    assert "--sync dsync" in done.stderr


def test_an_interrupted_probe_removes_its_files_and_keeps_whole_blocks(dbdyno: Command, tmp_path: Path) -> None:
    words = ["probe", "redo", "log", "--for", "60s", *SMALL]
    with subprocess.Popen(
        [sys.executable, "-m", "dbdyno", *words],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        until(lambda: list(tmp_path.glob("runs/*/blocks/*.json")), 120, pause_s=0.05)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=120)
    assert child.returncode == 130
    assert "the probe's files are removed" in said
    assert not (tmp_path / "log").exists()
    run = find_run("last", tmp_path / "runs")
    assert run.status == "aborted"
    assert run.blocks()
    done = dbdyno("run", "--resume", "last")
    assert done.returncode == 2
    assert "is a run of a probe, whose files are gone" in done.stderr


def test_flash_log_runs_on_two_paths_with_the_report_of_a_live_run(dbdyno: Command, disk: Path) -> None:
    for name in ("a", "b"):
        (disk / name).mkdir()
    done = dbdyno(
        "run",
        "flash-log",
        "--target",
        "host",
        "--quick",
        "--set",
        "paths=a,b",
        "--set",
        "file_mb=8",
        "--seed",
        "7",
        "--blocks",
        "4",
    )
    carried_out(done)
    assert "flash log on against flash log off" in done.stdout
    assert "outliers prevented" in done.stdout, "also where the verdict is withheld"
    run = find_run("last", disk / "runs")
    model = analyse(run)
    assert model["kind"] == "experiment"
    assert model["run"]["order"] == "randomised ABBA"
    assert [log["race"] is None for log in model["logs"]] == [True, False]
    assert not list((disk / "a").iterdir())
    assert not list((disk / "b").iterdir())


def on_host(study: str, options: dict[str, str]) -> Plan:
    return find_study(study).plan(options, target="host")


def test_the_arms_of_flash_log_differ_by_the_race_alone() -> None:
    arms = on_host("flash-log", {"paths": "/x/a,/x/b"}).arms
    off, on = (LogArm.from_spec({"name": arm.name, **arm.parameters}).spec() for arm in arms)
    differing = {key for key in off if off[key] != on[key]}
    assert differing == {"name", "paths", "rule", "hand_over"}
    assert off["hand_over"], "its writes go through a thread too"
    with pytest.raises(PlanError, match="no factor 'colour'"):
        on_host("flash-log", {"colour": "red"})
    with pytest.raises(PlanError, match="a race needs two paths"):
        on_host("flash-log", {"paths": "/x/a"})
    with pytest.raises(PlanError, match="does not run on this host"):
        on_host("redo-size", {})


def test_a_probe_that_was_not_opened_says_so(tmp_path: Path) -> None:
    spec = {"seed": 1, "arms": [{"name": "a", "paths": [str(tmp_path / "log")]}]}
    probe = _core.Probe(spec, 1)
    with pytest.raises(Exception, match="not open"):
        probe.run(0, [(0, 0, None, 1)])
    assert probe.cost(900)[0]["write_ns"] > 0
    assert not (tmp_path / "log").exists()
