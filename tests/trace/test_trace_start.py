"""A profile that started before the command line was parsed gives the same answer, or none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from trace_text import trace

from command_line import dbdyno
from dbdyno.trace import early_read

PLAIN = (
    ("a.trc",),
    ("a.trc", "b.trc"),
    ("--format", "json", "a.trc"),
    ("a.trc", "--format=csv"),
    ("a.trc", "--format", "jsonl", "b.trc"),
    ("a.trc", "--skew"),
    ("a.trc", "-o", "out.json"),
    ("torn.trc",),
    ("a.trc", "torn.trc", "--format", "json"),
    ("text.trc",),
)
OTHERS = (
    (),
    ("missing.trc",),
    ("folder",),
    ("*.trc",),
    ("-",),
    ("--", "a.trc"),
    ("a.trc", "--by", "kind"),
    ("a.trc", "--by", "bucket(elapsed_us, 2)"),
    ("a.trc", "--top", "1"),
    ("a.trc", "--where", "event = 'latch free'"),
    ("a.trc", "--depth", "0"),
    ("a.trc", "--think-time", "5us"),
    ("a.trc", "--tim-unit", "10ms"),
    ("a.trc", "--buckets", "2"),
    ("a.trc", "--recipe", "list"),
    ("a.trc", "-oout.json"),
    ("--help",),
)
REFUSED = (
    ("a.trc", "--format", "bogus"),
    ("a.trc", "--format"),
    ("a.trc", "-o"),
    ("a.trc", "-o", "out.pdf"),
    ("a.trc", "--skew", "--bogus"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = tmp_path_factory.mktemp("start")
    (own / "folder").mkdir()
    text = trace(orders=3)
    for name in ("a.trc", "b.trc", "folder/c.trc"):
        (own / name).write_text(text)
    (own / "torn.trc").write_text(text + "WAIT #1: nam='latch f\n" + text)
    (own / "text.trc").write_text("no trace at all\n")
    return own


@pytest.mark.parametrize("words", [*PLAIN, *OTHERS, *REFUSED], ids=" ".join)
def test_a_profile_begun_ahead_says_what_one_begun_later_says(words: tuple[str, ...], folder: Path):
    with mock.patch.object(early_read, "begin_reading"):
        later = dbdyno("trace", "profile", *words, cwd=folder)
    kept = {path.name: path.read_bytes() for path in folder.glob("out.*")}
    begun = dbdyno("trace", "profile", *words, cwd=folder)
    assert (begun.returncode, begun.stdout, begun.stderr) == (later.returncode, later.stdout, later.stderr)
    assert {path.name: path.read_bytes() for path in folder.glob("out.*")} == kept


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_a_plain_profile_takes_the_reading_that_is_under_way(words: tuple[str, ...], folder: Path):
    """Would fail where the defaults of the command and those of `ahead` part."""
    seen = []
    with mock.patch.object(early_read, "take_reading", lambda *told: seen.append(found := _taken(*told)) or found):
        dbdyno("trace", "profile", *words, cwd=folder)
    assert [reading is not None for reading in seen] == [True]


_taken = early_read.take_reading


@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
def test_what_is_not_plain_is_not_begun(words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    early_read.begin_reading(words)
    assert not early_read._begun


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_was_begun_in_vain_is_ended(words: tuple[str, ...], folder: Path):
    assert dbdyno("trace", "profile", *words, cwd=folder).returncode == 2
    assert not early_read._begun


def test_the_start_imports_nothing_of_the_command_line():
    code = "import sys, dbdyno.entry, dbdyno.trace.early_read; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"click", "typing", "dataclasses", "inspect"} & set(done.stdout.split())


def test_an_import_asks_for_no_module_that_it_does_not_need(folder: Path, tmp_path: Path):
    """The package's own version cost 12 ms of imports (`email`, `zipfile`), half a dozen others as much again."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from dbdyno.entry import entry; entry()"
    words = ["trace", "import", str(folder / "a.trc"), "--out", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    needless = {
        "importlib.metadata",
        "email",
        "hashlib",
        "hmac",
        "secrets",
        "shutil",
        "socket",
        "tempfile",
        "rich",
        "duckdb",
    }
    assert not needless & set(done.stdout.split())


ENDING = """
import atexit, sys, threading, time
class Slow:
    def __del__(self): print("freed")
kept = Slow()
kept.circle = kept
from dbdyno import entry
from dbdyno.cli import main
def slow(): time.sleep(0.2); print("thread")
def command():
    print("command")
    atexit.register(print, "registered")
    threading.Thread(target=slow).start()
    {end}
main.entry = command
entry.entry()
"""


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("sys.exit(3)", 3, ["command", "thread", "registered"]),
        ("sys.exit()", 0, ["command", "thread", "registered"]),
        ("sys.exit('said')", 1, ["command", "thread", "registered", "freed"]),
        ("raise ValueError", 1, ["command", "thread", "registered", "freed"]),
    ],
)
def test_a_command_ends_at_once_after_its_threads_and_what_is_registered(end: str, code: int, words: list[str]):
    done = subprocess.run([sys.executable, "-c", ENDING.format(end=end)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (code, words)


def test_output_that_is_lost_at_the_end_is_no_success():
    code = ENDING.format(end="sys.exit()")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode


def test_a_command_that_asks_evidence_ends_without_a_word(folder: Path):
    """DuckDB's module tells of leaks if its objects are neither freed nor left alone."""
    words = [sys.executable, "-m", "dbdyno", "trace", "sql", str(folder / "a.trc"), "--format", "json"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stderr == ""
