"""`dbdyno runs import`: a run that compare, trend, report, stats and sql can read; errors leave nothing behind."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path

import pytest
from outputs_here import output, outputs

from command_line import dbdyno, succeeded
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.measured.sums import measures_of
from soaked import but

S = 10**9


def pgbench(folder: Path, name: str, tps: float, *, seconds: int = 12) -> Path:
    """Write a pgbench summary with progress lines, whose values vary a little."""
    rates = [tps * (1 + 0.004 * ((at * 7) % 5 - 2)) for at in range(seconds)]
    lines = [
        f"progress: {at + 1}.0 s, {rate:.1f} tps, lat {4000 / rate:.3f} ms stddev 0.5, 0 failed"
        for at, rate in enumerate(rates)
    ]
    head = output("pgbench.txt").read_text()
    path = folder / name
    path.write_text("\n".join(lines) + "\n" + re.sub(r"tps = [\d.]+", f"tps = {tps}", head))
    return path


OFTEN = ("pgbench_progress.txt", "pgbench.log", "hyperfine.json")
"""Outputs for the usual tests: with sums, with single operations, and with several commands; others resemble them."""


@pytest.mark.parametrize("name", but([path.name for path in outputs()], *({p.name for p in outputs()} - {*OFTEN})))
def test_every_output_becomes_a_run_with_a_page(name: str, tmp_path: Path) -> None:
    made = dbdyno("runs", "import", output(name), "--out", "a", cwd=tmp_path)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    shown = dbdyno("compare", "a", cwd=tmp_path)
    assert shown.returncode == (1 if name == "hyperfine.json" else 0)
    assert ("nothing to compare it with" in shown.stdout) is (name != "hyperfine.json")
    assert dbdyno("report", "a", cwd=tmp_path).returncode == 0
    analysis = json.loads((tmp_path / "a" / "analysis.json").read_text())
    assert analysis["arms"][0]["throughput_per_s"] > 0
    assert analysis["run"]["seed"] is None


def test_two_imports_compare_and_a_difference_is_found(tmp_path: Path) -> None:
    for name, tps in (("before", 1000.0), ("after", 900.0)):
        dbdyno("runs", "import", pgbench(tmp_path, f"{name}.txt", tps), "--out", f"runs/{name}", cwd=tmp_path)
    shown = dbdyno("compare", "runs/before", "runs/after", cwd=tmp_path)
    assert shown.returncode == 1
    assert "10.0 % slower" in shown.stdout and "made one after the other" in shown.stdout
    same = dbdyno("compare", "runs/before", "runs/before", "--format", "json", cwd=tmp_path)
    assert json.loads(same.stdout)["verdict"]["decision"] == "same"


def test_one_sum_each_is_shown_and_decides_nothing(tmp_path: Path) -> None:
    for name in ("a", "b"):
        dbdyno("runs", "import", output("benchbase.summary.json"), "--out", f"runs/{name}", cwd=tmp_path)
    shown = json.loads(dbdyno("compare", "runs/a", "runs/b", "--format", "json", cwd=tmp_path).stdout)
    assert shown["verdict"]["decision"] in ("unclear", "provisional")
    assert shown["arms"][1]["quantiles_ns"]["p99"] == pytest.approx(21e6)
    assert [gate["ok"] for gate in shown["gates"] if gate["code"] == "blocks"] == [False]


def test_several_files_are_blocks_of_one_run_in_their_order(tmp_path: Path) -> None:
    files = []
    for at in range(8):
        given = json.loads(output("benchbase.summary.json").read_text())
        given["Goodput (requests/second)"] = 800.0 + at
        files.append(tmp_path / f"{at}.json")
        files[-1].write_text(json.dumps(given))
    made = dbdyno("runs", "import", *files, "--out", "a", cwd=tmp_path)
    assert "sums of BenchBase in 8 blocks" in made.stderr
    arm = measures_of(Run.open(tmp_path / "a")).arms[0]
    assert list(arm.values["throughput"]) == [800.0 + at for at in range(8)]


def test_a_file_that_is_no_repetition_is_named_with_what_differs_and_nothing_is_written(tmp_path: Path) -> None:
    given = output("benchbase.summary.json").read_text().replace('"terminals": "4"', '"terminals": "8"')
    (tmp_path / "b.json").write_text(given)
    made = dbdyno("runs", "import", output("benchbase.summary.json"), "b.json", "--out", "a", cwd=tmp_path)
    assert made.returncode == 2
    assert "is not a repetition of" in made.stderr and "settings: expected" in made.stderr
    assert not (tmp_path / "a").exists()


def test_a_run_is_never_written_over(tmp_path: Path) -> None:
    words = ("runs", "import", output("benchbase.summary.json"), "--out", "a")
    assert dbdyno(*words, cwd=tmp_path).returncode == 0
    again = dbdyno(*words, cwd=tmp_path)
    assert again.returncode == 2 and "already contains a run" in again.stderr


def test_lines_that_could_not_be_read_are_named_and_the_exit_code_is_2(tmp_path: Path) -> None:
    text = output("pgbench.log").read_text().splitlines()
    (tmp_path / "x.log").write_text("\n".join([*text[:3], "torn", *text[3:]]))
    made = dbdyno("runs", "import", "x.log", "--out", "a", cwd=tmp_path)
    assert made.returncode == 2
    assert "x.log: 1 lines could not be read and were left out: 4" in made.stderr


def test_imported_operations_go_through_stats_and_sql(tmp_path: Path) -> None:
    dbdyno("runs", "import", output("pgbench.log"), "--out", "a", "--blocks", "4", cwd=tmp_path)
    count = len(output("pgbench.log").read_text().splitlines())
    rows = dbdyno(
        "sql", "select count(*) as n, count(distinct block) as blocks from calls", "--run", "a", "--json", cwd=tmp_path
    )
    assert json.loads(rows.stdout) == [{"n": count, "blocks": 4}]
    summary = dbdyno("stats", "summary", "a:calls", "--json", cwd=tmp_path)
    assert json.loads(summary.stdout)[0]["n"] == count


def test_sums_are_metrics_that_say_so(tmp_path: Path) -> None:
    dbdyno("runs", "import", output("hammerdb_result.json"), "--out", "a", cwd=tmp_path)
    rows = dbdyno(
        "sql", "select metric, value, unit, kind from metrics order by metric", "--run", "a", "--json", cwd=tmp_path
    )
    assert json.loads(rows.stdout)[0] == {"metric": "NOPM", "value": 14812.0, "unit": "", "kind": "sum"}


def test_throughput_of_imported_operations_counts_the_time_between_them(tmp_path: Path) -> None:
    lines = [f"0 {at} 1000 0 {1763000000 + at // 10} {at % 10 * 100_000}" for at in range(1, 101)]
    (tmp_path / "p.log").write_text("\n".join(lines))
    dbdyno("runs", "import", "p.log", "--out", "a", "--blocks", "5", cwd=tmp_path)
    rates = measures_of(Run.open(tmp_path / "a")).arms[0].values["throughput"]
    assert list(rates) == pytest.approx([10.0] * 5, rel=0.06)


def test_too_many_intervals_are_joined_with_their_means_weighted(tmp_path: Path) -> None:
    path = pgbench(tmp_path, "long.txt", 1000.0, seconds=900)
    dbdyno("runs", "import", path, "--out", "a", cwd=tmp_path)
    arm = measures_of(Run.open(tmp_path / "a")).arms[0]
    assert len(arm.blocks) == 180
    assert arm.total("transactions") == pytest.approx(900_000, rel=1e-4)
    assert list(arm.values["throughput"]) == pytest.approx([1000.0] * 180, rel=1e-9)


def test_trend_follows_the_imports_of_one_benchmark_and_dates_a_change(tmp_path: Path) -> None:
    for night in range(12):
        tps = 1000.0 * (1 + 0.003 * (night * 5 % 7 - 3)) * (0.85 if night >= 8 else 1.0)
        path = pgbench(tmp_path, "p.txt", tps)
        out = f"runs/n{night:02d}"
        dbdyno("runs", "import", path, "--out", out, cwd=tmp_path)
        Run.open(tmp_path / out).save(started_at=f"2026-11-{night + 1:02d}T03:00:00+00:00")
    dbdyno("runs", "import", output("benchbase.summary.json"), "--out", "runs/other", cwd=tmp_path)
    done = dbdyno("trend", "runs/n00", "--json", cwd=tmp_path)
    assert done.returncode == 1
    model = json.loads(done.stdout)
    assert [row["run"] for row in model["runs"]] == [f"n{night:02d}" for night in range(12)]
    (change,) = model["arms"][0]["changes"]
    assert change["run"] == 8 and change["ratio"] == pytest.approx(0.85, rel=0.02)


def test_a_file_without_a_time_is_dated_by_its_modification_and_the_screen_and_trend_say_so(tmp_path: Path) -> None:
    for night in range(8):
        path = pgbench(tmp_path, f"{night}.txt", 1000.0 + night)
        os.utime(path, (1_763_000_000 + night * 86_400,) * 2)
        made = dbdyno("runs", "import", path, "--out", f"runs/n{night}", cwd=tmp_path)
    assert "the date of its file, 2025-11-20 02:13 UTC; set another with --started TIME" in made.stderr
    assert Run.open(tmp_path / "runs/n7").manifest.dated_by == "file"
    words = ("trend", "runs/n0", "--json")
    kept = ("--results", "kept")
    dbdyno("results", "push", "kept", *(f"n{night}" for night in range(8)), cwd=tmp_path)
    for more in ((), kept):
        warnings = json.loads(dbdyno(*words, *more, cwd=tmp_path).stdout)["warnings"]
        (date,) = [one["text"] for one in warnings if one["code"] == "date"]
        assert date.startswith("8 of 8 runs are dated by the modification time")


def test_given_a_start_several_files_follow_each_other_from_there(tmp_path: Path) -> None:
    files = [pgbench(tmp_path, f"{at}.txt", 1000.0) for at in range(2)]
    made = dbdyno("runs", "import", *files, "--out", "a", "--started", "2026-11-01T12:00", cwd=tmp_path)
    assert made.returncode == 0 and "dated by" not in made.stderr
    run = Run.open(tmp_path / "a")
    assert (run.manifest.started_at, run.manifest.dated_by) == ("2026-11-01T12:00:00+00:00", "option")
    blocks = list(run.blocks())
    assert blocks[-1].ended_ns - blocks[0].started_ns == 24 * S
    assert all(a.ended_ns == b.started_ns for a, b in itertools.pairwise(blocks))
    succeeded("runs", "import", output("hyperfine.json"), "--out", "h", "--started", "2026-11-01", cwd=tmp_path)
    assert Run.open(tmp_path / "h").manifest.started_at == "2026-11-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("name", "started", "said"),
    [
        ("benchbase.summary.json", "2026-11-01", "contains the time of its benchmark"),
        ("pgbench.txt", "yesterday", "'yesterday' is not a time"),
        ("pgbench.txt", "1969-12-31", "is before 1970"),
    ],
)
def test_a_start_that_cannot_be_is_an_error_and_nothing_is_written(
    name: str, started: str, said: str, tmp_path: Path
) -> None:
    made = dbdyno("runs", "import", output(name), "--out", "a", "--started", started, cwd=tmp_path)
    assert made.returncode == 2 and said in made.stderr
    assert not (tmp_path / "a").exists()


def test_hyperfine_commands_are_compared_within_one_import(tmp_path: Path) -> None:
    times = {
        "old": [0.1 + 0.001 * (at * 3 % 5) for at in range(12)],
        "new": [0.12 + 0.001 * (at * 2 % 5) for at in range(12)],
    }
    results = [{"command": name, "times": own, "exit_codes": [0] * 12} for name, own in times.items()]
    (tmp_path / "h.json").write_text(json.dumps({"results": results}))
    dbdyno("runs", "import", "h.json", "--out", "a", cwd=tmp_path)
    shown = dbdyno("compare", "a", cwd=tmp_path)
    assert shown.returncode == 1
    assert re.search(r"new is 16\.\d % slower", shown.stdout)
    for one in (shown, dbdyno("compare", "a", "a", cwd=tmp_path)):
        assert "a run was imported from another program, whose files contain no waits" in " ".join(one.stdout.split())
