"""Every bench works: each runs at its smallest size, and its figures become the page of figures.

A bench was broken for weeks, since nothing ran it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

ROOT = Path(__file__).parents[2]
BENCHES = ROOT / "benches"
sys.path.append(str(BENCHES))
import page  # noqa: E402
from figures import LACKS, RESULTS  # noqa: E402

HELPERS = {
    "all",
    "engine",
    "figures",
    "move_peers",
    "mqsim",
    "packed_store",
    "page",
    "parity",
    "recorded_loads",
    "replicate",
    "trace_kinds",
}
HELPERS |= {"wide_peers"}


def bench(name: str, *options: str, results: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a bench and return its process."""
    environment = {**os.environ, **({RESULTS: str(results)} if results else {})}
    command = [sys.executable, f"benches/{name}.py", *options]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_every_bench_is_among_those_that_make_bench_runs():
    assert {path.stem for path in BENCHES.glob("*.py")} - HELPERS == set(page.BENCHES)


@contextlib.contextmanager
def benches_anew() -> Iterator[None]:
    """Let benches be imported with this command line, and forget them afterwards: other tests have their names."""
    names = {path.stem for path in BENCHES.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in names & sys.modules.keys()}
    with mock.patch.object(sys, "path", [str(BENCHES), *sys.path]):
        try:
            yield
        finally:
            for name in names:
                sys.modules.pop(name, None)
            sys.modules.update(before)


def smoke(name: str) -> subprocess.CompletedProcess[str]:
    """Run a bench at its smallest size within the test process, whose imports and data folders it uses.

    As in a process of its own, warnings stop nothing; a changed environment and a changed binding to processors are
    restored.
    """
    out, err, processors = io.StringIO(), io.StringIO(), os.sched_getaffinity(0)
    command = [f"benches/{name}.py", "--smoke"]
    with (
        mock.patch.object(sys, "argv", command),
        mock.patch.dict(os.environ),
        benches_anew(),
        warnings.catch_warnings(action="ignore"),
        contextlib.chdir(ROOT),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = importlib.import_module(name).main() or 0
        except SystemExit as ending:
            code = ending.code
        finally:
            os.sched_setaffinity(0, processors)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def check(done: subprocess.CompletedProcess[str]) -> None:
    """Skip the test if the bench lacks what it measures with; fail it if the bench failed or printed nothing."""
    if done.returncode == LACKS:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("name", page.BENCHES)
def test_it_runs_in_its_smallest_size(name: str):
    check(smoke(name))


@pytest.mark.soak
@pytest.mark.parametrize("name", page.BENCHES)
def test_it_runs_as_a_command(name: str):
    check(bench(name, "--smoke"))


def test_mqsim_gets_the_load_of_the_flash_card_and_its_counts_are_read(tmp_path: Path):
    """A program in the place of MQSim: it reads the load that it is given, and writes results of the same form."""
    program = tmp_path / "mqsim"
    program.write_text(
        f"#!{sys.executable}\n"
        "import re, sys\n"
        "from pathlib import Path\n"
        "device, load = Path(sys.argv[2]).read_text(), Path(sys.argv[4])\n"
        "writes = re.search('<Total_Requests_To_Generate>([0-9]+)<', load.read_text())[1]\n"
        "blocks = re.search('<Block_No_Per_Plane>([0-9]+)<', device)[1]\n"
        'counts = f\'<SSDDevice.FTL Issued_Flash_Program_CMD="{blocks}" Issued_Flash_Erase_CMD="7"/>\'\n'
        "found = f'<R><F><Write_Request_Count>{writes}</Write_Request_Count></F>{counts}</R>'\n"
        "load.with_name('load_scenario_1.xml').write_text(found)\n"
    )
    program.chmod(0o700)
    with benches_anew():
        work = importlib.import_module("mqsim").run(program, 12_345)
    assert (work.host_writes, work.programs, work.erases) == (12_345, 341, 7)


def line(**more: Any) -> dict[str, Any]:
    """Return one line of a results file."""
    base = {"date": "2026-11-27T10:00Z", "commit": "abcdef01", "machine": "2 x made", "load": 0.1}
    return (
        base | {"command": "python benches/stats.py", "bench": "stats", "what": "w", "value": 2.0, "unit": "s"} | more
    )


def test_each_figure_is_a_line_that_can_be_measured_again(tmp_path: Path):
    kept = tmp_path / "results.jsonl"
    assert bench("help_time", "--rounds", "1", results=kept).returncode == 0
    assert bench("help_time", "--smoke", results=kept).returncode == 0
    native, runs, by_python, one = [json.loads(text) for text in kept.read_text().splitlines()]
    assert native["what"] == "dbdyno --help" and native["ratio"] < 1
    assert runs["ratio"] < by_python["ratio"]
    assert one["command"] == "python benches/help_time.py --rounds 1"
    assert {"date", "commit", "machine", "load"} <= one.keys()
    assert one["against"] == "python -c pass" and one["ratio"] > 1


def test_the_page_shows_the_latest_line_of_each_figure_of_one_commit():
    old, older = line(value=9.0), line(what="gone", commit="00000000")
    ratio = line(what="x", value=12345.0, against="peer", ratio=0.5, low=0.4, high=0.6, aim="< 1")
    text = page.text_of([older, old, line(value=3.25), ratio])
    assert "| w | 3.25 | s |  |  |  |" in text
    assert "| x | 12,345 | s | peer | 0.5 (0.4 to 0.6) | < 1 |" in text
    assert "gone" not in text and "| 9 |" not in text
    assert "Not measured yet: `python benches/move.py`." in text


def test_the_page_of_figures_is_made_from_the_kept_lines():
    """Whoever measures keeps the lines and makes the page in one go: `make bench`, or `python benches/page.py`."""
    assert page.PAGE.read_text() == page.text_of(page.read(BENCHES / "results.jsonl"))
