"""Keys of the live screen: they select the view, its order and its sessions, and answer questions.

    desk = ScreenState(allow_cancel=False)
    desk.press("s")            # "draw": the order has changed
    desk.press("e"), desk.press("4711"), desk.press("\\r")   # "plan": desk.pid is 4711

This module is independent of the server and the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.snapshot.engines.live_sessions import SORTS

VIEWS = {"1": "overview", "2": "sessions", "3": "blocking", "4": "progress"}
QUIT = ("q", "Q", "\x1b", "\x03", "\x04")
_WORDS_MOST = 60
_ASKS = {
    "filter": "show only sessions with: ",
    "plan": "plan of which pid? ",
    "statement": "statement of which pid? ",
    "cancel": "cancel which pid? ",
}
_UP, _DOWN = ("\x1b[A", "\x1bOA", "k"), ("\x1b[B", "\x1bOB", "j")
_KEY = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|.", re.DOTALL)
FASTEST_S, SLOWEST_S = 0.5, 60.0
"""Shortest and longest refresh interval that can be set with + and -, in seconds."""
HELP = (
    "Keys; press any key to go back",
    "1 2 3 4: load with all, sessions, who blocks whom, progress",
    "up, down: choose a session (also k, j)",
    "e: plan of a session's statement; this does not run the statement",
    "v: the full statement of a session, without quoted values",
    "c: cancel a session's statement, after confirmation; only with --allow-cancel",
    f"s: next order of the sessions: {', '.join(SORTS)}",
    "f: show only sessions with some words (user, database, application, client, state, wait, text)",
    "p, space: pause; refresh now",
    "+ -: refresh less often, more often",
    "esc: remove the filter; without a filter: quit, like q and Ctrl-C",
)


@dataclass
class ScreenState:
    """State of the screen; `pid` is the session that the user has entered, `message` is shown once in the last line."""

    allow_cancel: bool = False
    every_s: float = 2.0
    view: str = "overview"
    sort: str = SORTS[0]
    words: str = ""
    paused: bool = False
    asked: str = ""
    answer: str = ""
    pid: int = 0
    message: str = ""
    plan: tuple[str, ...] = ()
    listed: Sequence[int] = ()
    chosen: int | None = None

    def press(self, keys: str) -> str:
        """Return what is to be done: quit, read (refresh now), draw (show again), plan, statement, cancel."""
        self.message = ""
        if self.asked:
            return self._handle_answer(keys)
        if keys in QUIT:
            if keys == "\x1b" and (self.plan or self.words):
                self.plan, self.words = (), ""
                return "draw"
            return "quit"
        self.plan = ()
        if keys in VIEWS:
            self.view = VIEWS[keys]
        elif keys == "s":
            self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        elif keys == "p":
            self.paused = not self.paused
        elif keys in ("h", "?"):
            self.plan = HELP
        elif keys in (*_UP, *_DOWN):
            self._choose(1 if keys in _DOWN else -1)
        elif keys in ("f", "e", "v", "c", "+", "-"):
            self._set(keys)
        else:
            return "read" if keys == " " else "draw"
        return "draw"

    def _set(self, keys: str) -> None:
        """Ask a question, or change the refresh interval."""
        if keys == "f":
            self.asked, self.answer = "filter", self.words
        elif keys in ("e", "v"):
            self._ask("plan" if keys == "e" else "statement")
        elif keys == "c":
            self._ask_to_cancel()
        else:
            self.every_s = min(max(self.every_s * (2 if keys == "+" else 0.5), FASTEST_S), SLOWEST_S)
            self.message = f"a refresh every {self.every_s:g} s"

    def _choose(self, by: int) -> None:
        """Select the session `by` places further down in the list; a negative `by` goes up."""
        if self.view in ("overview", "progress"):
            self.view = "sessions"
        elif self.listed:
            at = self.listed.index(self.chosen) + by if self.chosen in self.listed else 0
            self.chosen = self.listed[min(max(at, 0), len(self.listed) - 1)]

    def _ask(self, what: str) -> None:
        self.asked, self.answer = what, str(self.chosen) if self.chosen in self.listed else ""

    def foot(self) -> str:
        """Return the last line: a question, a message, or the keys."""
        if self.asked == "sure":
            return f"cancel the statement of session {self.pid}? y/n "
        if self.asked:
            return f"{_ASKS[self.asked]}{self.answer}_"
        if self.message:
            return self.message
        cancel = ", c cancel" if self.allow_cancel else ""
        paused = "PAUSED, p goes on" if self.paused else "p pause"
        return f"h help, q quit, 1-4 {'/'.join(VIEWS.values())}, s sort, f filter, e plan, v text{cancel}, {paused}"

    def _ask_to_cancel(self) -> None:
        if self.allow_cancel:
            self._ask("cancel")
        else:
            self.message = "cancelling is not allowed: start with --allow-cancel"

    def _handle_answer(self, keys: str) -> str:
        if self.asked == "sure":
            self.asked = ""
            if keys in ("y", "Y"):
                return "cancel"
            self.message = "not cancelled"
        elif keys in ("\x1b", "\x03", "\x04"):
            self.asked = ""
        elif keys in ("\x7f", "\b"):
            self.answer = self.answer[:-1]
        elif keys == "\x15":  # Ctrl-U, as shells have it
            self.answer = ""
        elif keys.endswith(("\r", "\n")):
            self.answer += _typed_text(keys)
            return self._handle_entry()
        else:
            self.answer = (self.answer + _typed_text(keys))[:_WORDS_MOST]
        return "draw"

    def _handle_entry(self) -> str:
        asked, self.asked = self.asked, ""
        if asked == "filter":
            self.words, self.view = self.answer.strip(), "sessions" if self.view == "overview" else self.view
            return "draw"
        if not self.answer.strip().isdigit():
            self.message = f"{self.answer.strip()!r:.30} is not a pid"
            return "draw"
        self.pid = int(self.answer.strip()[:9])
        if asked == "cancel":
            self.asked = "sure"
            return "draw"
        return asked


def split(typed: str) -> list[str]:
    """Split typed input into keys; an escape sequence, such as an arrow, is one key."""
    return _KEY.findall(typed)


def _typed_text(keys: str) -> str:
    return "" if keys.startswith("\x1b") else "".join(one for one in keys if one.isprintable())
