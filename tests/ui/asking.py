"""Requests to the application without a socket: one request, one answer, as from a browser with the cookie."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

starlette = pytest.importorskip("starlette", reason="starlette is not here; make setup-test")

from dbdyno.base.json_types import JsonObject  # noqa: E402
from dbdyno.ui.app import application  # noqa: E402
from dbdyno.ui.guard import Access  # noqa: E402
from dbdyno.ui.places import Places  # noqa: E402
from dbdyno.ui.preparer import Preparer  # noqa: E402

TOKEN = "kf2x"
HOST = "localhost:8421"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Browser:
    """The application for a folder of runs and a store of snapshots."""

    def __init__(self, runs: Path, store: Path, preparer: Preparer | None = None, **options: Any) -> None:
        self.app = application(Places(runs, store, preparer), Access(TOKEN), **options)

    def get(
        self, address: str, *more: tuple[str, str], cookie: str | None = TOKEN, method: str = "GET", zone: str = ""
    ) -> Answer:
        """Return the answer to a request; `more` are extra headers, which can replace `host`; `zone` is a time zone."""
        headers = [("host", HOST)] if "host" not in dict(more) else []
        chosen = f"; dbdyno-zone={zone}" if zone else ""
        headers += [("cookie", f"other=1; dbdyno={cookie}{chosen}")] if cookie else []
        return asyncio.run(self._ask(address, method, [*headers, *more]))

    async def _ask(self, address: str, method: str, headers: list[tuple[str, str]]) -> Answer:
        parts = urlsplit(address) if not address.startswith("//") else urlsplit(f"x:{address[1:]}")
        path = "/" + parts.path if address.startswith("//") else parts.path
        sent: list[Any] = []

        async def receive() -> JsonObject:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        from urllib.parse import unquote

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": parts.query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers],
            "server": ("localhost", 8421),
            "client": ("127.0.0.1", 1),
        }
        await self.app(scope, receive, send)
        names = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], names, b"".join(one.get("body", b"") for one in sent[1:]))


class Seen(HTMLParser):
    """Content of a page: its tags with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    @property
    def links(self) -> list[str]:
        return [str(given["href"]) for tag, given in self.tags if tag == "a" and given.get("href")]


def is_tame(page: str) -> None:
    """Check that a page has no inline script, style or handler, and no address that leads elsewhere or runs code."""
    for tag, given in Seen(page).tags:
        assert tag not in ("img", "iframe", "object", "embed", "style", "base", "meta:refresh"), tag
        assert tag != "script" or str(given.get("src")).startswith("/static/"), given
        for name, value in given.items():
            assert not name.startswith("on") and name != "style", (tag, name)
            if name in ("href", "src", "action"):
                assert str(value).startswith(("/", "#", "data:image/svg+xml,%3Csvg")), value
                assert not str(value).startswith("//"), value
