"""From trace files to every page: everything read is accounted for, and everything refused is reported."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trace_text import BY_SIZE, DATA, needs_data, trace, write_set

from command_line import dbdyno, succeeded
from dbdyno.trace.profile import Request, profile_page
from dbdyno.trace.source import open_traces, read_trace
from dbdyno.trace.statements import Request as StatementsRequest
from dbdyno.trace.statements import statements_page
from soaked import first
from waiting import until

PACKED = [path for path in BY_SIZE if path.suffix in (".bz2", ".gz", ".lzma")]
"""Traces that are there a second time, plain or packed by another program."""
PLAIN = [path for path in BY_SIZE if path not in PACKED]


def test_the_profile_of_a_file_closes_to_the_microsecond(file: Path):
    model = profile_page([str(file)])
    assert sum(row["total_ns"] for row in model["profile"]["rows"]) == model["facts"]["elapsed_ns"]
    names = [row["name"] for row in model["profile"]["rows"]]
    assert "log file sync" in names and "CPU" in names


@pytest.mark.parametrize("by", ["event", "class", "statement", "force", "module", "session", "kind"])
def test_every_dimension_closes(file: Path, by: str):
    model = profile_page([str(file)], Request(by=(by,)))
    assert sum(row["total_ns"] for row in model["profile"]["rows"]) == model["facts"]["elapsed_ns"]


def test_a_profile_on_the_command_line(file: Path):
    done = dbdyno("trace", "profile", file, COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert "log file sync" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_where_and_top_on_the_command_line(file: Path):
    rows = [
        json.loads(line)
        for line in dbdyno(
            "trace", "profile", file, "--where", "class = 'commit'", "--format", "jsonl"
        ).stdout.splitlines()
    ]
    assert [row["name"] for row in rows if row["what"] == "wait"] == ["log file sync"]
    top = dbdyno("trace", "profile", file, "--top", 1, "--format", "jsonl").stdout.splitlines()
    assert len(top) == 1
    assert dbdyno("trace", "profile", file, "--where", "evnt = 1").returncode == 2


def test_literals_of_a_file_are_found(file: Path):
    with open_traces([str(file)]) as traces:
        finding = statements_page(traces, StatementsRequest(merge_literals=True))["findings"][0]
    assert finding["statements"] == 20
    assert finding["misses"] == 20


def test_a_temporary_import_leaves_nothing_behind(file: Path, tmp_path: Path):
    place = tmp_path / "tmp"
    place.mkdir()
    assert dbdyno("trace", "sql", file, TMPDIR=str(place)).returncode == 0
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("moment", first(*range(3)))
def test_ctrl_c_at_any_moment_ends_with_130_and_leaves_nothing_behind(tmp_path: Path, big: Path, moment: int):
    place = tmp_path / "tmp"
    place.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "dbdyno", "trace", "sql", str(big)],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: list(place.iterdir()), 120, pause_s=0.005)
    time.sleep(random.Random(moment).random() * 0.03)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert (running.returncode, errors.strip()) in ((130, b""), (130, b"interrupted"))
    assert list(place.iterdir()) == []


def test_an_import_is_a_run_and_is_not_overwritten(file: Path, tmp_path: Path):
    out = tmp_path / "runs" / "orders"
    done = succeeded("trace", "import", file, "--out", out)
    assert "calls" in done.stdout
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["kind"], manifest["status"], manifest["title"]) == (
        "trace",
        "complete",
        "made.trc",
    )
    again = dbdyno("trace", "import", file, "--out", out)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert dbdyno("trace", "import", file, "--out", out, "--force").returncode == 0
    assert dbdyno("trace", "sql", out).stdout == dbdyno("trace", "sql", out).stdout


def test_an_import_removes_nothing_that_is_no_import(file: Path, tmp_path: Path):
    out = tmp_path / "precious"
    out.mkdir()
    (out / "letter.txt").write_text("dear")
    done = dbdyno("trace", "import", file, "--out", out, "--force")
    assert done.returncode == 2
    assert (out / "letter.txt").read_text() == "dear"


def test_pages_of_files_and_of_their_import_are_the_same(file: Path, tmp_path: Path):
    out = tmp_path / "run"
    dbdyno("trace", "import", file, "--out", out)
    for words in (("sql",), ("waits", "--event", "log file sync"), ("tree",), ("timeline",)):
        one, two = (json.loads(dbdyno("trace", *words, source, "--format", "json").stdout) for source in (file, out))
        assert one == two


def test_the_profile_of_an_import_is_that_of_its_files(file: Path, tmp_path: Path):
    run = read_trace(file, tmp_path / "run")
    for by in (("event",), ("statement", "event"), ("class",)):
        request = Request(by=by, where="elapsed_us > 10")
        one, two = (profile_page([str(place)], request) for place in (file, run.path))
        assert one["profile"] == two["profile"]
        assert one["calls"] == two["calls"]


def test_what_is_written_from_an_import_reads_the_same(file: Path, tmp_path: Path):
    run = read_trace(file, tmp_path / "run")
    out = tmp_path / "copy"
    succeeded("trace", "write", run.path, "--out", out)
    assert profile_page([str(out)])["profile"] == profile_page([str(file)])["profile"]
    again = dbdyno("trace", "write", run.path, "--out", out)
    assert again.returncode == 2
    assert "not empty" in again.stderr


def test_the_public_names_are_enough_to_begin(file: Path, tmp_path: Path):
    import dbdyno as package

    profile = package.profile_trace(file, by="class")
    assert profile["profile"]["by"] == ["class"]
    run = package.read_trace(file, tmp_path / "run")
    assert package.sql("select count(*) from waits", run).fetchall() == [(60,)]
    with pytest.raises(package.Error):
        package.profile_trace(tmp_path / "none.trc")


def test_a_bad_file_is_told_and_the_others_go_on(file: Path, tmp_path: Path):
    bad = tmp_path / "bad.trc"
    bad.write_bytes(bytes(range(256)) * 40)
    done = dbdyno("trace", "profile", file, bad)
    assert done.returncode == 2
    assert done.stderr.count("bad.trc") == 1
    assert "log file sync" in done.stdout
    assert dbdyno("trace", "profile", bad).returncode == 2


def test_check_ends_with_0_1_or_2(file: Path, tmp_path: Path):
    assert dbdyno("trace", "check", file).returncode == 0
    torn = tmp_path / "torn.trc"
    torn.write_text(trace().replace("EXEC #140003:c=30,e=70", "EXEC #140003:c=3x,e", 1))
    done = dbdyno("trace", "check", torn)
    assert done.returncode == 1
    assert "not read" in done.stdout and "line " in done.stdout
    assert dbdyno("trace", "check", file, tmp_path / "none.trc").returncode == 2
    rows = dbdyno("trace", "check", torn, "--format", "jsonl").stdout.splitlines()
    assert json.loads(rows[0])["count"] >= 1


def test_a_torn_fragment_is_reported_with_exit_2(tmp_path: Path):
    torn = tmp_path / "torn.trc"
    lines = trace().splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("EXEC "))
    lines[at] = "dep=0,og=4,tim=1000380"
    torn.write_text("\n".join([*lines, ""]))
    for words in (("profile",), ("sql",), ("waits",), ("profile", "--by", "rows")):
        done = dbdyno("trace", *words, torn)
        assert (done.returncode, "not" in done.stdout) == (2, True), words
    cut = tmp_path / "cut.trc"
    cut.write_text(trace()[:-30])
    assert dbdyno("trace", "profile", cut).returncode == 0


def test_the_unit_of_time_can_be_said(file: Path):
    elapsed = [
        json.loads(dbdyno("trace", "profile", file, "--tim-unit", unit, "--format", "json").stdout)["facts"][
            "elapsed_ns"
        ]
        for unit in ("1us", "1.024us")
    ]
    assert elapsed[1] == pytest.approx(elapsed[0] * 1.024, rel=1e-6)
    assert dbdyno("trace", "profile", file, "--tim-unit", "soon").returncode == 2


@pytest.mark.soak
def test_compare_of_two_folders(tmp_path: Path):
    one = write_set(tmp_path / "before", 6, orders=60, seed=1)
    two = write_set(tmp_path / "after", 6, orders=60, seed=2, factor=1.4)
    done = dbdyno("compare", one, two)
    assert done.returncode == 1, done.stderr
    words = " ".join(done.stdout.split())
    assert "SLOWER after took" in words and "6 and 6 sessions" in words
    quoted = dbdyno("compare", f"{one}/*.trc", f"{two}/*.trc", "--event", "log file sync", "--format", "json")
    assert json.loads(quoted.stdout)["verdict"]["decision"] == "slower"


def test_compare_needs_no_statement_key_in_common(tmp_path: Path):
    one = write_set(tmp_path / "a", 5, orders=10, seed=1)
    two = write_set(tmp_path / "b", 5, orders=10, seed=2)
    model = json.loads(dbdyno("compare", one, two, "--merge-literals", "--format", "json").stdout)
    (row,) = [line for line in model["lines"] if line["family"] == "statement" and line["text"]]
    assert row["sides"][0]["count"] == 50


@needs_data
@pytest.mark.parametrize("path", first(*PLAIN, *PACKED, count=len(PLAIN) - 2), ids=lambda path: path.name[-40:])
def test_every_real_file_has_every_page(path: Path, tmp_path: Path):
    """Nothing that is in a real file breaks a page; its profile closes."""
    from dbdyno.base.errors import TraceError
    from dbdyno.report.html import render_html
    from dbdyno.report.terminal import render_text, rows
    from dbdyno.trace import timeline, tree, waits
    from dbdyno.trace.check import check_page

    model = profile_page([str(path)])
    assert sum(row["total_ns"] for row in model["profile"]["rows"]) == model["facts"]["elapsed_ns"]
    run = read_trace(path, tmp_path / "run")
    assert profile_page([str(run.path)])["profile"] == model["profile"]
    pages = [model, profile_page([str(path)], Request(by=("statement", "event"))), check_page([str(path)])]
    with open_traces([str(path)]) as traces:
        for make in (
            lambda: statements_page(traces, StatementsRequest(top=0, merge_literals=True)),
            lambda: waits.waits_page(traces, waits.Request()),
            lambda: waits.waits_page(traces, waits.Request(events=("*",))),
            lambda: tree.tree_page(traces, tree.Request()),
            lambda: timeline.timeline_page(traces),
        ):
            try:
                pages.append(make())
            except TraceError as error:
                assert "no wait" in str(error) or "no client call" in str(error)
    for page in pages:
        text = render_text(page, width=80, color=False, skew=True)
        assert max(map(len, text.splitlines())) <= 80
        json.dumps(page, allow_nan=False)
        rows(page)
        assert "</html>" in render_html(page)


@needs_data
def test_exclusive_figures_of_a_real_file_add_up_to_its_roots():
    path = next(DATA.glob("*orcl_ora_4321.trc"))
    with open_traces([str(path)]) as traces:
        model = statements_page(traces, StatementsRequest(top=0))
        total = sum(e["total"]["elapsed_ns"] + e["total"]["close_elapsed_ns"] for e in model["statements"])
        row = traces.rows("select sum(elapsed_ns)::bigint as ns from calls where depth = 0 or orphan")[0]
    assert total == row["ns"]
