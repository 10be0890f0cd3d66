"""The native `dbdyno`: its own answers equal Python's byte for byte; it passes everything else to Python."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trace_text import REAL, needs_data, trace

from command_line import dbdyno
from dbdyno.trace import staging
from fresh_dice import fresh_dice
from native_program import LEFT, PROGRAM, Answer, native, python

WIDTHS = (40, 83, 84, 92, 100, 101, 112, 122, 200)
EVENTS = (
    "db file sequential read",
    "SQL*Net message to client",
    "SQL*Net message from client",
    "log file sync",
    "latch free",
    "enq: TX - row lock contention",
    "a name of an event that is wider than most of them are",
)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program without Python in its folder, so that it can give only its own answers."""
    return Path(shutil.copy2(PROGRAM, tmp_path_factory.mktemp("alone") / "dbdyno"))


def test_what_is_installed_is_the_native_program() -> None:
    """And not a script from before it: `make build` puts it there, and Python's beside it."""
    assert PROGRAM.read_bytes()[:2] != b"#!"
    assert PROGRAM.with_name("dbdyno-python").is_file()


@pytest.mark.parametrize("columns", ["", "80", "81", "200"])
@pytest.mark.parametrize("word", ["--help", "-h"])
def test_the_help_is_that_of_python(alone: Path, word: str, columns: str) -> None:
    """Where they differ, `python tests/manners/native_help.py` writes the text anew."""
    assert native(alone, word, COLUMNS=columns) == python(word, COLUMNS=columns)


@pytest.mark.parametrize("columns", ["0", "79", "40", "many", "-1"])
def test_the_help_of_a_narrow_terminal_is_pythons(alone: Path, columns: str) -> None:
    assert LEFT in native(alone, "--help", COLUMNS=columns)[2]


def made_up(dice: random.Random) -> str:
    """Return a trace of calls and waits of all magnitudes, some of them 0, and some longer than their calls."""
    lines = ["Trace file made_up.trc", "*** 2026-11-21T10:00:00.000000+00:00", ""]
    tim = dice.choice((1_000_000, 900_000_000_000))
    for _ in range(dice.randrange(1, 40)):
        tim += round(10 ** dice.uniform(0, dice.choice((2, 4, 9))))
        length = dice.choice((0, 1, round(10 ** dice.uniform(0, dice.choice((3, 6, 10))))))
        if dice.random() < 0.6:
            lines.append(f"WAIT #7: nam='{dice.choice(EVENTS)}' ela= {length} p1=1 p2=2 p3=3 obj#=-1 tim={tim}")
        else:
            kind, depth = dice.choice(("PARSE", "EXEC", "FETCH")), dice.randrange(2)
            lines.append(
                f"{kind} #7:c={dice.randrange(length + 1)},e={length},p=0,cr={dice.randrange(9)},cu=0,mis=0,"
                f"r={dice.randrange(3)},dep={depth},og=1,plh=7,tim={tim}"
            )
    return "\n".join([*lines, f"WAIT #7: nam='latch free' ela= 3 p1=1 p2=2 p3=3 obj#=-1 tim={tim + 9}", ""])


def test_what_it_answers_itself_is_what_python_says(alone: Path, tmp_path: Path) -> None:
    dice = fresh_dice()
    answered = at = 0
    while answered < 9:
        at += 1
        assert at < 200, f"it answers {answered} of {at} traces itself"
        names = [f"{at}-{number}.trc" for number in range(dice.choice((1, 1, 2, 12)))]
        for name in names:
            (tmp_path / name).write_text(made_up(dice))
        form = ("--format", "json") if dice.random() < 0.3 else ()
        columns = str(dice.choice(WIDTHS))
        told = native(alone, "trace", "profile", *names, *form, cwd=tmp_path, COLUMNS=columns)
        if LEFT not in told[2]:
            answered += 1
            assert told == python("trace", "profile", *names, *form, cwd=tmp_path, COLUMNS=columns)


def test_columns_are_those_of_the_width(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "a.trc").write_text(trace(orders=30))
    answered = 0
    for columns in (*map(str, WIDTHS), "0", "-1", "many", ""):
        told = native(alone, "trace", "profile", "a.trc", cwd=tmp_path, COLUMNS=columns)
        if LEFT not in told[2]:
            answered += 1
            assert told == python("trace", "profile", "a.trc", cwd=tmp_path, COLUMNS=columns), columns
    assert answered > 6


@needs_data
def test_real_files_are_answered_as_python_answers_them(alone: Path) -> None:
    answered = 0
    for file in REAL:
        for form in ("table", "json"):
            told = native(alone, "trace", "profile", file, f"--format={form}", COLUMNS="120")
            if LEFT not in told[2]:
                answered += 1
                assert told == python("trace", "profile", file, f"--format={form}", COLUMNS="120"), file
    assert answered > 10


@pytest.mark.parametrize(
    "words",
    [
        ("torn.trc",),
        ("a.trc", "torn.trc", "--format", "json"),
        ("a.trc", "text.trc"),
        ("text.trc",),
        ("a.trc", "--by", "kind"),
        ("missing.trc",),
        ("a.trc", "--format", "bogus"),
        ("no-waits.trc",),
        ("odd\tname.trc",),
    ],
    ids=" ".join,
)
def test_what_is_not_plain_is_pythons(words: tuple[str, ...], alone: Path, tmp_path: Path) -> None:
    text = trace(orders=3)
    (tmp_path / "a.trc").write_text(text)
    (tmp_path / "odd\tname.trc").write_text(text)
    (tmp_path / "torn.trc").write_text(text + "WAIT #1: nam='latch f\n" + text)
    (tmp_path / "text.trc").write_text("no trace at all\n")
    (tmp_path / "no-waits.trc").write_text("".join(line for line in text.splitlines(True) if "WAIT" not in line))
    assert LEFT in native(alone, "trace", "profile", *words, cwd=tmp_path)[2]
    assert native(PROGRAM, "trace", "profile", *words, cwd=tmp_path) == python("trace", "profile", *words, cwd=tmp_path)


def test_an_answer_goes_along_and_nothing_is_read_again(tmp_path: Path) -> None:
    """Python is given an answer that no file holds: it shows that, if the words are the same."""
    (tmp_path / "a.trc").write_text(trace(orders=3))
    done = dbdyno("trace", "profile", "a.trc", "--format", "json", cwd=tmp_path)
    found = json.loads(done.stdout)
    answer = {**found["facts"], "by": ["event"], "rows": found["profile"]["rows"], "calls": [], "lines": 12_345}
    for words, lines in (
        (["trace", "profile", "a.trc"], 12_345),
        (["trace", "profile", "b.trc"], found["facts"]["lines"]),
    ):
        given = json.dumps({"words": [*words, "--format", "json"], "answer": json.dumps(answer)})
        done = dbdyno("trace", "profile", "a.trc", "--format", "json", cwd=tmp_path, DBDYNO_READING=given)
        assert json.loads(done.stdout)["facts"]["lines"] == lines


Made = dict[str, bytes | dict[str, object]]


def imported(import_: Callable[..., Answer], cwd: Path, *files: object) -> tuple[Answer, Made]:
    """Return the output of an import, without its time, and the files that it wrote; remove the run."""
    told = import_("trace", "import", *files, "--out", "run", cwd=cwd)
    made: Made = {}
    for path in sorted((cwd / "run").rglob("*")):
        mode = path.stat().st_mode
        made[f"{path.relative_to(cwd)} {mode:o}"] = path.read_bytes() if path.is_file() else b""
        if path.name == "manifest.json":
            text = path.read_text()
            made[f"{path.name} {mode:o}"] = json.loads(text) | {"started_at": "", "keys": list(json.loads(text))}
            made[f"run/manifest.json {mode:o}"] = b"\n".join(
                line for line in path.read_bytes().splitlines() if b"started_at" not in line
            )
    assert [path.name for path in cwd.iterdir() if "import" in path.name] == []
    shutil.rmtree(cwd / "run", ignore_errors=True)
    return told, made


def test_an_import_is_made_and_told_as_python_does(alone: Path, tmp_path: Path) -> None:
    text = trace(orders=30)
    (tmp_path / "a.trc").write_text(text)
    (tmp_path / "b.trc").write_text(text.replace("tim=", "tim=1"))
    (tmp_path / "torn.trc").write_text(text + "WAIT #1: nam='latch f\n" + text)
    (tmp_path / "cut.trc").write_text(text + "WAIT #1: nam='latch f")
    for files in (["a.trc"], ["a.trc", "b.trc"], ["torn.trc"], ["cut.trc"], [tmp_path / "a.trc"]):
        told, made = imported(functools.partial(native, alone), tmp_path, *files)
        assert told[0] == (2 if files == ["torn.trc"] else 0)
        words, expected = imported(python, tmp_path, *files)
        assert (told, list(made)) == (words, list(expected)), files
        # Rows of two files that are read side by side stand in the order in which they came.
        whole = [name for name in made if len(files) == 1 or "manifest" in name]
        assert {name: made[name] for name in whole} == {name: expected[name] for name in whole}, files


@pytest.mark.parametrize(
    "words",
    [
        ("a.trc", "text.trc", "--out", "run"),
        ("text.trc", "--out", "run"),
        ("a.trc", "--out", "taken"),
        ("a.trc", "--out", "run", "--binds"),
        ("a.trc", "--out", "missing/run"),
        ("a.trc", "--out", "left"),
        ("a.trc", "--out", "./run"),
        ("missing.trc", "--out", "run"),
        ("a.trc",),
    ],
    ids=" ".join,
)
def test_an_import_that_is_not_plain_is_pythons(words: tuple[str, ...], alone: Path, tmp_path: Path) -> None:
    (tmp_path / "a.trc").write_text(trace(orders=3))
    (tmp_path / "text.trc").write_text("no trace at all\n")
    (tmp_path / "taken").write_text("mine")
    (tmp_path / ".left.importing-00000000").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert LEFT in native(alone, "trace", "import", *words, cwd=tmp_path)[2]
    assert sorted(tmp_path.rglob("*")) == before


def test_an_import_that_cannot_be_written_is_pythons(alone: Path, tmp_path: Path) -> None:
    """No file may grow beyond a few bytes; what was begun is gone."""
    (tmp_path / "a.trc").write_text(trace(orders=30))
    limited = ["prlimit", "--fsize=500", "--", alone, "trace", "import", "a.trc", "--out", "run"]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert LEFT in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.trc"]


def importing(program: Path, file: Path, out: Path) -> subprocess.Popen[str]:
    """Return a stopped import that has created and labelled its folder; restart imports that ended before that."""
    for _ in range(50):
        words = [program, "trace", "import", file, "--out", out]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            notes = out.parent.glob(f".{out.name}.importing-*/.maker.json")
            if any(note.stat().st_size for note in notes if note.exists()) and _hears(process.pid, signal.SIGTERM):
                os.kill(process.pid, signal.SIGSTOP)
                if not out.exists():
                    return process
                os.kill(process.pid, signal.SIGCONT)
            time.sleep(0.001)
        assert process.communicate()[1].startswith("next: ")
        shutil.rmtree(out)
    raise AssertionError("every one of 50 imports had ended before it was looked at")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_import_that_is_ended_leaves_nothing(number: signal.Signals, alone: Path, big: Path, tmp_path: Path) -> None:
    """Or a whole run, where the signal came at the very end."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("whoever started the tests wants it ignored, and so does what they start")
    for _ in range(50):
        process = importing(alone, big, tmp_path / "run")
        process.send_signal(number)
        os.kill(process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        if process.returncode:
            break
        assert [path.name for path in tmp_path.iterdir()] == ["run"]
        shutil.rmtree(tmp_path / "run")
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_import_left_is_known_as_a_dead_ones(alone: Path, big: Path, tmp_path: Path) -> None:
    """Its note names the process as Python's notes do: the next import takes it away, and none of a living one."""
    process = importing(alone, big, tmp_path / "run")
    (left,) = tmp_path.iterdir()
    assert not staging._is_dead(left)
    process.kill()
    process.communicate()
    assert staging._is_dead(left)
    (tmp_path / "a.trc").write_text(trace(orders=3))
    told = native(PROGRAM, "trace", "import", "a.trc", "--out", "run", cwd=tmp_path)
    assert told[0] == 0 and sorted(path.name for path in tmp_path.iterdir()) == ["a.trc", "run"]


def test_other_commands_are_pythons_under_the_users_name(tmp_path: Path) -> None:
    code, out, _ = native(PROGRAM, "trace", "--help", cwd=tmp_path)
    assert code == 0 and out.startswith("Usage: dbdyno trace ")


def test_ctrl_c_and_its_like_end_a_reading_with_a_word(alone: Path, big: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        words = [alone, "trace", "profile", big]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not _hears(process.pid, signal.SIGHUP) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (130, "", "interrupted\n")


def _hears(pid: int, number: int) -> bool:
    """Return True if the process catches the signal by now."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def test_a_pipe_that_nobody_reads_is_no_error(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "a.trc").write_text(trace(orders=3))
    reading, writing = os.pipe()
    os.close(reading)
    words = [alone, "trace", "profile", tmp_path / "a.trc"]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
