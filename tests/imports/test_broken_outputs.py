"""Any content of a file is quickly read, or refused with the place of the error; what is read becomes a valid run.

The texts begin as outputs of every program and are then broken. `make soak` breaks more of them; DYNO_FUZZ_SEED sets
which.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from outputs_here import outputs

from dbdyno.base.errors import EvidenceError
from dbdyno.imports.readers import read_text
from dbdyno.imports.write import write_run
from dbdyno.study.analysis.measured.sums import measures_of

NASTY = [
    "\x00",
    "²",
    "٣",
    "\ud800",
    "\\ud800",
    "\r",
    "\n",
    "\t",
    "9" * 400,
    "1e999",
    "NaN",
    "-1",
    ",",
    '"',
    "{",
    "]",
    "null",
    "1.5",
]
SEED = int(os.environ.get("DYNO_FUZZ_SEED", random.SystemRandom().randrange(1 << 30)))


def broken(text: str, dice: random.Random) -> str:
    """Return the text with one to four parts cut out, doubled, moved, or replaced by something nasty."""
    for _ in range(dice.randint(1, 4)):
        a = dice.randrange(len(text) + 1)
        b = min(len(text), a + dice.choice((0, 1, 1, 2, 5, 40, 400)))
        text = text[:a] + dice.choice(("", "", text[a:b] * 2, *NASTY)) + text[b:]
    text = text if dice.random() < 0.8 else text[: dice.randrange(len(text) + 1)]
    return text.encode(errors="surrogatepass").decode(errors="replace")  # as a file is read


def break_all(rounds: int, folder: Path) -> tuple[int, int]:
    """Break every output `rounds` times; return how many were read, and how many were refused."""
    counts = [0, 0]
    for path in outputs():
        whole = path.read_text()
        for number in range(rounds):
            dice = random.Random(f"{SEED} {path.name} {number}")
            text = broken(whole, dice)
            try:
                found = read_text(text, path.name)
            except EvidenceError as error:
                assert path.name in str(error)
                counts[1] += 1
                continue
            counts[0] += 1
            found.ended_ns = found.ended_ns or 10**18
            if number % 8 == 0:
                run = write_run([(path.name, found)], folder / f"{path.name}-{number}", blocks=3)
                assert measures_of(run).arms
    return counts[0], counts[1]


def test_a_broken_output_is_read_or_refused_and_what_is_read_becomes_a_run(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    read, refused = break_all(5, tmp_path)
    assert read and refused


@pytest.mark.soak
def test_many_broken_outputs(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    read, refused = break_all(1000, tmp_path)
    assert read and refused
