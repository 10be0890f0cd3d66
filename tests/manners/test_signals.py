"""Signals are obeyed while a command plans, prepares, analyses and renders; the second signal ends it.

A child process runs the command line, with one phase replaced by one that reports its start and then never ends.
Nothing is timed: the test sends a signal after that report, and waits for the child.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHILD = """
import importlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell starts with it ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from dbdyno.base import signals
from dbdyno.cli.main import entry

place, way, *words = sys.argv[1:]
module, name = place.rsplit(".", 1)

def phase(*_, **__):
    told = False
    while True:
        try:
            if not told:
                told = True
                print("under way", flush=True)
            while True:
                sum(range(1000)) if way == "computing" else time.sleep(0.01)
        except KeyboardInterrupt:
            if way != "deaf":
                raise
            print("not heard", flush=True)

if place == "dbdyno.report.html.write_html":
    import dbdyno.ui.models
    dbdyno.ui.models.model_of = lambda run, **_: {"kind": "experiment"}
if place.startswith(("dbdyno.ui.models", "dbdyno.report")):
    import dbdyno.cli.report
    dbdyno.cli.report.find_run = lambda *_: None
signals.GRACE_S = 0.05
setattr(importlib.import_module(module), name, phase)
sys.argv = ["dbdyno", *words]
entry()
"""

PHASES = {
    "planning": ("dbdyno.study.plan.file.parse_plan", "plan", "check", "plan.toml"),
    "preparing": ("dbdyno.study.run.check.describe", "plan", "check", "plan.toml"),
    "analysis": ("dbdyno.ui.models.model_of", "report", "last", "-o", "x.html"),
    "rendering": ("dbdyno.report.html.write_html", "report", "last", "-o", "x.html"),
}


CHILDREN: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def nobody_stays() -> Iterator[None]:
    """Kill the children that a failed test left behind, because their phases never end."""
    yield
    for child in CHILDREN:
        child.kill()
        child.communicate()
    CHILDREN.clear()


def started(phase: str, way: str, folder: Path) -> subprocess.Popen[str]:
    """Start the command, and return its process once the phase has begun."""
    (folder / "plan.toml").write_text(
        'title = "t"\n[workload]\nscripts = [{text = "select 1;"}]\n[[arm]]\nname = "a"\n'
    )
    place, *words = PHASES[phase]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, place, way, *words],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    CHILDREN.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "under way\n", child.communicate()
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("phase", PHASES)
def test_a_signal_ends_it_in_every_phase(phase: str, number: signal.Signals, tmp_path: Path):
    child = started(phase, "computing", tmp_path)
    child.send_signal(number)
    _, said = child.communicate(timeout=120)
    assert (child.returncode, said.strip()) == (130, "interrupted")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_what_does_not_hear_the_first(number: signal.Signals, tmp_path: Path):
    child = started("analysis", "deaf", tmp_path)
    child.send_signal(number)
    assert child.stdout is not None
    assert child.stdout.readline() == "not heard\n"
    child.send_signal(number)
    child.communicate(timeout=120)
    assert child.returncode == 130


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("Listener().start()\nHANG_UP\nprint(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)", "True\n"),
        ("with StopSignals() as stopping:\n    HANG_UP\n    print(stopping.asked)\n", "False\n"),
    ],
    ids=["while a command starts", "during a run"],
)
def test_a_hang_up_that_was_ignored_before_stays_ignored(code: str, said: str):
    code = (
        "import signal\nfrom dbdyno.base.signals import Listener, StopSignals\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + code.replace("HANG_UP", "signal.raise_signal(signal.SIGHUP)")
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True, env=os.environ)
    assert done.stdout == said


def test_a_panic_of_the_core_is_an_internal_error_and_no_traceback(tmp_path: Path):
    code = (
        "import sys, dbdyno.cli.main as main\n"
        "class PanicException(BaseException): ...\n"
        "def panic(**_): raise PanicException('attempt to add with overflow')\n"
        "main.cli.main = panic\nsys.argv = ['dbdyno', 'runs']\nmain.entry()"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert "attempt to add with overflow" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_signal_while_a_query_runs_ends_it_in_all_threads():
    """DuckDB hears it in the thread that called, raises "Query interrupted", and waited for its other threads."""
    code = (
        "import os, signal, sys, threading, dbdyno.cli.main as main\n"
        "from dbdyno.evidence.memory import memory_connection\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def query(**_):\n"
        "    connection = memory_connection()\n"
        # A signal that comes before a query is at work meets Python.
        "    connection.execute('select 1').fetchall()\n"
        "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    connection.execute('select sum(a.range * b.range) from range(200000) a, range(200000) b').fetchall()\n"
        "main.cli.main = query\nsys.argv = ['dbdyno', 'runs']\nmain.entry()"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (130, "interrupted"), done


ENDED = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
def wait(*_, write=os.write, read=os.read):
    write(1, b"at the end\\n")
    read(0, 1)
class Late:
    def __del__(self, wait=wait):
        wait()
if sys.argv[1] == "finalization":
    late = Late()
from dbdyno.base import signals
from dbdyno.cli.main import entry
signals.GRACE_S = 0.05
if sys.argv[1] == "threads":
    main = threading.main_thread()
    threading.Thread(target=lambda: (main.join(), wait())).start()
sys.argv = ["dbdyno", "runs"]
entry()
"""


def after_its_end(where: str, numbers: list[signal.Signals], folder: Path) -> subprocess.Popen[str]:
    """Start a command that has finished its work but cannot end yet; send it these signals and return its process."""
    child = subprocess.Popen(
        [sys.executable, "-c", ENDED, where],
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    CHILDREN.append(child)
    assert child.stdout is not None
    while "at the end" not in child.stdout.readline():
        assert child.poll() is None
    for number in numbers:  # two of one kind may arrive as one
        child.send_signal(number)
    return child


@pytest.mark.parametrize("where", ["finalization", "threads"])
def test_a_signal_after_the_end_of_a_command_changes_nothing(where: str, tmp_path: Path):
    """The second signal to a run that had put everything back made 143 of its exit code 130, while Python ended."""
    child = after_its_end(where, [signal.SIGTERM], tmp_path)
    _, said = child.communicate("x", timeout=120)
    assert (child.returncode, said) == (0, "no runs below runs/; `dbdyno run redo-size` makes one\n")


def test_two_signals_end_what_hangs_after_the_end_of_a_command(tmp_path: Path):
    assert after_its_end("threads", [signal.SIGTERM, signal.SIGINT], tmp_path).wait(120) == 130
