"""PyMySQL's connection with the load client's rules: no password for a server that has not proved its identity.

PyMySQL itself sends the password to any server that asks for it in clear text (`mysql_clear_password`, `dialog`),
encrypts it with a key that anybody may have sent, and accepts any certificate if only `ssl_ca` is given. Here the
password itself leaves the machine only over a Unix socket, or over TLS with a certificate that `ssl_ca` has verified,
or encrypted with the given `server_public_key`. If the user sets neither option, TLS is used if offered, but proves
nothing. Any other server message that the driver does not expect becomes one of the driver's own errors.
"""

from __future__ import annotations

import contextlib
import functools
import ssl
import struct
from collections.abc import Iterator
from typing import Any

from dbdyno.bench.mariadb.address import driver

TLS = 1 << 11
"""Capability flag of a server that supports TLS."""
IMMEDIATE_METHODS = ("", "mysql_native_password", "caching_sha2_password")
"""Authentication methods in which the client's first answer is a proof, not the password."""
PASSWORD_METHODS = (b"mysql_clear_password", b"dialog", b"sha256_password")
"""Authentication methods that send the password itself to the server."""
OLD_METHOD = b"mysql_old_password"
SIGNATURE_METHOD = b"client_ed25519"
"""Authentication method that signs a challenge.

PyMySQL needs a package for it that dbdyno does not require; the load's own client supports it.
"""
NO_KEY = b"no key was named"
"""Placeholder key given to the driver if the user names none: otherwise it would accept a key from any server."""
NO_METHOD, NO_TLS, MALFORMED = 2061, 2026, 2027
_UNEXPECTED = (struct.error, IndexError, KeyError, TypeError, ValueError, AssertionError, AttributeError, RuntimeError)


@functools.cache
def safe_connection_class() -> Any:
    """Return the class of connections that turn malformed answers into errors of the driver.

    Raises:
        TargetError: PyMySQL is not installed.
    """
    pymysql = driver()
    failure = pymysql.OperationalError
    in_words = functools.partial(_in_words, failure)
    base: Any = pymysql.connections.Connection

    class Guarded(base):  # type: ignore[misc]
        """One connection; names that begin with an underscore are PyMySQL's."""

        _auth_plugin_name: str
        is_encrypted = False

        @property
        def _secure(self) -> bool:
            """Return True if the password itself may be sent, because nobody else can be at the other end."""
            return bool(self.unix_socket) or (self.is_encrypted and self._checks())

        @_secure.setter
        def _secure(self, value: bool) -> None:
            self.is_encrypted = value

        def _checks(self) -> bool:
            context = getattr(self, "ctx", None)
            return context is not None and context.verify_mode == ssl.CERT_REQUIRED

        def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
            return super()._create_ssl_ctx(sslp) if sslp else _unchecked_tls()

        def connect(self, sock: Any = None) -> None:
            """Log in within `connect_timeout`, even if the server accepts the connection and then stays silent."""
            with _read_timeout(self, self.connect_timeout):
                super().connect(sock)

        def _get_server_information(self) -> None:
            with in_words("the server's greeting cannot be read"):
                super()._get_server_information()
            if self._checks() and not self.unix_socket and not self.server_capabilities & TLS:
                raise failure(NO_TLS, "TLS is required (ssl_ca), but the server offers none")
            if self._auth_plugin_name not in IMMEDIATE_METHODS:
                self._auth_plugin_name = IMMEDIATE_METHODS[1]

        def _request_authentication(self) -> None:
            with in_words("the server's login messages cannot be read"):
                try:
                    super()._request_authentication()
                except (ValueError, RuntimeError) as error:
                    if isinstance(error, OSError) or self._secure or self.server_public_key != NO_KEY:
                        raise
                    words = "but there is neither TLS nor a server_public_key to verify its identity"
                    raise failure(NO_METHOD, f"the server asks for the password itself, {words}") from error

        def _process_auth(self, plugin_name: bytes, *rest: Any) -> Any:
            if plugin_name == OLD_METHOD or (plugin_name in PASSWORD_METHODS and not self._secure):
                why = (
                    "which is not secure"
                    if plugin_name == OLD_METHOD
                    else "but without ssl_ca its identity is not verified"
                )
                raise failure(
                    NO_METHOD, f"the server asks for the password with the method {plugin_name.decode()}, {why}"
                )
            return _sign(self, *rest) if plugin_name == SIGNATURE_METHOD else super()._process_auth(plugin_name, *rest)

        def query(self, *given: Any, **more: Any) -> Any:
            with in_words("the server's answer does not match the request"):
                return super().query(*given, **more)

    return Guarded


@contextlib.contextmanager
def _in_words(failure: Any, what: str) -> Iterator[None]:
    """Turn an exception that a malformed answer causes in the driver into one of the driver's own errors."""
    try:
        yield
    except OSError:  # errors of TLS are also instances of ValueError
        raise
    except _UNEXPECTED as error:
        raise failure(MALFORMED, f"{what}: {str(error) or type(error).__name__}") from error


@functools.cache
def _unchecked_tls() -> ssl.SSLContext:
    """Return the TLS context of connections that check no certificate.

    For each connection the driver would load the certificates of all authorities that the machine trusts, and check
    none. That takes 20 ms of processor time.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.contextmanager
def _read_timeout(connection: Any, seconds: float) -> Iterator[None]:
    """Set the driver's timeout for an answer while the context lasts."""
    allowed, connection._read_timeout = connection._read_timeout, seconds
    try:
        yield
    finally:
        connection._read_timeout = allowed


def _sign(connection: Any, asked: Any, *_: Any) -> Any:
    """Return the signature of a server's challenge, which is the answer to it."""
    from dbdyno import _core

    connection.write_packet(_core.mariadb_signed(connection.password, asked.read_all()))
    answer = connection._read_packet()
    answer.check_error()
    return answer
