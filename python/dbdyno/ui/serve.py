"""The web server: its listening address, the link that admits a browser, and its shutdown."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dbdyno.base.errors import Error
from dbdyno.ui.guard import LOOPBACK, TOKEN, Access

PORT = 8421


@dataclass(frozen=True)
class ListeningAddress:
    """Address on which the server listens, and the address that browsers use.

    Attributes:
        host: Address to listen on.
        port: Port; 0 means any free port.
        certificate: TLS certificate (PEM) with its chain, or None.
        key: Private key of the certificate, or None if it is in the same file.
        proxy: Origin of the proxy to which browsers connect, such as https://db.example.org; "" without a proxy.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    certificate: Path | None = None
    key: Path | None = None
    proxy: str = ""


def require_encryption(address: ListeningAddress) -> None:
    """Raise an error if pages would leave this machine unencrypted.

    Raises:
        Error: The address can be reached from other machines, and there is neither a certificate nor a proxy.
    """
    if address.proxy and (
        urlsplit(address.proxy).scheme not in ("http", "https") or not urlsplit(address.proxy).hostname
    ):
        raise Error(
            f"{address.proxy!r:.80} is not the origin of a URL", where="--behind-proxy", next_step="write https://host"
        )
    if _is_loopback(address.host) or address.certificate or address.proxy:
        return
    raise Error(
        f"other machines reach {address.host}: statements and the token would cross the network in plain text",
        where="--listen",
        next_step="add --tls-cert FILE, or --behind-proxy https://HOST if a proxy encrypts; or connect to this "
        f"machine with ssh -L {address.port or PORT}:127.0.0.1:{address.port or PORT}",
    )


def bind_socket(address: ListeningAddress) -> socket.socket:
    """Return a socket bound to the listening address.

    Raises:
        Error: The port is in use, or the address does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address.host, address.port))
    except OSError as error:
        made.close()
        raise Error(
            f"cannot listen: {error.strerror}",
            where=f"{address.host}:{address.port}",
            next_step="choose another port, or any free one with `--port 0`",
        ) from error
    made.listen(128)
    return made


def access_of(address: ListeningAddress, port: int) -> Access:
    """Return the access rules, with a new random token."""
    scheme = "https" if address.certificate else urlsplit(address.proxy).scheme if address.proxy else "http"
    beyond = not _is_loopback(address.host)
    names = {socket.gethostname().lower(), socket.getfqdn().lower()} if beyond else set()
    if address.proxy:
        names.add(str(urlsplit(address.proxy).hostname).lower())
    hosts = frozenset({*LOOPBACK, *names})
    return Access(secrets.token_urlsafe(24), scheme, hosts, any_address=beyond, cookie=f"dbdyno-{port}")


def first_address(address: ListeningAddress, access: Access, port: int) -> str:
    """Return the address that the user should open first, which contains the token."""
    if address.proxy:
        return f"{address.proxy.rstrip('/')}/?{TOKEN}={access.token}"
    host = address.host
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = socket.gethostname()
    shown = f"[{host}]" if ":" in host else host
    return f"{access.scheme}://{shown}:{port}/?{TOKEN}={access.token}"


def serve(app: object, address: ListeningAddress, made: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until the process ends; `ready` is called when the first can be answered."""
    import asyncio

    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        ssl_certfile=address.certificate and str(address.certificate),
        ssl_keyfile=address.key and str(address.key),
        timeout_graceful_shutdown=2,
        ws="none",
    )
    server = uvicorn.Server(config)

    async def run() -> None:
        ready()
        await server.serve(sockets=[made])

    asyncio.run(run())


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
