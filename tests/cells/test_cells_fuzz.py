"""Any output of a cell or content of a file is read to its end, quickly, and yields only valid values.

The texts begin as what modelled cells print, in every form there is, and are then broken.
`make soak` does so for minutes; DYNO_FUZZ_S sets how long, DYNO_FUZZ_SEED which.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rig_help import cell
from test_cells_cellsrvstat import SAMPLE

from dbdyno.base.errors import CellsError
from dbdyno.cells.alerts import AlertMemory
from dbdyno.cells.commands import group_answers, script_of, shell_script_of
from dbdyno.cells.configuration import facts_in
from dbdyno.cells.diff import read_collection
from dbdyno.cells.documents import read_any
from dbdyno.cells.hosts import Host, hosts_of
from dbdyno.cells.iorm_plan import plan_of
from dbdyno.cells.listing import Listing
from dbdyno.cells.ssh import Answer

NASTY = [
    "\x00",
    "\x1b[2J",
    "²",
    "٣",
    "\ud800",
    "\ufeff",
    "\r",
    "\n",
    "\t",
    " " * 4000,
    "9" * 400,
    "1e999",
    "NaN",
    "-",
    ",",
    ":",
    "=",
    "==",
    "<",
    ">",
    "&",
    "&#27;",
    "&#x0;",
    "<![CDATA[",
    "<?xml",
    "]]>",
    "<!DOCTYPE a [",
    "[" * 3000,
    "{" * 3000,
    "]",
    "}",
    '"',
    "'",
    '"\\ud800"',
    "CELL-",
    "CELL-01504: x",
    "cel01: ",
    "zzz <",
    "===Current Time===",
    "== x stats ==",
    "END ",
    "_" * 300,
    "A_" * 300,
    "0001-01-01T00:00:00+00:00",
    "9999-12-31T23:59:59-23:59",
]
METRICS = "list metriccurrent attributes name, metricObjectName, metricValue, collectionTime"
ASKED = [
    METRICS,
    "list metriccurrent",
    "list metrichistory FL_RQ_W",
    "list metrichistory detail",
    "list cell detail",
    "list griddisk detail",
    "list flashcache",
    "list iormplan detail",
]


@functools.cache
def corpus() -> list[str]:
    """Return the output of a modelled cell: text, history, DETAIL and XML; the same as JSON; and cellsrvstat."""
    asked = cell(seconds=125)
    texts = [asked.answer(one)[0][:8000] for one in ASKED]
    texts += [asked.answer(one.replace(" detail", ""), xml=True)[0][:8000] for one in ASKED]
    rows = [
        {"name": r.name, "metricObjectName": r.object, "metricValue": r.text, "collectionTime": 1_430_673_687_318}
        for r in read_any(texts[1]).readings
    ]
    context = {"cell": "cel01", "ossStartTimestamp": "1430673687318"}
    texts.append(json.dumps({"cli-output": {"context": context, "metric": rows[:60]}}))
    through_dcli = "\n".join(f"cel0{at % 3}: {line}" for at, line in enumerate(texts[0].split("\n")))
    return [*texts, through_dcli, SAMPLE]


def broken(dice: random.Random) -> str:
    """Return one of the texts with random parts cut, doubled, joined or replaced by garbage."""
    text = dice.choice(corpus())
    for _ in range(dice.choice([1, 1, 2, 5, 20])):
        begin = dice.randrange(len(text) + 1)
        end = min(len(text), begin + dice.choice([1, 3, 20, 200, 2000]))
        middle = dice.choice(
            [
                lambda at, to, old=text: "",
                lambda at, to, old=text: dice.choice(NASTY) + old[at:to],
                lambda at, to, old=text: old[at:to] * dice.choice([2, 3, 10]),
                lambda at, to, old=text: dice.choice(corpus())[: dice.choice([20, 300])],
                lambda at, to, old=text: chr(dice.randrange(1, 0x300)),
            ]
        )
        text = text[:begin] + middle(begin, end) + text[end:]
        if dice.random() < 0.1:
            text = text[: dice.randrange(len(text) + 1)]
    return text


def check(found: Listing, text: str) -> None:
    """Check that a listing satisfies what a table, a page and a run folder require."""
    lines = text.count("\n") + 1
    for reading in found.readings:
        assert math.isfinite(reading.value)
        assert reading.name
        assert reading.at_ns is None or 0 <= reading.at_ns < 2**63
        assert 1 <= reading.line <= lines
    for entry in [*found.unread, *found.errors]:
        assert 1 <= entry.line <= lines
    for moment in found.started_ns.values():
        assert 0 <= moment < 2**63
    kept = [part for r in found.readings for part in (r.cell, r.name, r.object, r.unit)]
    kept += [part for one in found.details for pair in one.items() for part in pair]
    kept += [part for error in found.errors for part in (error.cell, error.message)]
    for part in kept:
        part.encode()  # no half of a pair
        assert not any(ord(c) < 32 and c not in "\t\n\r" for c in part)


def fuzz(texts: int, seed: int, *, seconds: float = math.inf) -> int:
    """Read that many broken texts, or until the time is up; return their number."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    end = time.monotonic() + seconds
    for count in range(texts):
        if time.monotonic() > end:
            return count
        text = broken(dice)
        began = time.process_time()
        try:
            check(read_any(text, "cel01"), text)
        except Exception:
            print(f"after {count} texts: {text!r}")
            raise
        took = time.process_time() - began
        assert took < 1.0, f"{took} s for {len(text)} characters: {text!r}"
    return texts


def other_readers(folder: Path) -> dict[str, Callable[[str], object]]:
    """Return all other readers of files from a cell or a user; each must read the file or raise an error of ours."""

    def from_a_file(read: Callable[[Path], object]) -> Callable[[str], object]:
        def work(text: str) -> object:
            file = folder / "given"
            file.write_bytes(text.encode("utf-8", "surrogatepass"))
            return read(file)

        return work

    return {
        "plan": lambda text: plan_of(text, "cel01"),
        "alerts": lambda text: AlertMemory().unreported("cel01", read_any(text).details),
        "facts": lambda text: facts_in(read_any(text).details),
        "regrouped": lambda text: group_answers(
            [Answer(Host(name, name), output=one) for name, one in (("a", text), ("b", text[::2]), ("c", text))]
        ),
        "hosts": lambda text: hosts_of([text.replace("@", "")]),
        "group": from_a_file(lambda file: hosts_of([f"@{file}"])),
        "script": from_a_file(script_of),
        "shell script": from_a_file(shell_script_of),
        "file": from_a_file(read_collection),
    }


def fuzz_others(texts: int, seed: int, folder: Path, *, seconds: float = math.inf) -> int:
    """Give that many broken texts to each of them, or until the time is up; return their number."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    readers = other_readers(folder)
    end = time.monotonic() + seconds
    for count in range(texts):
        if time.monotonic() > end:
            return count
        text, name = broken(dice), dice.choice(list(readers))
        began = time.process_time()
        try:
            with contextlib.suppress(CellsError):
                readers[name](text)
        except Exception:
            print(f"after {count} texts, {name}: {text!r}")
            raise
        assert time.process_time() - began < 1.0, f"{name}: {len(text)} characters: {text!r}"
    return texts


def test_no_text_breaks_the_other_readers_of_cells(tmp_path: Path):
    fuzz_others(300, random.randrange(2**32), tmp_path)


@pytest.mark.soak
def test_no_text_breaks_the_other_readers_of_cells_for_minutes(tmp_path: Path):
    seed = int(os.environ.get("DYNO_FUZZ_SEED", random.randrange(2**32)))
    print(fuzz_others(10**9, seed, tmp_path, seconds=float(os.environ.get("DYNO_FUZZ_S", "60"))), "texts")


def test_no_text_of_a_cell_breaks_the_readers():
    fuzz(800, random.randrange(2**32))


@pytest.mark.soak
def test_no_text_of_a_cell_breaks_the_readers_for_minutes():
    seed = int(os.environ.get("DYNO_FUZZ_SEED", random.randrange(2**32)))
    seconds = float(os.environ.get("DYNO_FUZZ_S", "300"))
    print(fuzz(10**9, seed, seconds=seconds), "texts")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "<a>" * 100_000,
        "FL_IO_W " + " " * 200_000 + "x",
        "A" + "_A" * 100_000,
        "cel01: " * 30_000,
        "name: " + "x: " * 60_000,
        "== " + " a" * 100_000,
        "\n" * 200_000,
        "1," * 100_000,
        "FL_IO_W FLASHLOG " + "9" * 300_000,
        "[a@b" + "x" * 200_000,
        "1_1 2012-10-12T14:33:45-04:00 " * 10_000,
        "FL_IO_W Cumulative FLASHLOG 5 normal\n" * 5_000,
        "name: FL_IO_W\nmetricValue: 5\n" * 5_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_text_of_one_kind_takes_time_by_its_length_and_not_its_square(text: str):
    began = time.process_time()
    check(read_any(text), text)
    assert time.process_time() - began < 2


def test_an_answer_cannot_write_to_the_terminal_by_control_characters():
    for text in (
        "FL_IO_W \x1b[2J 7 IO requests\n",
        '{"name": "FL_IO_W", "metricObjectName": "\\u001b[2J", "metricValue": 7}',
        "CELL-01504: \x1b]0;title\x07\n",
    ):
        check(read_any(text), text)


def test_a_number_too_large_for_any_counter_is_no_number():
    for text in ("FL_IO_W FLASHLOG " + "9" * 400, "FL_IO_W FLASHLOG 1e999"):
        found = read_any(text)
        assert not found.readings
        assert found.unread[0].why == "a metric without a value that can be read"
