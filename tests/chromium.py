"""A headless Chromium for tests, driven over a pipe by the DevTools protocol with the standard
library alone.

    def test_a_page(browser: chromium.Browser):
        page = browser.open(path, width=360)
        assert page.problems == [] and page.requests == [path.as_uri()]

A worker starts at most one browser and opens each page once: opening a page takes half a second of processor time,
changing its width a tenth of that.

Chromium reads commands from file descriptor 3 and writes answers and events to 4, each as one JSON text that ends with
a NUL byte.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dbdyno.base.json_types import JsonObject

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_S = 60.0
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--no-first-run",
    "--remote-debugging-pipe",
)


LOOKS = ((1200, "light"), (360, "dark"))
"""Widths and colour schemes of a desktop window by day and of a phone by night."""


def find() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


needed = pytest.mark.skipif(find() is None, reason=f"none of {', '.join(NAMES)} was found: make setup-test")


@pytest.fixture(scope="session")
def running_browser() -> Iterator[Browser]:
    """Yield the browser of this test worker."""
    with Browser() as running:
        yield running


@pytest.fixture
def browser(running_browser: Browser) -> Iterator[Browser]:
    """Yield the same browser, and close the test's pages afterwards; those of a whole module stay open."""
    shared = running_browser.pages()
    yield running_browser
    running_browser.close_pages(shared)


def opened_quietly(browser: Browser, path: Path) -> Page:
    """Open a page and check what holds for every page: no error, no request except for itself, no image, and nothing
    wider than the window in either of `LOOKS`. The page is left in the first look.
    """
    page = browser.open(path)
    root = "document.documentElement"
    for width, scheme in reversed(LOOKS):
        page.look(width=width, scheme=scheme)
        assert page.evaluate(f"{root}.scrollWidth") <= page.evaluate(f"{root}.clientWidth"), width
    assert page.problems == []
    assert page.requests == [path.as_uri()]
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    return page


@dataclass
class Page:
    """An open page, with the errors that it reported and every address that it requested."""

    browser: Browser
    session: str
    target: str
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def look(self, *, width: int = 1200, height: int = 900, scheme: str = "light") -> None:
        """Set the window's size and the reader's preferred colour scheme; return when the page is painted."""
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **screen)
        wish = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[wish])
        self.settle()

    def settle(self) -> None:
        """Wait until the page is painted and its scroll events have been delivered."""
        painted = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.call("Runtime.evaluate", awaitPromise=True, expression=painted)

    def screenshot(self, path: Path, *, whole: bool = True) -> Path:
        """Save the page as PNG, by default in its full length."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def pdf(self, path: Path) -> Path:
        """Save the page as PDF, as it prints."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command of the DevTools protocol and return its answer."""
        return self.browser.call(method, session=self.session, **parameters)

    def hear(self, event: JsonObject) -> None:
        """Record an event if it is an error or a request."""
        method, given = event["method"], event["params"]
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.problems.append(json.dumps(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(json.dumps(given["entry"]))


class Browser:
    """One browser process with its own profile, stopped at the end of the context."""

    def __enter__(self) -> Browser:
        binary = find()
        assert binary, "no chromium"
        self._profile = tempfile.mkdtemp(prefix="dbdyno-chromium-")
        read_theirs, self._write = _pipe()
        self._read, write_theirs = _pipe()
        environment = {**os.environ, "HOME": self._profile, "TMPDIR": self._profile}
        actions = [
            (os.POSIX_SPAWN_DUP2, read_theirs, 3),
            (os.POSIX_SPAWN_DUP2, write_theirs, 4),
            *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)),
        ]
        command = [binary, *OPTIONS, f"--user-data-dir={self._profile}", "about:blank"]
        self._pid = os.posix_spawn(binary, command, environment, file_actions=actions, setpgroup=0)
        os.close(read_theirs)
        os.close(write_theirs)
        self._number, self._buffer = 0, b""
        self._pages: dict[str, Page] = {}
        self._loaded: set[str] = set()
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, path: Path | str, *, width: int = 1200, height: int = 900, scheme: str = "light") -> Page:
        """Open a file or an address in a new tab of that width; wait until it is loaded and painted."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.look(width=width, height=height, scheme=scheme)
        page.call("Page.navigate", url=path if isinstance(path, str) else path.absolute().as_uri())
        deadline = time.monotonic() + PATIENCE_S
        while session not in self._loaded:
            self._receive(deadline)
        page.settle()
        return page

    def pages(self) -> list[Page]:
        """Return the open pages."""
        return list(self._pages.values())

    def close_pages(self, kept: Sequence[Page] = ()) -> None:
        """Close all other pages, because each page has its own processes."""
        for page in self.pages():
            if page not in kept:
                self.call("Target.closeTarget", targetId=page.target)
                del self._pages[page.session]

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that arrive in between are recorded."""
        self._number += 1
        message: JsonObject = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._write, rest) :]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def _receive(self, deadline: float) -> JsonObject:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "chromium does not answer"
            more = os.read(self._read, 1 << 16)
            assert more, "chromium has ended"
            self._buffer += more
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: JsonObject = json.loads(raw)
        page = self._pages.get(message.get("sessionId", ""))
        if page is not None and "method" in message:
            page.hear(message)
            if message["method"] == "Page.loadEventFired":
                self._loaded.add(page.session)
        return message


def _pipe() -> tuple[int, int]:
    """Return a pipe whose file descriptors are above 9, so that moving one to 3 or 4 in the child cannot overwrite the
    other.
    """
    high = []
    for end in os.pipe():
        high.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return high[0], high[1]
