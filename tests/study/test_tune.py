"""`dbdyno tune`: a race on a mock bench with known times, the winner in new blocks, and its plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import dbdyno, succeeded
from dbdyno.base.errors import PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan.confirmation import confirming_plan
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import plan_to_resume
from mock_plans import mock_plan


def plan(times_us: dict[str, float], folder: Path, *, blocks: int = 20, more: str = "") -> None:
    levels = ", ".join(f'{{name = "{name}", parameters = {{mean_us = {us}}}}}' for name, us in times_us.items())
    text = mock_plan(f'[[factor]]\nname = "memory"\nlevels = [{levels}{more}]\n', title="levels", blocks=blocks)
    (folder / "p.toml").write_text(text)


def manifest(folder: Path, which: str) -> JsonObject:
    (path,) = (path for path in (folder / "runs").iterdir() if ("race" in path.name) is (which == "race"))
    return json.loads((path / "manifest.json").read_text())


def test_the_best_of_sixteen_is_found_and_confirmed_in_fresh_blocks(tmp_path: Path):
    """Levels 5 % apart in a random order; a full design would have run every arm in every block."""
    order = [7, 2, 11, 0, 14, 5, 9, 3, 15, 1, 12, 6, 10, 4, 13, 8]
    plan({str(at): 1000 / 1.05**at for at in order}, tmp_path)
    done = succeeded("tune", "p.toml", "--seed", "3", cwd=tmp_path, COLUMNS="120")
    race = manifest(tmp_path, "race")["race"]
    assert race["ran"] <= 0.5 * 16 * 20
    assert order[race["leader"]] == 15
    assert "15 is best of 16" in done.stdout or "15 is ahead of 16" in done.stdout
    assert f"{race['ran']} turns were run, instead of 320 for every arm in all 20 blocks" in done.stdout
    assert "a verdict at 95 % takes at least" not in done.stdout, "a race holds its level after every block"
    assert "FASTER  15 is" in done.stdout, "the gain is that of fresh blocks"
    assert "to confirm it: dbdyno run confirm.toml" in done.stdout
    again = dbdyno("run", "confirm.toml", "--seed", "9", cwd=tmp_path)
    assert "FASTER" in again.stdout


def test_an_arm_that_fails_leaves_and_the_others_are_judged(tmp_path: Path):
    bad = ', {name = "broken", parameters = {mean_us = 100, errors = 0.5}}'
    plan({"1": 1000, "2": 500}, tmp_path, blocks=10, more=bad)
    done = succeeded("tune", "p.toml", "--seed", "3", cwd=tmp_path)
    race = manifest(tmp_path, "race")["race"]
    assert (race["leader"], race["failed"].keys()) == (1, {"broken"})
    assert "dropped: it failed" in done.stdout


def test_what_there_was_before_may_win_and_needs_no_confirmation(tmp_path: Path):
    plan({"now": 500, "other": 1000}, tmp_path)
    done = succeeded("tune", "p.toml", "--seed", "1", cwd=tmp_path)
    assert "now is best of 2, and is the setting from before the race" in done.stdout
    assert "nothing to confirm" in done.stdout
    assert not (tmp_path / "confirm.toml").exists()


def test_arms_that_blocks_cannot_tell_apart_are_said_to_be_so(tmp_path: Path):
    plan({"1": 1000, "2": 999, "3": 998}, tmp_path, blocks=5)
    done = dbdyno("tune", "p.toml", "--seed", "1", cwd=tmp_path)
    assert "CANNOT TELL" in done.stdout
    assert "could not distinguish the remaining arms" in done.stdout.replace("\n  ", " ")


def test_the_budget_ends_the_race(tmp_path: Path):
    plan({"1": 1000, "2": 1000}, tmp_path, blocks=10_000)
    with (tmp_path / "p.toml").open("a") as file:
        file.write("[verdict]\nthreshold = 0.0001\n")  # so that the two are never equal
    done = dbdyno("tune", "p.toml", "--seed", "1", "--budget", "300ms", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert manifest(tmp_path, "race")["race"]["end"] == "time"
    assert "the time was up" in done.stdout.lower()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--budget", "soon"), "'soon' is not a time"),
        (("--target", "host"), "does not run on"),
        (("--target", "model:none"), "model"),
    ],
)
def test_what_cannot_be_raced_is_refused(tmp_path: Path, arguments: tuple[str, ...], said: str):
    plan({"1": 1000, "2": 999}, tmp_path)
    done = dbdyno("tune", "p.toml", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_one_arm_has_nobody_to_race(tmp_path: Path):
    plan({"1": 1000}, tmp_path)
    done = dbdyno("tune", "p.toml", cwd=tmp_path)
    assert (done.returncode, "a race needs at least two arms, but the plan has one" in done.stderr) == (2, True)


@pytest.mark.soak
def test_more_than_64_arms_may_race_and_a_run_of_them_names_the_race(tmp_path: Path):
    plan({str(at): 1000 + at for at in range(70)}, tmp_path, blocks=4)
    assert "`dbdyno tune` races up to 256" in dbdyno("run", "p.toml", cwd=tmp_path).stderr
    done = dbdyno("tune", "p.toml", "--seed", "1", "--blocks", "4", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr


def test_a_race_that_was_cut_does_not_go_on(tmp_path: Path):
    from dbdyno.evidence.run import find_run

    plan({"1": 500, "2": 1000}, tmp_path, blocks=6)
    dbdyno("tune", "p.toml", "--seed", "1", cwd=tmp_path)
    run = find_run("last", tmp_path / "runs")
    run.save(status="aborted")
    with pytest.raises(PlanError, match="a stopped race cannot continue"):
        plan_to_resume(run)


class TestConfirmingPlan:
    def made(self, text: str, **more: Any):
        given = parse_plan(text, Path("p.toml"), **more)
        return given, confirming_plan(given, given.arms[0], given.arms[-1], 12)

    def test_it_is_the_text_with_two_arms_in_place_of_the_factors(self):
        text = (
            'design = "one-at-a-time"\ntitle = "t"\n[[factor]]\nsessions = [1, 2]\n[workload]\n'
            "scripts = [{name = \"s\", text = '''\nselect 1;\n[[not a table]]\n'''}]\n"
            '[[factor]]\nvariables.rows = ["a \\"b\\"", "c"]\n[verdict]\nlevel = 0.9\n'
        )
        given, made = self.made(text)
        assert made.toml
        assert "factor" not in made.toml
        again = parse_plan(made.toml, Path("c.toml"))
        assert again.arms == made.arms
        assert again.judge.level == 0.9
        assert again.workload == given.workload

    def test_text_that_would_read_otherwise_is_not_written(self):
        text = (
            "title = \"t\"\n[workload]\nscripts = [{name = \"s\", text = '''\n[[factor]]\nselect 1;\n'''}]\n"
            "[[factor]]\nsessions = [1, 2]\n"
        )
        _, made = self.made(text)
        assert made.toml == ""
