"""How each libpq option is treated by the load's own client.

The control connection uses libpq; the load is sent by dbdyno's own client, which must never be less strict. Each libpq
option therefore has a row here: it is *passed* on and honoured, it is *settled* (the control connection has already
dealt with it, or it has no meaning for this client, and the row says why), or it is *refused* before the load sends a
byte. An option that is not in the table is refused as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dbdyno.base.errors import TargetError

NO = ("", "0", "false", "off", "no")


@dataclass(frozen=True)
class Option:
    """Treatment of one option.

    Attributes:
        how: 'passed', 'settled' or 'refused'.
        reason: Why the option is settled or refused.
        harmless: Values with which a refused option has no effect and is accepted.
    """

    how: Literal["passed", "settled", "refused"]
    reason: str = ""
    harmless: tuple[str, ...] = ("",)


def _settled_option(reason: str) -> Option:
    return Option("settled", reason)


_RESOLVED = _settled_option("libpq has resolved it; the load uses the result")
_CHOSEN = _settled_option("libpq has chosen the server; the load uses that server")
_NO_GSS = _settled_option("the load does not support GSSAPI: a server that asks for it is refused")
_NO_OAUTH = _settled_option("the load does not support OAuth: a server that asks for it is refused")
_WITH_SSLCERT = _settled_option("belongs to sslcert, which is refused")

OPTIONS: dict[str, Option] = {
    "service": _RESOLVED,
    "servicefile": _RESOLVED,
    "passfile": _RESOLVED,
    "user": Option("passed"),
    "password": Option("passed"),
    "dbname": Option("passed"),
    "host": Option("passed"),
    "hostaddr": Option("passed"),
    "port": Option("passed"),
    "options": Option("passed"),
    "connect_timeout": Option("passed"),
    "channel_binding": Option("passed"),
    "require_auth": Option("passed"),
    "keepalives": Option("passed"),
    "keepalives_idle": Option("passed"),
    "keepalives_interval": Option("passed"),
    "keepalives_count": Option("passed"),
    "tcp_user_timeout": Option("passed"),
    "sslmode": Option("passed"),
    "sslnegotiation": Option("passed"),
    "sslrootcert": Option("passed"),
    "sslcrl": Option("passed"),
    "sslcrldir": Option("passed"),
    "sslsni": Option("passed"),
    "ssl_min_protocol_version": Option("passed"),
    "ssl_max_protocol_version": Option("passed"),
    "sslcert": Option("refused", "it does not send client certificates"),
    "sslkey": _WITH_SSLCERT,
    "sslpassword": _WITH_SSLCERT,
    "sslcertmode": Option("refused", "it does not send client certificates", ("", "allow", "disable")),
    "requirepeer": Option("refused", "it does not check who owns a socket"),
    "gssencmode": Option("refused", "it does not support GSSAPI encryption", ("", "disable", "prefer")),
    "scram_client_key": Option("refused", "it logs in by password only"),
    "scram_server_key": Option("refused", "it logs in by password only"),
    "min_protocol_version": Option("refused", "it speaks version 3.0 of the protocol", ("", "3.0")),
    "replication": Option("refused", "it does not support replication connections", NO),
    "client_encoding": _settled_option("all connections of dbdyno use UTF-8"),
    "application_name": _settled_option("the load has names of its own, one for each arm"),
    "fallback_application_name": _settled_option("the load has names of its own, one for each arm"),
    "max_protocol_version": _settled_option("it speaks version 3.0, the oldest"),
    "sslcompression": _settled_option("it never compresses"),
    "sslkeylogfile": _settled_option("it does not write its TLS keys to a file"),
    "krbsrvname": _NO_GSS,
    "gsslib": _NO_GSS,
    "gssdelegation": _NO_GSS,
    "oauth_issuer": _NO_OAUTH,
    "oauth_client_id": _NO_OAUTH,
    "oauth_client_secret": _NO_OAUTH,
    "oauth_scope": _NO_OAUTH,
    "target_session_attrs": _CHOSEN,
    "load_balance_hosts": _CHOSEN,
}

_VERSIONS = {version.lower(): version for version in ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")}
_COUNTS = {
    "keepalives_idle": "keepalives_idle_s",
    "keepalives_interval": "keepalives_interval_s",
    "keepalives_count": "keepalives_count",
    "tcp_user_timeout": "tcp_user_timeout_ms",
}


def refusal(options: Mapping[str, str]) -> str | None:
    """Return a sentence that says why the load's client cannot honour these options, or None if it can."""
    for keyword, value in options.items():
        option = OPTIONS.get(keyword)
        if keyword == "sslcert" and options.get("sslcertmode") == "disable":
            continue
        if option is None and value:
            return f"the load's client does not know {keyword}"
        if option is not None and option.how == "refused" and value not in option.harmless:
            return f"the load's client cannot honour {keyword}: {option.reason}"
    return None


def load_connection(options: Mapping[str, str], *, encrypted: bool, home: Path | None = None) -> dict[str, object]:
    """Return the `connection` object of a load's specification from libpq's options.

    Args:
        options: libpq's options.
        encrypted: True if the control connection uses TLS; if the user leaves the choice to the server, the load does
            the same as the control connection.
        home: Folder in which libpq looks for `.postgresql`; None means the user's home folder.

    Raises:
        TargetError: The load's client cannot honour an option.
    """
    refused = refusal(options)
    if refused:
        raise TargetError(refused, next_step="protect the connection in another way, such as sslmode=verify-full")
    mode = options.get("sslmode") or "prefer"
    if mode in ("allow", "prefer"):
        mode = "require" if encrypted else "disable"
    return {
        "host": options["host"],
        "hostaddr": options.get("hostaddr") or None,
        "port": int(options["port"]),
        "user": options["user"],
        "password": options.get("password"),
        "dbname": options["dbname"],
        "sslmode": mode,
        **(_trust_files(options, home or libpq_home()) if mode != "disable" else {}),
        "sslsni": options.get("sslsni", "1") != "0",
        "sslnegotiation": options.get("sslnegotiation") or "postgres",
        "ssl_min_protocol_version": _version(options.get("ssl_min_protocol_version")),
        "ssl_max_protocol_version": _version(options.get("ssl_max_protocol_version")),
        "channel_binding": options.get("channel_binding") or "prefer",
        "require_auth": options.get("require_auth") or "",
        "options": options.get("options") or None,
        "application_name": "dbdyno",
        "connect_timeout_s": max(0, int(options.get("connect_timeout") or 0)),
        "liveness": _liveness(options),
    }


def _trust_files(options: Mapping[str, str], home: Path) -> dict[str, str | None]:
    """Return root certificates and revocation lists: those named by options, or those that libpq finds itself."""
    folder = home / ".postgresql"
    files = {name: options.get(name) or None for name in ("sslrootcert", "sslcrl", "sslcrldir")}
    if files["sslrootcert"] is None and (folder / "root.crt").exists():
        files["sslrootcert"] = str(folder / "root.crt")
    if files["sslcrl"] is None and files["sslcrldir"] is None and (folder / "root.crl").exists():
        files["sslcrl"] = str(folder / "root.crl")
    return files


def libpq_home() -> Path:
    """Return the home folder as this libpq finds it: since version 15, HOME takes precedence over the passwd entry."""
    import pwd

    import psycopg

    home = os.environ.get("HOME") if psycopg.pq.version() >= 150000 else None
    return Path(home or pwd.getpwuid(os.geteuid()).pw_dir)


def _version(text: str | None) -> str | None:
    return _VERSIONS.get(text.lower(), text) if text else None


def _liveness(options: Mapping[str, str]) -> dict[str, object]:
    """Return the user's keepalive options, which detect a dead network; for missing ones the load has defaults."""
    counts = {ours: max(0, int(options[theirs])) for theirs, ours in _COUNTS.items() if options.get(theirs)}
    return {**counts, **({"keepalives": options["keepalives"] != "0"} if options.get("keepalives") else {})}
