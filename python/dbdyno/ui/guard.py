"""Protection of the pages: a token, permitted host names, and headers that forbid foreign content.

A request is answered only if it names a host that belongs to this server (so that a foreign name that resolves to this
machine gets nothing), does not come from another site's page, only reads (GET or HEAD), and has the token. The token is
in the address on the first visit, afterwards in a cookie that scripts cannot read and other sites cannot send in the
background.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
READING = ("GET", "HEAD")
TOKEN = "token"  # noqa: S105 - the name of the parameter


@dataclass(frozen=True)
class Access:
    """Who may use the pages: the token, and the host names and scheme under which browsers reach this server.

    With `any_address`, every IP address is accepted as a host name too, because DNS rebinding attacks need a name that
    is no IP address.
    """

    token: str = field(repr=False)
    scheme: str = "http"
    hosts: frozenset[str] = LOOPBACK
    any_address: bool = False
    cookie: str = "dbdyno"

    def knows(self, host: str) -> bool:
        """Return True if a Host header names this server; the port is ignored."""
        name = _name_of(host)
        return name in self.hosts or (self.any_address and _is_address(name))

    def is_right(self, token: str) -> bool:
        """Return True if a token is the right one, compared in constant time."""
        return hmac.compare_digest(token.encode(), self.token.encode())


class Guard:
    """An ASGI application that passes on to another one only the requests that `access` permits."""

    def __init__(self, app: App, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._ask(scope, receive, send)

    async def _ask(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = _headers(scope["headers"])
        refusal = self._refusal(scope["method"], headers)
        if refusal is not None:
            await _say(send, *refusal)
            return
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == TOKEN]
        if tokens:
            await self._enter(scope, send, tokens, [pair for pair in query if pair[0] != TOKEN])
        elif not any(self.access.is_right(one) for one in _cookies(headers, self.access.cookie)):
            await _say(send, 403, "open the address that `dbdyno ui` printed: it has the token that lets you in")
        else:
            await self.app(scope, receive, _with_headers(send))

    def _refusal(self, method: str, headers: dict[str, list[str]]) -> tuple[int, str] | None:
        """Return the reason to refuse a request even with a correct token, or None."""
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or not self.access.knows(hosts[0]):
            return 421, "this host name is not allowed; open the address that `dbdyno ui` printed"
        if any(origin != f"{self.access.scheme}://{hosts[0]}" for origin in origins):
            return 403, "requests from pages of other sites are refused"
        site, mode = (headers.get(f"sec-fetch-{name}", [""])[0] for name in ("site", "mode"))
        if site in ("cross-site", "same-site") and mode != "navigate":
            return 403, "requests from pages of other sites are refused"
        return None if method in READING else (405, "only GET and HEAD requests are allowed")

    async def _enter(self, scope: Message, send: Send, tokens: list[str], rest: list[tuple[str, str]]) -> None:
        """Set the cookie and redirect to the same page without the token, so that no browser history contains it."""
        if len(tokens) != 1 or not self.access.is_right(tokens[0]):
            await _say(send, 403, "this token is not valid; open the address that `dbdyno ui` printed last")
            return
        path = "/" + quote(scope["path"].lstrip("/"))
        place = path + (f"?{urlencode(rest)}" if rest else "")
        secure = "; Secure" if self.access.scheme == "https" else ""
        cookie = f"{self.access.cookie}={self.access.token}; Path=/; HttpOnly; SameSite=Lax{secure}"
        await _say(send, 303, "", ((b"location", place.encode()), (b"set-cookie", cookie.encode())))


def _headers(given: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in given:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _cookies(headers: dict[str, list[str]], wanted: str) -> list[str]:
    pairs = (part.strip().partition("=") for line in headers.get("cookie", []) for part in line.split(";"))
    return [value for name, _, value in pairs if name == wanted]


def _name_of(host: str) -> str:
    """Return the host name in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = message.get("headers", ())
            named = {name.lower() for name, _ in own}
            message["headers"] = [*own, *(one for one in HEADERS if one[0] not in named)]
        await send(message)

    return sent


async def _say(send: Send, status: int, words: str, more: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    text = f"dbdyno: {words}\n".encode() if words else b""
    kind = (b"content-type", b"text/plain; charset=utf-8")
    headers = [kind, (b"content-length", str(len(text)).encode()), (b"cache-control", b"no-store"), *more, *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
