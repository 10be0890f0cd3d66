"""`dbdyno runs` of the native program: its answers equal Python's byte for byte, and all others are Python's."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import shutil
import struct
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import on_a_terminal
from dbdyno.bench.engine import unrestored_settings
from dbdyno.evidence.run import this_process
from fresh_dice import fresh_dice
from manners.native_records import PLACE, records
from native_program import LEFT, PROGRAM, native, python

WIDTHS = ("", "1", "40", "80", "97", "110", "120", "150", "200", "400")
FORMS = ((), ("--format", "table"), ("--json",), ("--format=csv",), ("--format", "jsonl"))
WORDS = ("redo", "size", "−3.4\u202f%", "a,b", 'says "so"', "Ærøskøbing", "(95 % 1.2 to 3.4)", "10:02", "α→β")
LONG = "an-unusually-long-word-which-no-column-of-a-table-can-hold-on-one-line"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program without Python in its folder, so that it can give only its own answers."""
    return Path(shutil.copy2(PROGRAM, tmp_path_factory.mktemp("alone") / "dbdyno"))


def block(number: int, kind: str = "measure", **more: Any) -> dict[str, Any]:
    slices = [{"arm": 0, "slice": 0, "counts": True, "watched": False}, {"arm": 1, "slice": 1}]
    return {"index": number, "kind": kind, "started_ns": 1, "ended_ns": 2, "rows": 3, "slices": slices, **more}


def made(folder: Path, name: str = "one", blocks: int = 0, **manifest: Any) -> Path:
    """Make a run folder with some values of a manifest, and with a warm-up and this many blocks that count."""
    (path := folder / "runs" / name / "blocks").mkdir(parents=True)
    started = {"schema": 1, "status": "complete", "started_at": "2026-11-01T10:02:11.5+00:00", "title": name}
    (path.parent / "manifest.json").write_text(json.dumps(started | manifest, ensure_ascii=False))
    for number in range(blocks + 1) if blocks else ():
        record = block(number, "measure" if number else "warmup", marks=["x"], report={"a": 1.5}, canaries={})
        (path / f"b{number:06d}.json").write_text(json.dumps(record))
    return path.parent


def alike(alone: Path, cwd: Path, *words: object, **environment: str) -> str:
    """Return what both answer, which must be the same."""
    told = native(alone, "runs", *words, cwd=cwd, **environment)
    assert told == python("runs", *words, cwd=cwd, **environment), words
    return told[1] + told[2]


def everywhere(alone: Path, cwd: Path) -> None:
    for form in FORMS:
        alike(alone, cwd, *form)
    for columns in WIDTHS:
        alike(alone, cwd, COLUMNS=columns)


def test_the_keys_that_it_checks_are_those_of_python() -> None:
    """Where they differ, `python tests/manners/native_records.py` writes them anew."""
    assert PLACE.read_text() == records()


def test_no_run_is_said_to_be_none(alone: Path, tmp_path: Path) -> None:
    assert alike(alone, tmp_path) == "no runs below runs/; `dbdyno run redo-size` makes one\n"
    (tmp_path / "runs" / "empty").mkdir(parents=True)
    everywhere(alone, tmp_path)
    assert "no runs below other/folder/" in alike(alone, tmp_path, "--runs", "other/folder")


def test_one_run_is_listed(alone: Path, tmp_path: Path) -> None:
    verdict = {"headline": "two is 24.5 % faster than one in throughput (95 % 18.3 to 31.0 %, 6 blocks).", "word": "x"}
    made(tmp_path, "2026-11-28T18-18-03Z-kept-for-later-versions-1cee", 6, blocks_planned=6, verdict=verdict)
    assert " complete " in alike(alone, tmp_path) and "  6/6  " in alike(alone, tmp_path)
    everywhere(alone, tmp_path)


def test_many_runs_are_listed_by_their_start(alone: Path, tmp_path: Path) -> None:
    for at, start in enumerate((3, 1, 2, 2)):
        made(tmp_path, f"run-{at}", blocks=at, started_at=f"2026-11-0{start}T10:00:00+00:00", blocks_planned=20)
    made(tmp_path, "imported", kind="trace", format="oracle 10046")
    made(tmp_path, "of-a-later-version", schema=2)
    made(tmp_path, "cut").joinpath("manifest.json").write_text('{"schema": 1, "title": "cu')
    (tmp_path / "runs" / "notes.txt").write_text("no run")
    everywhere(alone, tmp_path)
    names = [row["run"] for row in json.loads(alike(alone, tmp_path, "--json"))]
    assert names == ["run-1", "imported", "run-2", "run-3", "run-0"]
    for limit in ("1", "3", "5", "99"):
        assert len(json.loads(alike(alone, tmp_path, "--json", "--limit", limit))) == min(int(limit), 5)
    alike(alone, tmp_path, "--runs", tmp_path / "runs")
    alike(alone, tmp_path / "runs", "--runs", ".", "--json")


def test_a_run_whose_process_ended_is_aborted(alone: Path, tmp_path: Path) -> None:
    sleeping = subprocess.Popen(["sleep", "60"])
    alive = this_process(sleeping.pid)
    made(tmp_path, "alive", status="running", process=alive, blocks_planned=3)
    made(tmp_path, "another", status="running", process={**alive, "started": "boot:1"})
    made(tmp_path, "without", status="running")
    made(tmp_path, "null", status="running", process=None)
    made(tmp_path, "unknown", status="running", process={"pid": sleeping.pid, "started": None})
    try:
        found = {row["run"]: row["status"] for row in json.loads(alike(alone, tmp_path, "--json"))}
    finally:
        sleeping.kill()
        sleeping.wait()
    assert {name for name, status in found.items() if status == "running"} == {"alive", "unknown"}
    assert '"running"' not in alike(alone, tmp_path, "--json")
    everywhere(alone, tmp_path)


def test_names_and_titles_of_all_languages_are_shown(alone: Path, tmp_path: Path) -> None:
    made(tmp_path, "Ærøskøbing", title="Größe, naïve − “kept” … α→β", verdict={"headline": "−3.4\u202f% \u2264 2"})
    everywhere(alone, tmp_path)
    assert "no runs below" not in alike(alone, tmp_path, LANG="de_DE.UTF-8", LC_ALL="")
    made(tmp_path, "日本", title="幅の広い文字")
    for form in FORMS[2:]:
        alike(alone, tmp_path, *form)
    assert LEFT in native(alone, "runs", cwd=tmp_path)[2]
    assert LEFT in native(alone, "runs", "--json", cwd=tmp_path, LC_ALL="de_DE.ISO-8859-1")[2]


@pytest.mark.parametrize(
    "words",
    [
        ("--plan", "a.toml"),
        ("--from", "7d"),
        ("--csv-safe",),
        ("--format", "arrow"),
        ("--format", "bogus"),
        ("-o", "out.csv"),
        ("--limit", "0"),
        ("--limit", "many"),
        ("--runs", "a.toml"),
        ("--runs", ""),
        ("--json", "--json"),
        ("--help",),
        ("import",),
        ("--bogus",),
    ],
    ids=" ".join,
)
def test_other_words_are_pythons(words: tuple[str, ...], alone: Path, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("")
    made(tmp_path, "one")
    assert LEFT in native(alone, "runs", *words, cwd=tmp_path)[2]


def _of_a_process(folder: Path) -> None:
    made(folder, "two", status="running", process={"pid": True})


def _changed(folder: Path) -> None:
    made(folder, "two", status="aborted", server_settings=[{"target": "x"}])


UNUSUAL: dict[str, Callable[[Path], object]] = {
    "a value of another type": lambda folder: made(folder, "two", title=3),
    "a title with an escape": lambda folder: made(folder, "two", title="a\x1b[1mb"),
    "markup": lambda folder: made(folder, "two", title="[bold]a[/bold]"),
    "an emoji": lambda folder: made(folder, "two", title="a :100: b"),
    "a column of numbers": lambda folder: made(folder, "two", title="1") and (folder / "runs/one").rename(folder / "x"),
    "a verdict without words": lambda folder: made(folder, "two", verdict={"headline": None}),
    "a number as status of a process": _of_a_process,
    "settings that were left changed": _changed,
    "no valid JSON": lambda folder: made(folder, "two").joinpath("manifest.json").write_text("{NaN"),
    "a block that is not one": lambda folder: made(folder, "two").joinpath("blocks/b000001.json").write_text("{}"),
    "a block with an unknown key": lambda folder: (
        made(folder, "two").joinpath("blocks/b000001.json").write_text(json.dumps(block(1, other=2)))
    ),
    "a block cut short": lambda folder: made(folder, "two").joinpath("blocks/b000001.json").write_text('{"index": 1'),
    "a name that is no text": lambda folder: (folder / "runs" / os.fsdecode(b"\xff")).mkdir(),
}


@pytest.mark.parametrize("unusual", UNUSUAL)
def test_what_is_not_usual_is_pythons(unusual: str, alone: Path, tmp_path: Path) -> None:
    made(tmp_path, "one", blocks=2)
    alike(alone, tmp_path)
    UNUSUAL[unusual](tmp_path)
    assert LEFT in native(alone, "runs", cwd=tmp_path)[2]
    assert native(PROGRAM, "runs", cwd=tmp_path) == python("runs", cwd=tmp_path)


def test_settings_that_were_put_back_are_no_reason_to_ask_python(alone: Path, tmp_path: Path) -> None:
    path = made(tmp_path, "one", status="aborted", server_settings=[{"target": "x"}])
    (path / "put_back.json").write_text("{}")
    made(tmp_path, "two", status="aborted", server_settings=[{"target": "x"}], settings_put_back=True)
    made(tmp_path, "three", status="complete", server_settings=[{"target": "x"}])
    made(tmp_path, "four", status="aborted", server_settings=[])
    everywhere(alone, tmp_path)


def test_a_record_of_changed_settings_is_pythons(alone: Path, tmp_path: Path) -> None:
    path = made(tmp_path, "one")
    setting = unrestored_settings.ChangedSetting("on", None, ("off",))
    unrestored_settings.write_new(unrestored_settings.new_record("x", "y", {"fsync": setting}, str(path)))
    assert LEFT in native(alone, "runs", cwd=tmp_path)[2]
    state = {"DBDYNO_STATE": "", "XDG_STATE_HOME": "", "HOME": str(tmp_path)}
    assert "complete" in alike(alone, tmp_path, **state)
    (tmp_path / ".local/state/dbdyno/owed").mkdir(parents=True)
    assert "complete" in alike(alone, tmp_path, **state)
    (tmp_path / ".local/state/dbdyno/owed/1.json").write_text("{}")
    assert LEFT in native(alone, "runs", cwd=tmp_path, **state)[2]


def shown(program: Path, cwd: Path, columns: int, *words: str, **environment: str) -> bytes:
    """Return what a command writes to a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    own = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"TERM": "xterm"} | environment
    with subprocess.Popen([program, *words], cwd=cwd, env=own, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        found = b""
        while part := _read(ours):
            found += part
    os.close(ours)
    assert process.returncode == 0
    return found


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # no process has it open any more
        return b""


def test_a_terminal_is_shown_what_python_shows(alone: Path, tmp_path: Path) -> None:
    made(tmp_path, "2026-11-28T18-18-03Z-kept-for-later-versions-1cee", 3, title="a title of some words", seed=1)
    made(tmp_path, "Ærøskøbing", verdict={"headline": " ".join(WORDS) * 3})
    for columns in (40, 80, 132, 250):
        for colours in ({}, {"NO_COLOR": "1"}):
            expected = on_a_terminal("runs", cwd=tmp_path, COLUMNS=str(columns), **colours)
            assert shown(alone, tmp_path, columns, "runs", **colours) == expected, columns
    assert shown(alone, tmp_path, 80, "runs", "--json") == on_a_terminal("runs", "--json", cwd=tmp_path)


def sentence(dice: random.Random, most: int) -> str:
    found = dice.choices(WORDS, k=dice.randrange(most))
    if dice.random() < 0.1:
        found.insert(dice.randrange(len(found) + 1), LONG)
    return dice.choice((" ", "  ", "\u202f", " ")).join(found)


def manifest_of(dice: random.Random) -> dict[str, Any]:
    """Return random values of a manifest; in a tenth of all keys of a type that dbdyno does not write."""
    values: dict[str, Callable[[], object]] = {
        "schema": lambda: dice.choice((1, 1, 1, 1, 1, 2)),
        "kind": lambda: dice.choice(("", "trace", "cells")),
        "status": lambda: dice.choice(("running", "complete", "aborted")),
        "started_at": lambda: f"2026-11-{dice.randrange(10, 14)}T10:02:11.{dice.randrange(99)}+00:00",
        "title": lambda: sentence(dice, 9),
        "verdict": lambda: dice.choice((None, {}, {"headline": sentence(dice, 20), "word": "x"})),
        "process": lambda: dice.choice((None, {}, {"pid": 1 << 22, "started": "x"}, {"started": None})),
        "blocks_planned": lambda: dice.randrange(30),
        "plan": lambda: {"arms": [], "text": '\n"\u2028', "rate": 1e300},
        "server_settings": lambda: dice.choice(([], [], [], [{"target": "x"}])),
        "settings_put_back": lambda: dice.random() < 0.5,
        "wall_s": lambda: dice.choice((3, 4.5)),
        "seal": lambda: dice.choice((None, "ab")),
        "unknown": lambda: dice.choice(([], {}, 3, None)),
    }
    other = (3, 4.5, True, None, "text", [], {}, 1 << 70, -1)
    chosen = [name for name in values if dice.random() < (0.95 if name == "schema" else 0.7)]
    wrong = dice.random() < 0.2
    return {name: dice.choice(other) if wrong and dice.random() < 0.1 else values[name]() for name in chosen}


def test_what_it_answers_itself_is_what_python_says(alone: Path, tmp_path: Path) -> None:
    dice = fresh_dice()
    answered = at = 0
    while answered < 25:
        at += 1
        assert at < 400, f"it answers {answered} of {at} folders itself"
        folder = tmp_path / str(at)
        for number in range(dice.choice((1, 1, 2, 7))):
            path = made(folder, f"{number}-{dice.choice((*WORDS[:2], LONG))}", dice.choice((0, 2)))
            (path / "manifest.json").write_text(json.dumps(manifest_of(dice), ensure_ascii=False))
        words, columns = dice.choice((*FORMS, (), ())), str(dice.choice((dice.randrange(20, 300), "")))
        told = native(alone, "runs", *words, cwd=folder, COLUMNS=columns)
        if LEFT not in told[2]:
            answered += 1
            assert told == python("runs", *words, cwd=folder, COLUMNS=columns), (at, words, columns)
