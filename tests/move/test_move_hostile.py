"""Tests of damaged files, tables altered during a move, lost connections and odd names: one clear error, or the right
result."""

from __future__ import annotations

import contextlib
import random
import resource
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from move_lab import Lab
from move_net import Cut
from psycopg.conninfo import make_conninfo
from test_move_in import content, into, nothing_left

from command_line import dbdyno, succeeded
from dbdyno import _core
from dbdyno.base.errors import MoveError
from fresh_dice import fresh_dice
from together import meanwhile, together
from waiting import until

TRIES = 60


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return the bytes with a few of them changed, or with a piece removed or doubled."""
    out = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(out))
        match rng.randrange(5):
            case 0:
                out[at] = rng.randrange(256)
            case 1:
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                del out[at : at + rng.randrange(1, 64)]
            case 3:
                out[at:at] = out[at : at + rng.randrange(1, 64)]
            case 4:
                out[-rng.randrange(1, min(200, len(out))) :] = b"" if rng.random() < 0.5 else bytes(4)
        out = out or bytearray(1)
    return bytes(out)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_damaged_file_is_one_error_or_other_rows_never_a_crash(lab: Lab, form: str) -> None:
    lab.run("create table t as select g id, md5(g::text) x, g::numeric(9,2) n, now() at from generate_series(1, 300) g")
    path = lab.folder / f"t.{form}"
    if form == "parquet":
        lab.moved("--table", "t")
        path = next(lab.out.glob("*.parquet"))
    else:
        assert dbdyno("move", lab.dsn, "--to", path, "--table", "t").returncode == 0
    whole = path.read_bytes()
    good = _core.move_read_back(path)
    rng = fresh_dice()
    errors = 0
    bad = lab.folder / f"bad.{form}"
    for _ in range(TRIES):
        bad.write_bytes(damaged(whole, rng))
        try:
            _core.move_describe(bad)
            _core.move_read_back(bad)
        except MoveError as error:
            assert str(bad) in str(error)
            errors += 1
    assert errors > TRIES / 10
    assert _core.move_read_back(path) == good


def test_a_damaged_file_on_the_way_in_changes_nothing(lab: Lab) -> None:
    lab.run("create table t as select g id, md5(g::text) x from generate_series(1, 300) g", "create table u (like t)")
    assert dbdyno("move", lab.dsn, "--to", lab.folder / "t.arrow", "--table", "t").returncode == 0
    whole = (lab.folder / "t.arrow").read_bytes()
    (lab.folder / "t.arrow").write_bytes(whole[: len(whole) * 2 // 3])
    done = dbdyno("move", lab.folder / "t.arrow", "--to", lab.dsn, "--table", "u")
    assert (done.returncode, "t.arrow" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
    assert lab.rows("select count(*) from u") == [(0,)]
    assert nothing_left(lab)


def test_stdin_that_is_no_arrow_is_told_as_stdin(lab: Lab) -> None:
    """Regression: the error named a temporary file and had no next step."""
    lab.run("create table u (id int)")
    done = dbdyno("move", "-", "--to", lab.dsn, "--table", "u", stdin=b"no arrow at all" * 300)
    assert (done.returncode, "stdin: " in done.stderr, "dbdyno-move-" in done.stderr) == (2, True, False), done.stderr
    assert "next: give a complete Parquet or Arrow IPC file" in done.stderr


def test_a_source_that_is_truncated_altered_or_dropped_in_the_middle_waits_for_the_end(lab: Lab) -> None:
    for change in ("alter table t drop column x", "truncate t", "drop table t"):
        lab.run(
            "drop table if exists t",
            "create table t as select g id, repeat('x', 200) x from generate_series(1, 3000) g",
        )
        lab.out = lab.folder / change.split()[0]
        ended: list[float] = []

        def alter(change: str = change, ended: list[float] = ended) -> None:
            # A worker that came after the change would wait behind it, until its lock timeout: both are to be there.
            begun = "select count(distinct pid) >= 3 from pg_locks where relation = to_regclass('t') and granted"
            assert until(lambda: lab.rows(begun) == [(True,)], 60, pause_s=0.005), "no workers read"
            lab.run(change)
            ended.append(time.monotonic())

        with together(alter):
            done = lab.move("--table", "t", "--rate-limit", "700KB/s", "--piece", "64KiB")
        assert done.returncode == 0, done.stderr
        assert ended, "the change went through in the end"
        assert lab.files("count(distinct id), sum(length(x))") == [(3000, 600000)], change


@pytest.mark.parametrize("mode", ["insert", "replace"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("drop table u", "u"),
        ("alter table u drop column x", "x"),
        ("alter table u alter column id type text using id::text", ""),
    ],
)
def test_a_target_that_changes_while_rows_are_staged(lab: Lab, change: str, said: str, mode: str) -> None:
    lab.run(
        "create table t as select g id, repeat('x', 200) x from generate_series(1, 3000) g",
        "create table u (id int, x text)",
    )
    lab.moved("--table", "t")

    def alter() -> None:
        until(lambda: not nothing_left(lab), 60, pause_s=0.005)
        lab.run(change)

    with together(alter):
        done = into(lab, "--table", "u", "--rate-limit", "300KB/s", "--mode", mode)
    assert "Traceback" not in done.stderr
    if said:
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    else:
        assert lab.rows("select count(*) from u") == ([(3000,)] if done.returncode == 0 else [(0,)])
    assert nothing_left(lab)


def test_a_lost_network_is_one_error_and_the_job_goes_on(lab: Lab) -> None:
    lab.run("create table t as select g id, md5(g::text) x from generate_series(1, 20000) g", "create table u (like t)")
    known = lab.engine.tcp_conninfo()
    rng = fresh_dice()
    host, port = str(known["host"]), int(known["port"])
    with Cut(host, port, rng.randrange(100_000, 700_000)) as net:
        far = make_conninfo("", **{**known, "host": "127.0.0.1", "port": net.port})
        done = dbdyno("move", far, "--to", lab.out, "--table", "t", "--piece", "64KiB")
        assert net.is_cut.is_set()
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert "dbdyno move resume" in done.stderr
        succeeded("move", "resume", lab.out, "--source", far, "--restart", "--verify", "source")
    with Cut(host, port, 30_000) as net:
        far = make_conninfo("", **{**known, "host": "127.0.0.1", "port": net.port})
        job = lab.folder / "job"
        across = dbdyno("move", far, "--to", lab.dsn, "--job", job, "--table", "t", "--into", "u", "--piece", "64KiB")
        assert (across.returncode, lab.rows("select count(*) from u")) == (2, [(0,)]), across.stderr
        succeeded("move", "resume", job, "--source", far, "--to", lab.dsn, "--restart")
    assert content(lab, "u") == content(lab, "t")


def test_names_with_quotes_dots_and_newlines_and_no_rows(lab: Lab) -> None:
    name, column = '"a.""b""\n;c"', '"x\n"",y"'
    lab.run(
        f"create table {name} (id int primary key, {column} text)",
        f"insert into {name} select g, 'v' from generate_series(1, 9) g",
        f"create table u (id int primary key, {column} text)",
        "create table empty (id int, x text)",
        "create table none (id int, x text)",
    )
    job = ("--job", lab.folder / "job")
    succeeded("move", lab.dsn, "--to", lab.dsn, *job, "--table", name, "--into", "u", "--verify", "target")
    assert content(lab, "u") == content(lab, name)
    for path in (lab.folder / "t.csv", lab.folder / "t.arrow"):
        assert dbdyno("move", lab.dsn, "--to", path, "--table", name).returncode == 0
        succeeded(
            *("move", path, "--to", lab.dsn, "--table", "u", "--mode", "replace", "--defer-indexes"),
            *("--rejects", f"{path}.bad", "--verify", "target"),
        )
        assert content(lab, "u") == content(lab, name)
        path.unlink()
        assert dbdyno("move", lab.dsn, "--to", path, "--table", "empty").returncode == 0
        assert "0 rows added" in dbdyno("move", path, "--to", lab.dsn, "--table", "none").stdout
    job = ("--job", lab.folder / "second")
    assert "0 rows added" in dbdyno("move", lab.dsn, "--to", lab.dsn, *job, "--table", "empty", "--into", "none").stdout


@pytest.mark.soak
def test_200_reads_while_two_sessions_move_money(lab: Lab) -> None:
    """The sum of all accounts is 0 at every instant; none of 1,600 reads of 8 pieces sees another sum."""
    lab.run(
        "create table account (id int primary key, amount bigint not null, pad text default repeat('x', 80))",
        "insert into account select g, 0 from generate_series(1, 4000) g",
    )
    moved = [0, 0]

    def writer(place: int, stop: threading.Event) -> None:
        with lab.connect() as conn:
            while not stop.is_set():
                first, second = random.sample(range(1, 4001), 2)
                conn.execute(
                    "update account set amount = amount + case when id = %s then -7 else 7 end where id in (%s, %s)",
                    [first, first, second],
                )
                moved[place] += 1

    with meanwhile(partial(writer, 0), partial(writer, 1)):
        for turn in range(200):
            before = sum(moved)
            if turn % 2:
                path = lab.folder / f"{turn}.arrow"
                done = dbdyno("move", lab.dsn, "--to", lab.dsn, "--job", path, "--table", "account", "--into", "seen")
                done = done if turn > 1 else _made(lab, path)
                assert done.returncode == 0, done.stderr
                assert lab.rows("select sum(amount), count(*), count(distinct id) from seen") == [(0, 4000, 4000)]
                lab.run("truncate seen")
            else:
                lab.out = lab.folder / f"out{turn}"
                lab.moved("--table", "account", "--piece", "64KiB", "--workers", "3", "--verify", "files")
                assert lab.files("sum(amount), count(*), count(distinct id)") == [(0, 4000, 4000)]
            assert sum(moved) > before, "they wrote meanwhile"


def _made(lab: Lab, path: Path) -> subprocess.CompletedProcess[str]:
    words = ("--table", "account", "--into", "seen", "--create")
    return dbdyno("move", lab.dsn, "--to", lab.dsn, "--job", f"{path}.made", *words)


@pytest.mark.soak
@pytest.mark.parametrize(("row_mb", "rows"), [(100, 8), (500, 3)])
def test_long_rows_take_the_memory_of_a_few_of_them(lab: Lab, row_mb: int, rows: int) -> None:
    """`--memory` limits the collected rows; a single row is always in memory completely."""
    lab.run(
        "create table t (id int, x text)",
        "alter table t alter column x set storage external",
        f"insert into t select g, repeat(md5(g::text), {row_mb << 15}) from generate_series(1, {rows}) g",
        "create table u (like t)",
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"the largest child before: {before / 1024:.0f} MB")
    for words in (
        [lab.dsn, "--table", "t", "--to", str(lab.out), "--memory", "64MiB", "--workers", "2"],
        [str(lab.out), "--table", "u", "--to", lab.dsn, "--memory", "64MiB", "--workers", "1"],
        [lab.dsn, "--table", "t", "--into", "u", "--mode", "replace", "--to", lab.dsn, "--job", f"{lab.out}.job"],
    ):
        assert peak_mb(lab, words) < 8 * row_mb
    assert lab.rows("select count(*), sum(length(x)) from u") == [(rows, rows * row_mb << 20)]


@pytest.mark.soak
def test_1600_columns_stay_within_the_memory_whatever_a_column_costs(lab: Lab) -> None:
    """Regression: the writer's context and dictionary of each column took 630 MB where 32 were allowed."""
    columns = ", ".join(f"c{n} int" for n in range(1600))
    values = ", ".join(f"g * {n + 1} % 30000" for n in range(1600))
    lab.run(f"create table t ({columns})", f"insert into t select {values} from generate_series(1, 15000) g")
    lab.run("create table u (like t)")
    assert peak_mb(lab, [lab.dsn, "--table", "t", "--to", str(lab.out), "--memory", "32MB", "--workers", "2"]) < 150
    for workers in ("1", "2"):
        words = [str(lab.out), "--table", "u", "--to", lab.dsn, "--mode", "replace", "--memory", "32MB"]
        assert peak_mb(lab, [*words, "--workers", workers]) < 150
    assert lab.rows("select count(*), sum(c0), sum(c1599) from t") == lab.rows(
        "select count(*), sum(c0), sum(c1599) from u"
    )


def peak_mb(lab: Lab, words: list[str]) -> int:
    """Return the peak memory of a move that must succeed, in MB."""
    with (lab.folder / "said").open("wb") as said:
        process = subprocess.Popen([sys.executable, "-m", "dbdyno", "move", *words], stdout=said, stderr=said)
        peak = 0
        while process.poll() is None:
            with contextlib.suppress(OSError, IndexError, ValueError):
                text = Path(f"/proc/{process.pid}/status").read_text()
                peak = max(peak, int(text.split("VmHWM:")[1].split()[0]) // 1024)
            time.sleep(0.02)
    print(f"{' '.join(words[1:5])}: {peak} MB")
    assert process.returncode == 0, (lab.folder / "said").read_text()
    return peak
