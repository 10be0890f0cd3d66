"""`dbdyno stats` on the command line: operands, formats, the first line, refused input."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import checked, dbdyno
from dbdyno.evidence.run import Block, SliceRecord, new_run

TABLE = """\
arm,block,ms,rows
a,1,2.5,1
a,1,3.5,2
a,2,,3
a,2,6,4
b,1,7.25,5
b,1,9,6
b,2,10,7
b,2,11.5,8
"""


def stats(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return dbdyno("stats", *words, cwd=cwd)


def answer(*words: str | Path):
    done = checked(stats(*words, "--format", "json"))
    return json.loads(done.stdout)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder of Parquet with 40,000 values in two arms and 10 blocks."""
    rng = np.random.default_rng(6)
    folder = tmp_path / "waits"
    folder.mkdir()
    for at in range(2):
        arm = np.tile(["base", "other"], 10_000)
        block = np.repeat(np.arange(5) + 5 * at, 4000)
        values = (rng.lognormal(6, 0.6, 20_000) * np.where(arm == "other", 1.2, 1) * 1000).astype(int)
        table = pa.table({"arm": arm, "block": block, "elapsed_ns": values})
        pq.write_table(table, folder / f"{at}.parquet")
    return folder


def test_help_of_the_group_and_of_each_command() -> None:
    done = stats("--help")
    names = ("summary", "test", "cor", "lm", "outliers", "usl", "plot", "prob-r")
    assert all(f"  {name} " in done.stdout for name in names)
    for name in names:
        assert stats(name, "--help").stdout.startswith("Usage: ")
    assert "Did you mean 'summary'" in stats("sumary").stderr


def test_summary_is_that_of_r(file: Path) -> None:
    """R: summary(c(2.5, 3.5, NA, 6)): 2.50 3.00 3.50 4.00 4.75 6.00, one NA."""
    first, second = answer("summary", file, "-y", "ms", "--by", "arm")
    assert [first[k] for k in ("min", "q1", "median", "mean", "q3", "max", "missing")] == [
        2.5,
        3.0,
        3.5,
        4.0,
        4.75,
        6.0,
        1,
    ]
    assert (second["group"], second["n"], second["p90"]) == ("b", 4, None)


def test_every_operand_gives_the_same(parts: Path, tmp_path: Path) -> None:
    import duckdb

    text = tmp_path / "all.csv"
    duckdb.sql(f"copy (from '{parts}/*.parquet') to '{text}'")
    packed = tmp_path / "all.csv.gz"
    duckdb.sql(f"copy (from '{parts}/*.parquet') to '{packed}' (compression gzip)")
    rows = [answer("summary", operand, "--by", "arm") for operand in (parts, f"{parts}/*.parquet", text, packed)]
    assert all(found == rows[0] for found in rows)
    assert [row["n"] for row in rows[0]] == [20_000, 20_000]
    where = answer("summary", parts, "--by", "arm", "--where", "true")
    assert where == rows[0], "--where reads another way and finds the same"


def test_blocks_lead_and_single_values_are_labelled(parts: Path) -> None:
    done = checked(stats("test", parts, "--by", "arm"))
    assert done.stdout.startswith("mean of other is 19.7 % higher than of base")
    assert "10 blocks" in done.stdout.splitlines()[0]
    assert "assumes independent values" in done.stdout
    found = answer("test", parts, "--by", "arm", "--longest", "25")
    assert found["blocks"][0]["paired"] is True
    assert [row["test"].split()[0] for row in found["tests"]] == [
        "Welch",
        "Mann-Whitney",
        "Kolmogorov-Smirnov",
    ]
    assert {row["quantile"] for row in found["quantiles"]} == {
        "p50",
        "p75",
        "p90",
        "p95",
        "p99",
        "p99.9",
    }
    assert len(found["longest"]) == 25
    row = found["longest"][0]
    part = pq.read_table(row["file"])
    assert part["elapsed_ns"][row["row"]].as_py() == row["value"]
    assert sum(r["count"] for r in found["histogram"]) == 40_000


def test_without_blocks_it_says_how_to_get_some(parts: Path) -> None:
    done = stats("test", parts, "--by", "arm", "--block", "-")
    assert "--block" in done.stderr
    assert done.stdout.startswith("Over single values")


def test_the_base_may_be_chosen(parts: Path) -> None:
    first = answer("test", parts, "--by", "arm")["tests"][0]["statistic"]
    assert answer("test", parts, "--by", "arm", "--base", "other")["tests"][0]["statistic"] == -first
    done = stats("test", parts, "--by", "arm", "--base", "none")
    assert (done.returncode, "base, other" in done.stderr) == (2, True)


def test_two_files_are_two_groups(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "u.csv"
    other.write_text(TABLE.replace("11.5", "99"))
    found = answer("test", file, other, "-y", "ms")
    assert found["groups"] == ["t", "u"]
    assert found["blocks"][0]["paired"] is False, "block 1 of one file is not block 1 of another"


def test_from_published_figures_alone() -> None:
    found = answer("test", "--from-summary", "4_000_000,508.6763,176.145", "4000000,542.3583,185.668")["tests"][0]
    assert round(found["statistic"], 3) == 263.214
    assert round(found["log10_p_normal"], 1) == -15046.8
    done = stats("test", "--from-summary", "1,2", "3,4,5")
    assert (done.returncode, "n,mean,sd" in done.stderr) == (2, True)


def test_cor_lm_and_usl(file: Path) -> None:
    rows = answer("cor", file, "-x", "rows", "-y", "ms", "--kendall")["correlations"]
    assert [(row["method"], row["n"]) for row in rows] == [
        ("Pearson r", 7),
        ("Spearman rho", 7),
        ("Kendall tau", 7),
    ]
    fit = answer("lm", file, "-y", "ms", "-x", "rows", "-x", "block")
    assert [c["coefficient"] for c in fit["coefficients"]] == ["(Intercept)", "rows", "block"]
    assert fit["fit"][0]["df"] == 4
    assert len(answer("lm", file, "-y", "ms", "-x", "rows", "--degree", "3")["coefficients"]) == 4
    law = answer("usl", file, "-y", "ms", "-x", "rows")["parameters"]
    assert [row["parameter"] for row in law] == ["alpha", "beta", "gamma", "peak"]


def test_outliers_come_as_whole_rows(parts: Path, tmp_path: Path) -> None:
    place = tmp_path / "longest.csv"
    assert stats("outliers", parts, "--by", "arm", "--longest", "500", "-o", place).returncode == 0
    rows = [row for row in csv.DictReader(io.StringIO(place.read_text())) if row["part"] == "longest"]
    assert len(rows) == 500
    values = [int(row["elapsed_ns"]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert {row["arm"] for row in rows} == {"base", "other"}


def test_one_column_is_a_histogram_by_either_letter(file: Path) -> None:
    assert stats("plot", file, "-x", "ms").stdout == stats("plot", file, "-y", "ms").stdout != ""


@pytest.mark.parametrize(("kind", "suffix"), [("histogram", "png"), ("density", "html"), ("longest", "svg")])
def test_pictures_of_a_column(parts: Path, tmp_path: Path, kind: str, suffix: str) -> None:
    place = tmp_path / f"x.{suffix}"
    done = stats("plot", parts, "--by", "arm", "--kind", kind, "-o", place)
    assert (done.returncode, done.stdout.strip()) == (0, str(place)), done.stderr
    start = {"png": b"\x89PNG", "svg": b"<svg", "html": b"<!DOCTYPE html>"}[suffix]
    content = place.read_bytes()
    assert content.startswith(start)
    if suffix == "html":
        assert b'src="http' not in content


def test_pictures_as_text(parts: Path, file: Path) -> None:
    for words in (("--kind", "histogram"), ("--kind", "density"), ("--kind", "longest"), ()):
        done = checked(stats("plot", parts, "--by", "arm", *words))
        assert "base" in done.stdout
    assert "ms" in stats("plot", file, "-x", "rows", "-y", "ms").stdout
    assert "o" in stats("plot", file, "-x", "rows", "-y", "ms", "--kind", "usl").stdout


def test_a_scatter_plot_of_points_and_of_many_rows(file: Path, parts: Path, tmp_path: Path) -> None:
    for operand, x, y in ((file, "rows", "ms"), (parts, "block", "elapsed_ns")):
        place = tmp_path / "s.svg"
        assert stats("plot", operand, "-x", x, "-y", y, "-o", place).returncode == 0
        assert place.read_text().startswith("<svg")


def test_csv_and_lines_name_the_part(file: Path) -> None:
    done = stats("lm", file, "-y", "ms", "-x", "rows", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["part"] for row in rows} == {"residuals", "coefficients", "fit"}
    lines = stats("lm", file, "-y", "ms", "-x", "rows", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["part"] for line in lines] == [row["part"] for row in rows]


def test_prob_r() -> None:
    row = answer("prob-r", "-0.33", "600")[0]
    assert row["p"] == pytest.approx(1.0403e-16, rel=1e-4)
    assert row["low"] < -0.33 < row["high"]
    assert "not defined" in stats("prob-r", "1.5", "600").stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("summary", "nothing"), "RUN:TABLE"),
        (("summary", "{t}"), "name one of them with -y: block, ms, rows"),
        (("summary", "{t}", "-y", "arm"), "not a number"),
        (("summary", "{t}", "-y", "no"), "columns arm, block, ms, rows"),
        (("summary", "{t}", "-y", "ms", "--where", "no > 1"), "--where"),
        (("test", "{t}", "-y", "ms"), "--by"),
        (("test", "{t}", "-y", "ms", "--by", "arm", "--where", "arm = 'a'"), "found 1"),
        (("lm", "{t}", "-y", "ms", "-x", "rows", "-x", "rows"), "combination"),
        (("plot", "{t}", "-y", "ms", "-o", "x.gif"), "one of .png, .svg, .html"),
        (("plot", "{t}", "-y", "ms", "--kind", "usl"), "needs -x and -y"),
        (("plot", "{t}", "-x", "rows", "-y", "ms", "--kind", "density"), "takes one column"),
    ],
)
def test_a_refusal_says_what_to_do(file: Path, words: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    done = stats(*(word.format(t=file) for word in words), cwd=tmp_path)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_where_reads_nothing_but_the_operand(file: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("x\n1\n")
    expression = f"(select count(*) from read_csv('{secret}')) > 0"
    done = stats("summary", file, "-y", "ms", "--where", expression)
    assert done.returncode == 2
    assert "Permission" in done.stderr


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and nothing more")
    done = stats("summary", torn)
    assert done.returncode == 2
    assert "torn" in done.stderr
    assert "fault in dbdyno" not in done.stderr


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run of two measured blocks and a warm-up; slice 1 of each does not count."""
    folder = tmp_path / "runs"
    run = new_run(folder, "t", {"title": "t"})
    for index, kind in enumerate(("warmup", "measure", "measure")):
        for table in ("calls", "waits"):
            (run.path / table).mkdir(exist_ok=True)
            made = pa.table(
                {
                    "arm": ["base", "base", "other", "other"] * 25,
                    "block": pa.array([index] * 100, pa.uint32()),
                    "slice": pa.array([0, 1, 0, 1] * 25, pa.uint32()),
                    "elapsed_ns": [100, 999, 110, 999] * 25,
                }
            )
            pq.write_table(made, run.path / table / f"b{index:06d}.parquet")
        run.add_block(Block(index, kind, 1, 2, 100, [SliceRecord(0, 0), SliceRecord(1, 1, False)]))
    return folder


def test_tables_of_a_run(runs: Path) -> None:
    """Of an experiment's calls the slices that count; of another table, and of the folder, all."""
    counted = answer("summary", "last:calls", "--by", "arm", "--runs", runs)
    assert [(row["group"], row["n"], row["max"]) for row in counted] == [
        ("base", 50, 100),
        ("other", 50, 110),
    ]
    assert answer("summary", "last:waits", "--runs", runs)[0]["n"] == 300
    run = next(runs.iterdir())
    assert answer("summary", run / "calls")[0]["n"] == 300
    assert answer("summary", f"{run}:calls", "--where", "arm = 'base'")[0]["n"] == 50
    done = stats("summary", "last:nothing", "--runs", runs)
    assert (done.returncode, "tables calls, waits, metrics" in done.stderr) == (2, True)
    done = stats("summary", run)
    assert (done.returncode, "is a run with several tables" in done.stderr) == (2, True)


def test_prob_r_in_sql(runs: Path) -> None:
    query = (
        "select prob_r(0.5, 4) as half, prob_r(null, 9) as nothing, prob_r(2, 9) as beyond,"
        " prob_r(corr(elapsed_ns, slice), count(*)) as p from calls"
    )
    done = dbdyno("sql", query, "--runs", runs, "--format", "json")
    row = json.loads(done.stdout)[0]
    assert row["half"] == pytest.approx(0.5, abs=1e-14)
    assert (row["nothing"], row["beyond"]) == (None, None)
    assert 0 <= row["p"] < 1e-200


def test_names_that_need_quotes(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    (folder / "a.csv").write_text('"the ""value""",group by\n1,x\n2,y\n3,x\n')
    rows = answer("summary", folder / "a.csv", "-y", 'the "value"', "--by", "group by")
    assert [(row["group"], row["n"]) for row in rows] == [("x", 2), ("y", 1)]
