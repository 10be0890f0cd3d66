"""Damaged ledgers, of what is owed to a server and of a move, are told or passed over, and never a crash."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from test_trust import JUNK, mutated

from dbdyno.bench.engine import owed
from dbdyno.errors import MoveError
from dbdyno.move.ledger import INNER, Ledger


@given(seed=st.integers(0, 2**32), junk=JUNK)
@settings(max_examples=300, deadline=None)
def test_a_damaged_record_of_what_is_owed_is_none(tmp_path_factory: Any, seed: int, junk: Any) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "owed.json"
    record = owed.begun("host=h", "7", {"work_mem": owed.Kept("4MB", None, ("8MB",))}, "runs/x")
    dice = random.Random(seed)
    path.write_text(json.dumps(mutated(owed.to_json(record), dice, junk)))
    if dice.random() < 0.2:
        raw = bytearray(path.read_bytes())
        raw[dice.randrange(len(raw))] = dice.randrange(256)
        path.write_bytes(raw)
    found = owed.read(path)
    assert found is None or (found.state in ("held", "retrying", "left") and isinstance(found.names, str))


@given(seed=st.integers(0, 2**32), junk=JUNK)
@settings(max_examples=300, deadline=None)
def test_a_damaged_ledger_of_a_move_is_an_error_with_words(tmp_path_factory: Any, seed: int, junk: Any) -> None:
    folder: Path = tmp_path_factory.getbasetemp() / "job"
    if not folder.exists():
        chunk = {"number": 0, "table": 0, "relation": 0, "file": "part-0.parquet", "bytes": 1}
        plan = {"id": "x", "source": "s", "tables": [{"name": "t"}], "chunks": [chunk]}
        Ledger.create(folder, {"status": "running", "plan": plan, "snapshots": [{"id": "1"}]}).save()
        (folder / "whole.json").write_bytes((folder / INNER / "manifest.json").read_bytes())
    whole = json.loads((folder / "whole.json").read_bytes())
    (folder / INNER / "manifest.json").write_text(json.dumps(mutated(whole, random.Random(seed), junk)))
    try:
        Ledger.open(folder).records()
    except MoveError as error:
        assert error.message
