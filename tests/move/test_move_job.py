"""Tests of jobs: a job survives any kill, and its records, files and report agree."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from move_lab import ROWS, Lab, started

from command_line import dbdyno, succeeded
from dbdyno.base.json_types import JsonObject
from dbdyno.move.ledger.folder import Ledger
from fresh_dice import fresh_dice
from together import together
from waiting import until


def begun(lab: Lab, *words: str) -> BaseProcess:
    """Start a job that moves the table in small pieces."""
    return started(lab.dsn, "--table", "t", "--piece", "32KiB", "--to", lab.out, *words)


def wait_for(process: BaseProcess, lab: Lab, chunks: int) -> bool:
    """Wait until this number of chunks is finished; return False if the job ends before."""
    while len(list((lab.out / "_dbdyno" / "chunks").glob("0*.json"))) < chunks:
        if not process.is_alive():
            return False
        time.sleep(0.002)
    return True


def whole(lab: Lab) -> None:
    """Check that source and files are equal and that the job reports it."""
    assert lab.files("count(*), count(distinct id), sum(id), count(distinct x)") == [
        (ROWS, ROWS, ROWS * (ROWS + 1) // 2, ROWS)
    ]
    assert not list(lab.out.glob(".part*"))
    verified = succeeded("move", "verify", lab.out)
    assert "read again, hold exactly those rows" in verified.stdout


def killed_and_resumed(lab: Lab, rng: random.Random, turn: int) -> None:
    """Kill a job shortly after a number of chunks is finished, then resume it in a random way."""
    lab.out = lab.folder / f"out{turn}"
    process = begun(lab, "--rate-limit", "4MB/s")
    reached = wait_for(process, lab, rng.randrange(40))
    time.sleep(rng.random() * 0.02)
    process.kill()
    process.join()
    if not (lab.out / "_dbdyno" / "manifest.json").exists():
        shutil.rmtree(lab.out, ignore_errors=True)
        lab.moved("--table", "t")
    elif json.loads((lab.out / "_dbdyno" / "manifest.json").read_bytes())["status"] == "running":
        before = {place.name: place.stat().st_mtime_ns for place in lab.out.glob("part*")}
        finished = len(list((lab.out / "_dbdyno" / "chunks").glob("0*.json")))
        way = rng.choice(["--restart", "--as-of-now"])
        succeeded("move", "resume", lab.out, "--source", lab.dsn, way)
        kept = sum(place.stat().st_mtime_ns == before.get(place.name) for place in lab.out.glob("part*"))
        assert kept >= finished if way == "--as-of-now" else kept == 0 or finished == 0, "nothing finished is repeated"
    else:
        assert not reached or process.exitcode is not None
    whole(lab)


@pytest.mark.parametrize("kills", [4, pytest.param(500, marks=pytest.mark.soak)])
def test_a_kill_at_any_instant_loses_nothing_and_doubles_nothing(table: Lab, kills: int) -> None:
    rng = fresh_dice()
    for turn in range(kills):
        killed_and_resumed(table, rng, turn)
        shutil.rmtree(table.out)


def end_from_the_server(lab: Lab) -> None:
    """End the job with the statement that its first line prints."""
    name = "dbdyno move " + json.loads((lab.out / "_dbdyno" / "manifest.json").read_bytes())["plan"]["id"]
    lab.run(f"select pg_terminate_backend(pid) from pg_stat_activity where application_name = '{name}'")


def stopped(lab: Lab) -> None:
    """Run a job whose sessions the server ends after some chunks."""
    process = begun(lab, "--rate-limit", "1MB/s")
    assert wait_for(process, lab, 3)
    end_from_the_server(lab)
    process.join()
    assert process.exitcode == 2


def test_the_rate_is_kept_also_by_small_chunks(table: Lab) -> None:
    begun_s = time.monotonic()
    table.moved("--table", "t", "--piece", "32KiB", "--rate-limit", "2MB/s")
    copied = sum(record["copy_bytes"] for record in Ledger.open(table.out).records().values())
    assert time.monotonic() - begun_s > copied / 2e6 * 0.9


def test_without_its_snapshot_a_job_asks_before_it_goes_on(table: Lab) -> None:
    stopped(table)
    status = dbdyno("move", "status", table.out)
    assert "ended before it was complete; next: dbdyno move resume" in status.stdout
    asked = dbdyno("move", "resume", table.out, "--source", table.dsn)
    assert asked.returncode == 2
    assert "ended with the process that held it" in asked.stderr
    assert "--restart" in asked.stderr
    incomplete = dbdyno("move", "verify", table.out)
    assert incomplete.returncode == 1
    assert "chunks are not finished" in incomplete.stdout
    now = succeeded("move", "resume", table.out, "--source", table.dsn, "--as-of-now")
    assert "NOT one instant" in now.stdout
    whole(table)
    again = dbdyno("move", "resume", table.out, "--source", table.dsn)
    assert (again.returncode, "the job is complete" in again.stderr) == (2, True)


@pytest.mark.parametrize("way", ["killed", "thrown out"])
def test_a_snapshot_that_is_held_makes_resume_exact(table: Lab, way: str) -> None:
    """Every row is changed after the job ended; the resumed job still reads the instant at which it began."""
    process = begun(table, "--rate-limit", "100KB/s", "--hold", "600")
    assert wait_for(process, table, 3)
    if way == "killed":
        process.kill()
    else:
        end_from_the_server(table)
    process.join(120)
    assert process.exitcode == (-signal.SIGKILL if way == "killed" else 2), "it waits for nobody"
    table.run("update t set id = -id", "delete from t where id = -5", "insert into t select 0, 'new'")
    done = succeeded("move", "resume", table.out, "--source", table.dsn, "--verify", "source")
    assert "is still held: the job continues as of that instant" in done.stderr
    assert "All as of one instant" in done.stdout
    assert "the source, read again in the same snapshot, gave the same rows" in done.stdout
    whole(table)


def test_a_table_that_was_rewritten_is_not_finished_as_of_now(table: Lab) -> None:
    stopped(table)
    table.run("vacuum full t")
    now = dbdyno("move", "resume", table.out, "--source", table.dsn, "--as-of-now")
    assert now.returncode == 2
    assert "was rewritten or altered" in now.stderr
    anew = succeeded("move", "resume", table.out, "--source", table.dsn, "--restart", "--verify", "source")
    assert "All as of one instant" in anew.stdout
    whole(table)


def test_an_aborted_job_leaves_no_rows(table: Lab) -> None:
    stopped(table)
    assert dbdyno("move", "abort", table.out).returncode == 0
    assert not list(table.out.glob("*part*"))
    assert "aborted" in dbdyno("move", "status", table.out).stdout
    refused = dbdyno("move", "resume", table.out, "--source", table.dsn)
    assert (refused.returncode, "the job is aborted" in refused.stderr) == (2, True)


def test_a_file_that_was_altered_is_found(table: Lab) -> None:
    table.moved("--table", "t", "--piece", "256KiB")
    place, other = sorted(table.out.glob("part*"))[:2]
    shutil.copy(other, place)
    found = dbdyno("move", "verify", table.out)
    assert found.returncode == 1
    assert f"DIFFERS: {place.name}" in found.stdout
    place.write_bytes(place.read_bytes()[:-100])
    assert dbdyno("move", "verify", table.out).returncode == 1
    place.unlink()
    assert "chunks are not finished, or their files are gone" in dbdyno("move", "verify", table.out).stdout


def test_a_plan_that_somebody_else_made_is_not_carried_out(table: Lab) -> None:
    stopped(table)
    place = table.out / "_dbdyno" / "manifest.json"
    manifest: JsonObject = json.loads(place.read_bytes())
    manifest["plan"]["tables"][0]["where"] = "pg_sleep(9) is not null"
    place.write_text(json.dumps(manifest))
    for words in (("resume", table.out, "--source", table.dsn, "--restart"), ("abort", table.out)):
        refused = dbdyno("move", *words)
        assert refused.returncode == 2
        assert "the job's plan was not made by this user" in refused.stderr
    manifest["plan"]["chunks"][0]["file"] = "../x.parquet"
    place.write_text(json.dumps(manifest))
    assert "names a file outside of its folder" in dbdyno("move", "verify", table.out).stderr


def test_one_job_per_folder_and_one_process_per_job(table: Lab) -> None:
    command = [sys.executable, "-m", "dbdyno", "move", table.dsn, "--table", "t", "--piece", "32KiB"]
    process = subprocess.Popen(
        [*command, "--rate-limit", "100KB/s", "--to", str(table.out)], stderr=subprocess.PIPE, text=True
    )
    while not list(table.out.glob("part*")):
        assert process.poll() is None
        time.sleep(0.002)
    busy = dbdyno("move", "abort", table.out)
    assert (busy.returncode, "another process is working on this job" in busy.stderr) == (2, True)
    taken = table.move("--table", "t")
    assert (taken.returncode, "already contains a job" in taken.stderr) == (2, True)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert f"interrupted: finished chunks are kept; next: `dbdyno move resume {table.out} --source" in said
    with contextlib.suppress(OSError):
        assert not list(table.out.glob(".part*")), "an interrupted job leaves nothing aside"


def test_a_full_disk_is_one_clear_error(table: Lab, tmp_path: Path) -> None:
    """A limit on the size of files acts as a full disk: the error is reported, no incomplete file keeps its name."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "from dbdyno.entry import entry; sys.argv[0] = 'dbdyno'; entry()"
    )
    words = ["move", table.dsn, "--table", "t", "--to", str(table.out), "--workers", "1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert "dbdyno move resume" in done.stderr
    assert not list(table.out.glob("*part*"))


def test_a_lost_snapshot_names_the_whole_command_that_goes_on(lab: Lab) -> None:
    """Regression: the error named `dbdyno move resume` without the job."""
    lab.run("create table t as select g id, md5(g::text) x from generate_series(1, 30000) g")
    ended: list[bool] = []

    def end() -> None:
        until(lambda: list((lab.out / "_dbdyno" / "chunks").glob("*.json")), 60, pause_s=0.01)
        lab.run("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'dbdyno move%'")
        ended.append(True)

    with together(end):
        done = lab.move("--table", "t", "--piece", "64KiB", "--rate-limit", "500KB/s")
    assert (done.returncode, ended) == (2, [True]), done.stderr
    assert f"`dbdyno move resume {lab.out} --source DSN`" in done.stderr
