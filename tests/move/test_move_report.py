"""Tests of `dbdyno report JOB`: what a job did, from its folder alone."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from move_lab import ROWS, Lab
from test_move_job import begun, wait_for

from command_line import dbdyno, succeeded
from dbdyno.base.core_types import MoveFinishedChunk
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.ledger.summary import KILLED
from dbdyno.move.loading.pieces import whole_files
from dbdyno.move.reading.progress import ChunkProgress, FileProgress
from dbdyno.report.figures import draw


def report(lab: Lab, *words: object) -> str:
    done = succeeded("report", lab.out, *words)
    return str(done.stdout)


def test_the_report_of_a_job_says_what_was_moved_proved_and_paid(table: Lab) -> None:
    table.moved("--table", "t", "--piece", "128KiB", "--verify", "source")
    text = " ".join(report(table, "--format", "text").split())
    assert "COMPLETE 20,000 rows in " in text
    assert "all as of one instant" in text
    assert "the source, read again in the same snapshot, gave the same rows" in text
    assert "blocks read" in text
    assert "reading " in text
    assert "checking " in text
    assert "pg_terminate_backend" in text
    model = json.loads(report(table, "--format", "json"))
    assert model["totals"]["rows"] == ROWS
    assert sum(one["rows"] for one in model["sessions"]) == ROWS
    assert sum(one["blocks_fetched"] for one in model["sessions"]) > 0
    assert [phase["name"] for phase in model["attempts"][0]["phases"]] == ["reading", "checking"]
    reading = model["attempts"][0]["phases"][0]
    assert all(
        reading["began_ns"] <= one["began_ns"] <= one["ended_ns"] <= reading["ended_ns"] for one in model["chunks"]
    )
    assert report(table, "--format", "csv").count("\n") == len(model["chunks"]) + 1
    assert "Cost to the source" in report(table, "--format", "markdown")
    place = Path(report(table).strip())
    assert place == table.out / "_dbdyno" / "report.html"
    page = place.read_text()
    assert "figure-move_chunks" in page
    assert "Complete" in page
    # The page stands among nothing that a reader of the files would take for one.
    assert table.files("count(*)") == [(ROWS,)]


def test_a_job_that_was_killed_and_resumed_has_both_attempts(table: Lab) -> None:
    process = begun(table, "--rate-limit", "1MB/s")
    assert wait_for(process, table, 3)
    assert process.pid is not None
    running = json.loads(report(table, "--format", "json"))
    assert (running["verdict"]["word"], running["attempts"][0]["ending"]) == ("At work", "at work")
    process.kill()
    process.join()
    cut = json.loads(report(table, "--format", "json"))
    assert (cut["verdict"]["word"], cut["attempts"][0]["ending"]) == ("Not finished", KILLED)
    succeeded("move", "resume", table.out, "--source", table.dsn, "--as-of-now")
    model = json.loads(report(table, "--format", "json"))
    assert [(one["how"], one["ending"]) for one in model["attempts"]] == [
        ("begun", KILLED),
        ("resumed as of now", "done"),
    ]
    assert all(one["chunks"] >= 1 for one in model["attempts"])
    assert sum(one["rows"] for one in model["attempts"]) == ROWS
    assert (model["verdict"]["word"], model["verdict"]["tone"]) == ("Complete", "doubt")
    assert "of 2 instants" in model["verdict"]["headline"]
    drawn = draw("move_chunks", model)
    assert drawn is not None
    panels = drawn.to_dict(validate=False)["vconcat"]
    assert len(panels) == 2
    # What the kill ended has no bar on top, and the instants have colours of their own.
    assert ["phases" in json.dumps(one["encoding"]["y"]) for one in panels] == [False, True]
    assert json.dumps(panels[0]).count("as of 2") >= 2
    assert process.exitcode == -signal.SIGKILL


def test_an_error_that_ended_a_job_is_in_its_report(table: Lab) -> None:
    lab = table
    lab.run("create table u (id int check (id < 9), x text)")
    job = lab.folder / "job"
    refused = dbdyno("move", lab.dsn, "--table", "t", "--into", "u", "--to", lab.dsn, "--job", job)
    assert refused.returncode == 2
    told = succeeded("report", job, "--format", "json")
    model = json.loads(told.stdout)
    (attempt,) = model["attempts"]
    assert [one["name"] for one in attempt["phases"]] == ["reading", "publishing"]
    assert "check constraint" in attempt["ending"]
    assert "dbdyno move resume" in model["verdict"]["headline"]
    assert dbdyno("move", "abort", job).returncode == 0
    given_up = json.loads(dbdyno("report", job, "--format", "json").stdout)["verdict"]
    assert (given_up["word"], "resume" in given_up["headline"]) == ("Aborted", False)


def test_somebody_elses_job_is_read_and_nothing_is_written_there(table: Lab) -> None:
    table.moved("--table", "t")
    place = table.out / "_dbdyno" / "manifest.json"
    manifest = json.loads(place.read_text())
    manifest["plan"]["into"] = {"table": "u", "target": "x", "rejects": "/etc/passwd", "mode": "insert"}
    manifest["plan"]["source"] = "<script>alert(1)</script>"
    place.write_text(json.dumps(manifest))
    done = dbdyno("report", table.out)
    assert (done.returncode, "the job's plan was not made by this user" in done.stderr) == (2, True), done.stderr
    other = table.folder / "page.html"
    assert dbdyno("report", table.out, "-o", other).returncode == 0
    assert "<script>alert" not in other.read_text()
    assert json.loads(report(table, "--format", "json"))["rejects"] is None


def test_what_is_not_as_it_came_is_in_the_first_line(table: Lab) -> None:
    table.moved("--table", "t", "--piece", "128KiB", "--verify", "files")
    (table.out / "part-00001.parquet").unlink()
    verdict = json.loads(report(table, "--format", "json"))["verdict"]
    assert (verdict["word"], verdict["tone"]) == ("Incomplete", "bad")
    assert "the files of 1 are missing" in verdict["headline"]
    lab, job, bad = table, table.folder / "job", table.folder / "bad.jsonl"
    lab.run("create table u (id int check (id <> 7), x varchar(40))")
    words = ("--table", "t", "--into", "u", "--to", lab.dsn, "--job", job, "--rejects", bad)
    assert dbdyno("move", lab.dsn, *words).returncode == 1
    model = json.loads(dbdyno("report", job, "--format", "json").stdout)
    assert (model["verdict"]["tone"], model["verdict"]["headline"].endswith("; 1 row rejected")) == ("doubt", True)
    assert model["rejects"]["rows"][0]["code"] == "23514"
    ledger = Ledger.open(job)
    ledger.manifest["proved"] = ["DIFFERS: chunk 3: other rows"]
    ledger.save()
    assert "DIFFERS  chunk 3: other rows" in dbdyno("report", job, "--format", "text").stdout


def test_a_job_of_an_older_version_has_a_report_without_a_picture(table: Lab) -> None:
    table.moved("--table", "t")
    ledger = Ledger.open(table.out)
    del ledger.manifest["attempts"]
    ledger.save()
    for place in (table.out / "_dbdyno" / "chunks").glob("*.json"):
        record = json.loads(place.read_text())
        del record["ended_ns"]
        place.write_text(json.dumps(record))
    assert "COMPLETE  20,000 rows in " in report(table, "--format", "text")
    assert "figure-move_chunks" not in Path(report(table).strip()).read_text()


def test_where_its_sessions_were_seen_has_the_classes_of_all_engines(table: Lab) -> None:
    table.moved("--table", "t")
    ledger = Ledger.open(table.out)
    seen = {"looks": 4, "waits": {"Client:ClientWrite": 3, "CPU": 1}}
    ledger.manifest["cost"] = [{**ledger.manifest["cost"][0], **seen}]
    ledger.save()
    model = json.loads(report(table, "--format", "json"))
    assert [(one["event"], one["class"], one["share"]) for one in model["waits"]] == [
        ("Client:ClientWrite", "network", 0.75),
        ("CPU", "cpu", 0.25),
    ]


def test_progress_goes_on_within_a_chunk_and_is_never_whole_before_the_end() -> None:
    shown: list[tuple[float, int, int]] = []
    progress = ChunkProgress(lambda *one: shown.append(one), {0: 100, 1: 100, 2: 200}, {0})
    progress.show(60)
    progress.done(_done(1, 50))
    progress.show(75)
    progress.show(900)
    progress.done(_done(2, 100))
    progress.show(150)
    assert shown == [(0.2, 60, 300), (0.5, 75, 150), (0.995, 900, 900), (1.0, 150, 150)]
    shown.clear()
    # Nobody knows the size of a view.
    ChunkProgress(lambda *one: shown.append(one), {0: 0}).show(60)
    assert shown == [(0.0, 60, 0)]


def test_progress_of_a_file_goes_by_its_rows(tmp_path: Path) -> None:
    shown: list[tuple[float, int, int]] = []
    path = tmp_path / "t.csv"
    path.write_text("x" * 200)
    progress = FileProgress(lambda *one: shown.append(one), whole_files([path]))
    progress.show(50, 0)
    progress.show(200, 3, whole=True)
    assert shown == [(0.25, 50, 200), (1.0, 200, 200)]


def _done(number: int, size: int) -> MoveFinishedChunk:
    one: Any = {"number": number, "copy_bytes": size}
    return one
