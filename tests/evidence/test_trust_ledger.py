"""Damaged records of changed settings and damaged ledgers of moves are reported or skipped, and never cause a crash."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_trust import JUNK, mutated

from command_line import dbdyno
from dbdyno.base.errors import MoveError
from dbdyno.bench.engine import unrestored_settings
from dbdyno.move.ledger.folder import INNER, Ledger
from dbdyno.move.loading.files import files_of
from dbdyno.move.proof.statement import check_files, recorded_proof
from fresh_dice import fresh_dice

SECONDS = 60
JUNKS = (None, True, -1, 2**70, 1e308, float("nan"), "", "x" * 5000, [], {}, [[]], {"a": {}}, "\x00", "../../etc")
RECORD = {"number": 0, "rows": 1, "file_bytes": 1, "hash": "0f", "file": "part-0.parquet", "snapshot": 0}


def attack_owed(path: Path, seed: int, junk: Any) -> None:
    """Write a record of changed settings with one part changed, and sometimes one byte, and read it."""
    record = unrestored_settings.new_record(
        "host=h", "7", {"work_mem": unrestored_settings.ChangedSetting("4MB", None, ("8MB",))}, "runs/x"
    )
    dice = random.Random(seed)
    path.write_text(json.dumps(mutated(unrestored_settings.to_json(record), dice, junk)))
    if dice.random() < 0.2:
        raw = bytearray(path.read_bytes())
        raw[dice.randrange(len(raw))] = dice.randrange(256)
        path.write_bytes(raw)
    found = unrestored_settings.read(path)
    assert found is None or (found.state in ("held", "retrying", "left") and isinstance(found.names, str))


def made_job(folder: Path) -> Path:
    """Return a finished job of one chunk, whose file is not valid Parquet."""
    chunk = {"number": 0, "table": 0, "relation": 0, "file": "part-0.parquet", "bytes": 1}
    plan = {"id": "x", "source": "s", "tables": [{"schema": "s", "name": "t"}], "chunks": [chunk]}
    ledger = Ledger.create(folder, {"status": "complete", "plan": plan, "snapshots": [{"id": "1", "at": "now"}]})
    ledger.save()
    ledger.record(RECORD)
    (folder / "part-0.parquet").write_bytes(b"PAR1")
    (folder / "whole.json").write_bytes((folder / INNER / "manifest.json").read_bytes())
    return folder


def attack_job(folder: Path, seed: int, junk: Any) -> None:
    """Change one part of the manifest or the record, and read both as `status`, `verify` and a load of the job's files
    do.
    """
    dice = random.Random(seed)
    whole, manifest = json.loads((folder / "whole.json").read_bytes()), folder / INNER / "manifest.json"
    in_manifest = dice.random() < 0.6
    manifest.write_text(json.dumps(mutated(whole, dice, junk) if in_manifest else whole))
    record = RECORD if in_manifest else mutated(RECORD, dice, junk)
    (folder / INNER / "chunks" / "00000.json").write_text(json.dumps(record))
    reads: tuple[Callable[[], object], ...] = (
        lambda: check_files(Ledger.open(folder), recorded_proof(Ledger.open(folder))).sentences(),
        lambda: files_of(folder),
    )
    for read in reads:
        try:
            read()
        except MoveError as error:
            assert error.message


@given(seed=st.integers(0, 2**32), junk=JUNK)
@settings(max_examples=120, deadline=None)
def test_a_damaged_record_of_what_is_owed_is_none(tmp_path_factory: Any, seed: int, junk: Any) -> None:
    attack_owed(tmp_path_factory.getbasetemp() / "owed.json", seed, junk)


@given(seed=st.integers(0, 2**32), junk=JUNK)
@settings(max_examples=120, deadline=None)
def test_a_damaged_ledger_of_a_move_is_an_error_with_words(tmp_path_factory: Any, seed: int, junk: Any) -> None:
    folder: Path = tmp_path_factory.getbasetemp() / "job"
    attack_job(folder if folder.exists() else made_job(folder), seed, junk)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["owed", "job"])
def test_damaged_ledgers_for_a_minute(tmp_path: Path, kind: str) -> None:
    dice, end, tried = fresh_dice(), time.monotonic() + SECONDS, 0
    place = tmp_path / "owed.json" if kind == "owed" else made_job(tmp_path / "job")
    attack = attack_owed if kind == "owed" else attack_job
    while time.monotonic() < end:
        attack(place, dice.randrange(2**32), dice.choice(JUNKS))
        tried += 1
    print(f"{tried:,} damaged ledgers ({kind})")


@pytest.mark.parametrize("place", [f"{INNER}/manifest.json", f"{INNER}/chunks/00000.json"])
@pytest.mark.parametrize("what", ["pipe", "/dev/zero", "deep"])
def test_what_is_no_file_in_the_place_of_a_ledger_hangs_nobody(tmp_path: Path, place: str, what: str) -> None:
    folder = made_job(tmp_path / "job")
    (folder / place).unlink()
    if what == "pipe":
        os.mkfifo(folder / place)
    elif what == "deep":
        (folder / place).write_text("[" * 100_000)
    else:
        (folder / place).symlink_to(what)
    for word in ("status", "verify"):
        done = dbdyno("move", word, folder)
        assert done.returncode == 2 and "internal error" not in done.stderr
        assert ("nested more deeply" if what == "deep" else "is not a file") in done.stderr


def test_a_record_does_not_say_which_file_is_loaded(tmp_path: Path) -> None:
    folder = made_job(tmp_path / "job")
    (folder / INNER / "chunks" / "00000.json").write_text(json.dumps({**RECORD, "file": "../other.parquet"}))
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    with pytest.raises(MoveError, match="not a record of this job"):
        files_of(folder)
