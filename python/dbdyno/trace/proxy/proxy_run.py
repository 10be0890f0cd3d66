"""Running of a proxy from start to end, which leaves a run folder that every command on traces can read.

    with run_proxy(ProxyOptions("127.0.0.1:6543", server_of("db:5432")), Path("runs/now")) as it:
        ...                      # clients connect to it.address
    it.report["calls"]             # what was seen

The folder appears when it is complete, as for a recording. Passwords pass through without being read.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.captures import FORMAT
from dbdyno.evidence.encryption import encrypt_parts, read_key
from dbdyno.evidence.run import Run
from dbdyno.trace.job import unwind_on_signals
from dbdyno.trace.running import Running
from dbdyno.trace.source import manifest_head, server_file
from dbdyno.trace.staging import staged_folder
from dbdyno.trace.units import length_ns

_PORT = 5432
_PORT_MOST = 65_535
_SPIN_MOST_NS = 10_000_000


@dataclass(frozen=True)
class ProxyOptions:
    """Address to listen on, server to connect to, and what to store; with a key, messages are stored encrypted."""

    listen: str
    server: tuple[str, int]
    for_ns: int | None = None
    binds: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    server_tls: str = "disable"
    server_ca: Path | None = None
    spin_ns: int | None = None
    key_file: Path | None = None


class RunningProxy(Running):
    """A running proxy."""

    @property
    def address(self) -> str:
        """Return the address that clients connect to."""
        return str(self.core.address())


def server_of(text: str) -> tuple[str, int]:
    """Parse `host:port`, `[::1]:port` or `/run/postgresql:port`; the default port is 5432.

    Raises:
        TraceError: the text names no server.
    """
    if "@" in text or "://" in text:
        raise TraceError(
            "a connection string is not the address of a server", where="--target", next_step="write only its HOST:PORT"
        )
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.startswith(("[", "/"))):
        host, port = text, str(_PORT)
    if not host.strip("[]") or not port.isdigit() or not 0 < int(port) <= _PORT_MOST:
        raise TraceError(
            f"{text!r} is not the address of a server", where="--target", next_step="write HOST:PORT, such as db1:5432"
        )
    return host.strip("[]"), int(port)


def spin_ns(text: str) -> int | None:
    """Parse how long to poll for the next message without sleeping: a time, `off`, or `auto` (None: while useful).

    Raises:
        TraceError: the text is not a time, or is more than 10 ms.
    """
    if text == "auto":
        return None
    asked = 0 if text == "off" else length_ns(text, "--spin")
    if asked > _SPIN_MOST_NS:
        raise TraceError(
            f"{text!r} is too long: expected at most 10ms",
            where="--spin",
            next_step="write a time up to 10ms, such as 50us",
        )
    return asked


@contextlib.contextmanager
def run_proxy(options: ProxyOptions, out: Path) -> Iterator[RunningProxy]:
    """Forward the clients' messages until the `with` block ends; then the run is in `out`.

    Raises:
        TraceError: the proxy cannot run, or no client connected.
    """
    if options.server_tls.startswith("verify") and options.server_ca is None:
        raise TraceError(
            f"{options.server_tls} verifies the server's certificate against root certificates, but none are given",
            next_step="give the file of root certificates with --server-ca FILE",
        )
    key = read_key(options.key_file) if options.key_file is not None else None
    with unwind_on_signals(), staged_folder(out) as aside:
        started = datetime.now(UTC).isoformat()
        asked = {name: str(one) if isinstance(one, Path) else one for name, one in asdict(options).items()}
        del asked["server"], asked["key_file"]
        asked["host"], asked["port"] = options.server
        with encrypt_parts(aside, key):
            made = RunningProxy(_core.Proxy(json.dumps(asked | {"out": str(aside)})))
            with made.until_end():
                yield made
        if not made.report.get("sessions_all"):
            raise TraceError(
                "no client connected, so nothing was recorded"
                + (f" ({made.report['last']})" if made.report.get("last") else ""),
                next_step="connect the clients to the address given by --listen",
            )
        Run(aside, manifest_of(made.report, options, started)).save(status="complete")


def manifest_of(report: JsonObject, options: ProxyOptions, started: str) -> JsonObject:
    """Return the manifest of the proxy's evidence, made from the core's report."""
    version = str(report.get("version", "")).partition(" ")[0]
    title = f"the clients' side of PostgreSQL {version}, {report['elapsed_ns'] / 1e9:.0f} s"
    return {
        **manifest_head(FORMAT, title.replace("  ", " "), started),
        "files": [server_file(str(report.get("server", "")), version)],
        "totals": {"account": {"calls": report.get("calls"), "waits": report.get("waits")}, "proxy": report},
        "unread": {"not the protocol": report["lost_track"]} if report.get("lost_track") else {},
        "warnings": warnings_of(report, options),
        "refused": [],
        "options": {"for_ns": options.for_ns, "binds": options.binds, "server_tls": options.server_tls},
    }


def warnings_of(report: JsonObject, options: ProxyOptions) -> list[str]:
    """Return the warnings about the evidence, as sentences."""
    found = [
        "Times are the clients' side, seen on the wire: a call lasts from its message to the end of its answer, network"
        " and server together; the server's CPU and waits are not in it (trace join puts a recording of it beside)."
    ]
    for key, words in _TROUBLES.items():
        if report.get(key):
            found.append(f"{words.format(report[key])} The last: {report['last']}.")
    if options.key_file is not None:
        found.append("Messages are kept encrypted: trace replay and rehearse need the key (--key-file).")
    elif options.binds:
        found.append("Messages are kept with their values (--binds): the run contains what clients sent.")
    return found


_TROUBLES = {
    "unreachable": "{:,} connections could not reach the server.",
    "rubbish": "{:,} connections were refused: they did not speak the protocol, or requested TLS that is not offered.",
    "broken": "{:,} sessions broke off while waiting for an answer, or because of a network error.",
    "lost_track": "{:,} sessions sent bytes that are not a protocol message; from there on their time is 'unobserved'.",
    "tls_refused": "{:,} connections did not agree on TLS.",
}
