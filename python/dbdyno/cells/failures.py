"""Failures to reach a cell, as a sentence and the next step."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from dbdyno.base.errors import CellsError
from dbdyno.cells.access import HostAccess

if TYPE_CHECKING:
    import asyncssh

FailureText = tuple[str, str | None]
REFUSED = "it refused the key"


def describe_failure(error: Exception, reach: HostAccess) -> FailureText:
    """Return a sentence and the next step for a failure to connect to a host."""
    import asyncssh

    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _of_host_key(error, reach)
    if isinstance(error, asyncssh.PermissionDenied):
        return _of_keys(reach)
    if isinstance(error, OSError):
        return f"cannot be reached: {_reason(error)}", "check that the name is right and the host is up"
    many = "authentication failures" in str(error)
    return _message_of(error), _FEWER if many else None


_FEWER = (
    "the agent offered too many keys: name the right key with --key, or with IdentityFile and IdentitiesOnly in the "
    "SSH configuration"
)


def _reason(error: OSError) -> str:
    """Return the system's message for an error number, because event loops replace that message by their own.

    Errors of name resolution have negative numbers and the resolver's message.
    """
    known = isinstance(error.errno, int) and error.errno > 0
    return os.strerror(error.errno).lower() if known and error.errno is not None else error.strerror or str(error)


def _message_of(error: Exception) -> str:
    import asyncssh

    if isinstance(error, asyncssh.DisconnectError):
        return f"the connection was lost: {error.reason}"
    if isinstance(error, asyncssh.Error):
        return f"SSH failed: {error.reason}"
    if isinstance(error, CellsError):
        return error.message
    return f"failed: {type(error).__name__}: {error}"


def forget_command(reach: HostAccess) -> str:
    """Return the command that removes a host's known key."""
    file = next(iter(reach.known_files), None)
    words = ["ssh-keygen", "-R", reach.known_name, *(["-f", str(file)] if file else [])]
    return shlex.join(words)


def _of_host_key(error: asyncssh.HostKeyNotVerifiable, reach: HostAccess) -> FailureText:
    known = reach.known_keys()
    if "revoked" in error.reason:
        return f"its host key is revoked ({error.reason})", None
    if known:
        kinds = ", ".join(sorted({key.get_algorithm() for key in known}))
        return (
            f"its host key differs from the known key ({kinds})",
            f"find out why; only if it was changed on purpose, remove the old key: {forget_command(reach)}",
        )
    way = "compare the key through another channel, then add it: "
    if reach.jump_hosts()[1]:
        return "its host key is not known", f"{way}`dbdyno cells setup-keys` shows and adds it"
    port = f"-p {reach.port} " if reach.port != 22 else ""
    return "its host key is not known", f"{way}ssh-keyscan {port}{reach.address}"


def _of_keys(reach: HostAccess) -> FailureText:
    locked = reach.locked_keys()
    if locked:
        first = shlex.quote(str(locked[0]))
        return (
            f"no key was accepted; {locked[0]} has a passphrase, so only an agent can offer it",
            f"run `ssh-add {first}` to give it to the agent (`ssh-add -l` lists its keys)",
        )
    return (
        REFUSED,
        "install a key with `dbdyno cells setup-keys`, or name another key (--key) or user (--user)",
    )
