"""The runner, resume, gates and verdicts, on a bench whose true values are in its script: no server, no waiting."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno.base.errors import EvidenceError, PlanError, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.signals import Interrupted
from dbdyno.bench.kinds import KINDS, Kind, kind_of
from dbdyno.bench.mock.bench import MockBench
from dbdyno.bench.recorder import RepeatBlockError
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.analysis.pair import analyse_pair
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Plan
from dbdyno.study.run.execute import aa_plan, resume, start
from mock_plans import mock_plan, two_arms


def plan(other: str = "mean_us = 1100", *, every: str = "", blocks: int = 8) -> Plan:
    arms = f'[[arm]]\nname = "base"\n[[arm]]\nname = "other"\nparameters = {{{other}}}\n'
    return parse_plan(mock_plan(arms, blocks=blocks, parameters=every), Path("plan.toml"))


def judged(made: Plan, folder: Path) -> JsonObject:
    return analyse(start(made, folder, seed=1))


def calls(run: Run) -> list[bytes]:
    return [path.read_bytes() for path in sorted((run.path / "calls").glob("b*.parquet"))]


def failed(model: JsonObject) -> set[str]:
    return {gate["code"] for gate in model["gates"] if gate["ok"] is False}


class Watched(MockBench):
    """Mock bench that fails on request, and counts how often it was restored."""

    wrong: Iterator[BaseException | None] = iter(())
    back = 0

    def run(self, turns: Any, recorder: Any) -> None:
        super().run(turns, recorder)
        if error := next(type(self).wrong, None):
            raise error

    def restore(self) -> None:
        type(self).back += 1


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    """Make the kind `mock` use a bench that fails when a test requests it."""
    row = KINDS["mock"]
    monkeypatch.setattr(Kind, "load_bench", lambda kind: Watched if kind is row else pytest.fail("another kind"))
    monkeypatch.setattr(Watched, "back", 0)
    return Watched


def test_a_difference_in_the_script_is_the_verdict(tmp_path: Path):
    model = judged(plan(), tmp_path)
    row = next(m for m in model["metrics"] if m["metric"] == "mean")
    assert row["low"] < 1.1 < row["high"]
    assert model["verdict"]["decision"] == "slower"


def test_an_arm_against_itself_has_a_noise_floor(tmp_path: Path):
    assert judged(aa_plan(plan()), tmp_path)["verdict"]["decision"] == "noise floor"


@pytest.mark.parametrize(
    ("planted", "gate"),
    [("errors = 0.5", "errors"), ("stall_block = 4, stall_ms = 90000.0", "stall")],
)
def test_what_is_planted_in_an_arm_fails_its_gate(tmp_path: Path, planted: str, gate: str):
    model = judged(plan(planted), tmp_path)
    assert gate in failed(model), model["gates"]


def test_a_drift_of_both_arms_is_told_beside_the_verdict_on_their_ratio(tmp_path: Path):
    """Arms alternate within blocks: both became three times as slow, and one stayed half as slow again as the other."""
    model = judged(plan("mean_us = 1500, drift = 2.0", every="drift = 2.0", blocks=16), tmp_path)
    assert model["verdict"]["decision"] == "slower"
    assert "drift" in failed(model) and "level" not in failed(model), model["gates"]


def test_a_drift_of_the_base_alone_takes_the_verdict_away(tmp_path: Path):
    model = judged(plan("mean_us = 1500, drift = 0.0", every="drift = 2.0", blocks=16), tmp_path)
    assert model["verdict"]["decision"] == "no verdict"
    assert "other against base moved with it" in model["verdict"]["headline"]
    assert "level" in failed(model), model["gates"]


def test_of_counted_turns_no_time_is_foretold(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """insert-size began with "13 blocks, about 5 s", the pauses between its turns alone; then it had 8 min left."""
    from dbdyno.study.run.progress import LineProgress

    for length, said in (('turn = "100ms"', ", about "), ("turn_transactions = 5", "")):
        text = two_arms(blocks=2, turn="100ms").replace('turn = "100ms"', length)
        made = parse_plan(text, Path("plan.toml"))
        start(made, tmp_path / length[:6], LineProgress(sys.stderr), seed=1)
        first = capsys.readouterr().err.splitlines()[-4]
        assert first.partition(" 3 blocks")[2].startswith(said) and (said or first.endswith("3 blocks")), first


def test_the_same_seed_gives_the_same_evidence(tmp_path: Path):
    one, two = (start(plan(), tmp_path / name, seed=1) for name in ("one", "two"))
    other = start(plan(), tmp_path / "three", seed=2)
    assert calls(one) == calls(two) != calls(other)


def test_a_run_that_is_stopped_is_put_back_and_its_rest_is_as_if_it_had_not_been(
    tmp_path: Path, watched: type[Watched], monkeypatch: pytest.MonkeyPatch
):
    class Asks:
        """Progress that sends a signal after the third block."""

        blocks = 0

        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

        def block(self, *_: Any) -> None:
            self.blocks += 1
            if self.blocks == 3:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        start(plan(), tmp_path / "cut", Asks(), seed=1)
    (path,) = (tmp_path / "cut").iterdir()
    run = Run.open(path)
    assert (run.status, len(run.blocks()), watched.back > 0) == ("aborted", 3, True)
    run = resume(run)
    assert (run.status, run.manifest.resumed) == ("complete", [3])
    assert calls(run) == calls(start(plan(), tmp_path / "whole", seed=1))
    with pytest.raises(PlanError, match="is complete"):
        resume(run)


def test_a_block_that_does_not_count_is_run_again_and_says_so(tmp_path: Path, watched: type[Watched]):
    watched.wrong = iter([None, None, RepeatBlockError("somebody changed a setting")])
    run = start(plan(), tmp_path, seed=1)
    assert [bool(block.marks) for block in run.blocks()] == [False, False, True, *[False] * 6]


def test_a_block_that_never_counts_ends_the_run_and_all_is_put_back(tmp_path: Path, watched: type[Watched]):
    watched.wrong = iter([None, *[RepeatBlockError("somebody changed a setting")] * 3])
    with pytest.raises(RepeatBlockError):
        start(plan(), tmp_path, seed=1)
    (path,) = tmp_path.iterdir()
    run = Run.open(path)
    assert (run.status, len(run.blocks()), watched.back > 0) == ("aborted", 1, True)
    assert len(calls(run)) == 1, "nothing of the block that did not count is left"


def test_an_arm_of_which_nothing_goes_well_ends_the_run_after_one_block(tmp_path: Path):
    with pytest.raises(TargetError, match="transactions failed in the first block"):
        start(plan("errors = 1.0"), tmp_path, seed=1)


def test_what_a_mock_cannot_run_is_told_with_the_reason(tmp_path: Path):
    with pytest.raises(PlanError, match="no parameter 'colour'"):
        start(plan('colour = "red"'), tmp_path)
    with pytest.raises(PlanError, match="is not a shape"):
        start(plan('shape = "round"'), tmp_path)
    assert not list(tmp_path.iterdir())


def test_targets_are_told_apart_by_the_table():
    named = {"model:x": "model", "cells:a,b": "cells", "host": "host", "hosts": "postgres", "mock:": "mock"}
    assert {target: kind_of(target).name for target in named} == named
    assert kind_of(None).name == "postgres"


def test_a_run_of_a_kind_that_is_not_known_says_so(tmp_path: Path):
    run = start(plan(), tmp_path, seed=1)
    run.save(bench="anvil", status="aborted")
    with pytest.raises(EvidenceError, match="'anvil'"):
        resume(run)


def test_a_run_against_itself_says_so_and_each_gate_whose_it_is(tmp_path: Path):
    one, two = (
        start(plan("", every="drift = 2.0", blocks=12), tmp_path / name, seed=seed)
        for name, seed in (("a", 1), ("b", 2))
    )
    assert [own["code"] for own in analyse_pair(one, one)["warnings"]] == ["same run"]
    model = analyse_pair(one, two)
    assert [own["code"] for own in model["warnings"]] == ["not interleaved"]
    drifts = [gate["text"] for gate in model["gates"] if gate["code"] == "level"]
    assert len(drifts) == 2 and all(run.id[-4:] in text for run, text in zip((one, two), drifts, strict=True))
    assert sum(gate["code"] == "cut off" for gate in model["gates"]) == 1
