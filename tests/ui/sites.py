"""Page servers as separate processes, for a real browser."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import chromium
import waiting

DEADLINE_S = 30.0


@dataclass
class Site:
    """A page server: its address and its folders."""

    base: str
    token: str
    runs: Path
    store: Path

    def address(self, path: str) -> str:
        return f"{self.base}{path}{'&' if '?' in path else '?'}token={self.token}"


@contextlib.contextmanager
def running_site(runs: Path, store: Path, port: int = 0) -> Iterator[Site]:
    """Run a server for these folders, which is stopped at the end of the context."""
    words = ["ui", "--runs", runs, "--store", store, "--port", port, "--no-browser"]
    command = [sys.executable, "-m", "dbdyno", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        base, _, token = server.stdout.readline().strip().partition("/?token=")
        try:
            yield Site(base, token, runs, store)
        finally:
            server.terminate()
            server.wait(10)


def until(true: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    assert waiting.until(true, DEADLINE_S), "it did not come"


def words(page: chromium.Page) -> str:
    """The text of the page's content."""
    return str(page.evaluate("(document.getElementById('content') || {}).innerText || ''"))


def all_read(page: chromium.Page) -> None:
    """Wait until the slower parts of the page are loaded, too."""
    until(lambda: page.evaluate("!document.querySelector('[aria-busy]')"))
