"""Only programs that the user named are run: the current folder is not trusted."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_folder import HostileFolder

from dbdyno.base.processes import child_environment, find_program, python_command, python_environment, search_folders
from mariadb_server import missing

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "dbdyno"
STARTERS = {
    "builds/bisect/cache.py",
    "builds/bisect/commits.py",
    "flow/pig_plans.py",
    "wide/sstable_load.py",
    "bench/flows/process.py",
    "base/processes.py",
    "cli/cells/setup_keys.py",
    "bench/engine/os_user.py",
    "bench/engine/embedded_server.py",
    "bench/postgres/binaries.py",
    "bench/clients/process.py",
    "bench/guardian.py",
    "bench/host/speed.py",
    "cuts/postgres.py",
    "cuts/processes.py",
    "device/mounts.py",
    "device/server.py",
    "bench/programs/bench.py",
    "move/database/programs.py",
    "rehearse/new_server.py",
    "rehearse/upgraded_server.py",
    "move/engines/postgres/snapshot_holder.py",
    "snapshot/sending/alerts.py",
    "ui/drawing.py",
    "ui/preparer.py",
}
"""Files that start processes; for a new file, add a command that tests it below."""

PLAN = """title = "hostile"
[workload]
scripts = [{name = "s", text = "select 1;"}]
[schedule]
blocks = 2
warmup_blocks = 0
turn = "40ms"
slice = "20ms"
settle = "10ms"
[watch]
overhead_blocks = 0
[[arm]]
name = "a"
[[arm]]
name = "b"
settings = {checkpoint_timeout = "7min"}
"""


@pytest.fixture
def hostile(tmp_path: Path) -> HostileFolder:
    folder = tmp_path / "shared"
    folder.mkdir()
    return HostileFolder(folder)


def dbdyno(hostile: HostileFolder, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as its console script does, with the folder first on PATH in three ways that could find it."""
    env = {**os.environ, "PATH": f".::{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("PYTHONPATH", None)
    return subprocess.run(
        [sys.executable, "-P", "-m", "dbdyno", *words],
        cwd=hostile.folder,
        env=env,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )


def test_a_run_with_a_guardian_and_a_server_runs_nothing_of_the_folder_it_is_started_in(hostile: HostileFolder) -> None:
    (hostile.folder / "plan.toml").write_text(PLAN)
    done = dbdyno(hostile, "run", "plan.toml")
    assert done.returncode in (0, 1), done.stderr
    assert hostile.taken == []


@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_a_run_with_a_server_of_mariadb_runs_nothing_of_the_folder_it_is_started_in(hostile: HostileFolder) -> None:
    plan = PLAN.replace("checkpoint_timeout", "innodb_io_capacity").replace("7min", "300")
    (hostile.folder / "plan.toml").write_text(plan)
    done = dbdyno(hostile, "run", "plan.toml", "--target", "mariadb")
    assert done.returncode in (0, 1), done.stderr
    assert hostile.taken == []


def test_a_page_s_picture_runs_nothing_of_the_folder_it_is_drawn_in(hostile: HostileFolder) -> None:
    pytest.importorskip("starlette", reason="starlette is not here; make setup-test")
    done = dbdyno(hostile, "ui", "--page", "/search?q=x", "-o", "page.png")
    assert done.returncode == 0, done.stderr
    assert (hostile.folder / "page.png").read_bytes().startswith(b"\x89PNG")
    assert hostile.taken == []


def test_a_run_of_commands_starts_no_program_of_the_folder_it_is_started_in(
    hostile: HostileFolder, tmp_path: Path
) -> None:
    """Neither a command found on PATH, nor what a script starts: it finds others by the PATH that it was given."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nls >/dev/null; uname >/dev/null\n")
    script.chmod(0o755)
    (hostile.folder / "plan.toml").write_text(
        'title = "c"\n[workload]\ncommand = "sleep 0.001"\n[schedule]\nblocks = 2\nturn = "40ms"\n'
        f'[[arm]]\nname = "found"\n[[arm]]\nname = "script"\ncommand = "{script}"\n'
    )
    done = dbdyno(hostile, "run", "plan.toml")
    assert done.returncode in (0, 1), done.stderr
    assert hostile.taken == []


def test_probes_of_a_host_run_nothing_of_the_folder_they_are_started_in(hostile: HostileFolder) -> None:
    done = dbdyno(hostile, "model", "calibrate", "--host", "--folder", ".", "--for", "2s", "-o", "host.toml")
    # A folder in memory is refused.
    assert done.returncode == 0 or "is in memory" in done.stderr, done.stderr
    assert hostile.taken == []


@pytest.mark.parametrize(
    "words",
    [
        ("doctor",),
        ("client", "check", "psycopg"),
        ("client", "list"),
        ("probe", "redo", "--help"),
        ("snap", "take", "--target", "postgresql://127.0.0.1:1/none"),
        ("cells", "setup-keys", "--help"),
        ("cells", "run", "--hosts", "127.0.0.1:1", "--timeout", "1", "list cell"),
        ("model", "show", "san"),
        ("rehearse", "postgresql://127.0.0.1:1/none", "--new", "version=17", "--load", "statements"),
        ("rehearse", "OLD", "--new", "version=18", "--upgrade", "copy=.", "--load", "statements"),
        ("studies",),
    ],
    ids=" ".join,
)
def test_a_command_runs_nothing_of_the_folder_it_is_started_in(hostile: HostileFolder, words: tuple[str, ...]) -> None:
    dbdyno(hostile, *words)
    assert hostile.taken == []


def test_the_guardian_imports_nothing_of_the_folder_it_is_started_in(hostile: HostileFolder) -> None:
    """Also with a PYTHONPATH that names the folder, in words or by an empty entry."""
    env = python_environment({**os.environ, "PYTHONPATH": f":{hostile.folder}", "PYTHONSTARTUP": "time.py"})
    done = subprocess.run(
        python_command("dbdyno.bench.guardian", "1"),
        cwd=hostile.folder,
        env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
        input=b'{"op": "push", "id": 1, "sequence": 1, "undo": {"type": "SqlUndo", "label": "x", "connection": {},'
        b' "statements": []}}\n{"op": "done"}\n',
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b'"problem": ""' in done.stdout, done.stderr
    assert hostile.taken == []


def test_what_holds_a_snapshot_imports_nothing_of_the_folder_it_is_started_in(hostile: HostileFolder) -> None:
    """The server that it is told to ask is none, so that it ends there, after all its imports."""
    nowhere = {"host": "127.0.0.1", "port": "1", "user": "u", "dbname": "d"}
    told = {"parameters": nowhere, "snapshot": "00000003-1", "seconds": 1, "manifest": str(hostile.folder / "none")}
    done = subprocess.run(
        python_command("dbdyno.move.engines.postgres.snapshot_holder"),
        cwd=hostile.folder,
        env={**python_environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        input=json.dumps(told).encode() + b"\n",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert hostile.taken == []


def test_a_pg_dump_of_the_folder_is_not_run(hostile: HostileFolder) -> None:
    """Neither where programs are looked for, nor by an empty entry of PATH."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from dbdyno.move.database.programs import find_programs; find_programs(10)"],
        cwd=hostile.folder,
        env={**os.environ, "PATH": f".::{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"Traceback" not in done.stderr or b"no pg_dump" in done.stderr, done.stderr
    assert hostile.taken == []


def test_the_folder_itself_is_hostile(hostile: HostileFolder) -> None:
    """The trap works: `python -m` without -P falls into it."""
    command = [word for word in python_command("dbdyno.bench.guardian", "1") if word != "-P"]
    subprocess.run(command, cwd=hostile.folder, env=python_environment(), capture_output=True, check=False, timeout=60)
    assert hostile.taken


def test_a_relative_entry_of_path_names_no_program(hostile: HostileFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hostile.folder)
    assert find_program("pg_config", ".::shared") is None
    assert find_program("ssh", f".:{hostile.folder}") == hostile.folder / "ssh"
    assert search_folders(":.:bin:/usr/bin:") == [Path("/usr/bin")]


def test_what_we_start_has_no_folder_on_path_that_is_not_absolute() -> None:
    for env in (python_environment({"PATH": ".:/bin:"}), child_environment({"PATH": ":/bin:shared"})):
        assert env["PATH"] == "/bin"
    assert "PATH" not in child_environment({}) and child_environment({"PATH": "."})["PATH"] == os.defpath


def test_git_and_builds_start_nothing_of_the_folder_they_are_started_in(hostile: HostileFolder) -> None:
    """A repository beside the hostile folder: git and the build command find programs by an absolute PATH."""
    repository = hostile.folder.parent / "repository"
    person = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for words in (
        ("init", "--quiet", str(repository)),
        *(("-C", str(repository), *person, "commit", "--quiet", "--allow-empty", "-m", str(at)) for at in range(2)),
    ):
        subprocess.run(["git", *words], check=True)
    (hostile.folder / "plan.toml").write_text(
        'title = "c"\n[workload]\ncommand = "{build}/program"\n[schedule]\nturn_transactions = 1\n[[arm]]\nname = "a"\n'
    )
    words = ("--repository", str(repository), "--cache", str(repository.parent / "cache"), "--blocks", "6")
    build = "ls >/dev/null; cp /bin/true program"
    done = dbdyno(hostile, "bisect", "plan.toml", "--good", "HEAD~1", "--build", build, *words)
    assert done.returncode in (0, 1), done.stderr
    assert dbdyno(hostile, "results", "log", "branch:none").returncode == 2
    assert hostile.taken == []


def test_only_known_files_start_processes() -> None:
    names = {"subprocess", "multiprocessing", "pty"}
    calls = {f"os.{name}" for name in dir(os) if name.startswith(("exec", "spawn", "posix_spawn", "fork"))}
    calls |= {"os.system", "os.popen", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}
    found = set()
    words = re.compile(rf"\b({'|'.join({*names, *(call.rpartition('.')[2] for call in calls)})})\b")
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if not words.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            imported = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            if imported & names or called in calls:
                found.add(str(path.relative_to(PACKAGE)))
    assert found <= STARTERS, found - STARTERS
