"""SSH access to a cell: dbdyno's options, and the user's SSH configuration interpreted as `ssh` does.

asyncssh reads that configuration too, but differs from OpenSSH in some points: a missing known_hosts file ends the
connection, `UserKnownHostsFile none` turns the check of host keys off, a key file that is missing or has a passphrase
makes the connection fail, an agent's keys are tried before a named key, and each cell opens its own connection to a
jump host. Here all of this behaves as with `ssh`, except that host keys are always checked.

    --key              these keys, from their files or from the agent; no other keys of the agent
    known hosts        --known-hosts, else those of the user's and the system's files that exist
    ProxyJump, --jump  the hosts in between, in order, including those that the first of them goes through
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import CellsError, errors_as
from dbdyno.base.json_types import JsonObject
from dbdyno.cells.hosts import Host, hosts_of

if TYPE_CHECKING:
    import asyncssh

KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
ALL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
DEFAULT_KEYS = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")


@dataclass(frozen=True)
class Access:
    """Options for reaching cells.

    `keys` are private key files; `known_hosts` None means the user's own files; `jump` lists hosts to go through,
    separated by commas and reached with the same keys and host keys; `config` says whether the user's SSH configuration
    is used, or names a file to use instead.
    """

    keys: tuple[Path, ...] = ()
    known_hosts: Path | None = None
    jump: str | None = None
    timeout_s: float = 30.0
    parallel: int = 64
    config: bool | Path = True


class HostAccess:
    """How to reach one host, resolved from the options and the SSH configuration.

    Raises:
        CellsError: The SSH configuration cannot be read.
    """

    def __init__(self, access: Access, host: Host) -> None:
        import asyncssh

        self.access = access
        self.host = host
        unread = (asyncssh.ConfigParseError, OSError, UnicodeDecodeError)
        problem, step = "the SSH configuration cannot be read", "name another file with --ssh-config"
        with errors_as(CellsError, unread, problem, next_step=step):
            self._settings = asyncssh.SSHClientConnectionOptions(
                host=host.address,
                port=host.port or (),
                username=host.user or (),
                client_keys=None,
                **self.config,
            )
        self.address: str = self._settings.host
        self.port = int(self._settings.port or 22)

    @property
    def config(self) -> JsonObject:
        """Return the `config` option for asyncssh."""
        config = self.access.config
        if isinstance(config, Path):
            return {"config": [str(config)]}
        return {"config": () if config else None}

    @property
    def known_name(self) -> str:
        """Return the host's name in known_hosts files."""
        alias = self._settings.host_key_alias
        return alias or (self.address if self.port == 22 else f"[{self.address}]:{self.port}")

    @property
    def own_known_hosts(self) -> Path:
        """Return the known_hosts file to which new host keys are added."""
        given = self.access.known_hosts
        return given or Path([*self._list_option("UserKnownHostsFile", ()), *KNOWN_HOSTS][0]).expanduser()

    @property
    def known_files(self) -> list[Path]:
        """Return the known_hosts files that exist and are readable."""
        own = self._list_option("UserKnownHostsFile", KNOWN_HOSTS)
        everyones = self._list_option("GlobalKnownHostsFile", ALL_KNOWN_HOSTS)
        given = self.access.known_hosts
        files = [given] if given else [Path(name).expanduser() for name in (*own, *everyones)]
        return [file for file in files if file.is_file() and os.access(file, os.R_OK)]

    def _list_option(self, option: str, otherwise: Sequence[str]) -> Sequence[str]:
        """Return the values that the SSH configuration lists for an option, or `otherwise`."""
        found = self._settings.config.get(option)
        return [str(one) for one in found] if isinstance(found, list) else otherwise

    @functools.cached_property
    def known_hosts_text(self) -> asyncssh.SSHKnownHosts:
        """Return the content of the known_hosts files."""
        stamps = [(file, file.stat()) for file in self.known_files]
        return _known_hosts(tuple((file, at.st_mtime_ns, at.st_size) for file, at in stamps))

    def known_keys(self) -> list[asyncssh.SSHKey]:
        """Return the host keys that are known for the host."""
        return list(self._matching_keys()[0])

    def _matching_keys(self) -> Any:
        alias = self._settings.host_key_alias
        port = self.port if self.port != 22 else None
        return self.known_hosts_text.match(alias or self.address, "", port)

    def host_key_kinds(self) -> Sequence[str]:
        """Return host key algorithms in order of preference, those of the known keys first, as `ssh` does.

        The result is empty if the SSH configuration sets the algorithms.
        """
        from asyncssh.public_key import get_default_certificate_algs, get_default_public_key_algs

        if self._settings.config.get("HostKeyAlgorithms"):
            return ()
        keys, authorities, *_ = self._matching_keys()
        kinds = list(get_default_certificate_algs()) if authorities else []
        kinds += [kind for key in keys for kind in key.sig_algorithms]
        return [kind.decode() for kind in dict.fromkeys([*kinds, *get_default_public_key_algs()])]

    @property
    def key_files(self) -> list[Path]:
        """Return the existing private key files to try."""
        named = self._named_keys()
        if named is None:
            named = [f"~/.ssh/{name}" for name in DEFAULT_KEYS]
        files = [Path(name).expanduser() for name in named]
        return [file for file in files if _is_private(file)]

    def _named_keys(self) -> Sequence[str] | None:
        """Return the key files that the options or the SSH configuration name, or None if they name none."""
        given = [str(path) for path in self.access.keys]
        return given or self._list_option("IdentityFile", ()) or None

    def locked_keys(self) -> list[Path]:
        """Return the key files that have a passphrase."""
        return [file for file in self.key_files if _is_locked(file)]

    def options(self) -> dict[str, object]:
        """Return the keyword arguments for `asyncssh.connect`."""
        options: JsonObject = {
            "password_auth": False,
            "kbdint_auth": False,
            "connect_timeout": self.access.timeout_s,
            "keepalive_interval": 15,
            "request_pty": False,
            "known_hosts": self.known_hosts_text,
            "server_host_key_algs": self.host_key_kinds(),
            "ignore_encrypted": True,
            **self._keys(),
            **self.config,
        }
        if self.host.port:
            options["port"] = self.host.port
        if self.host.user:
            options["username"] = self.host.user
        if not self.access.config:
            options["agent_path"] = None
        return options

    def _keys(self) -> dict[str, object]:
        """Return the options that select key files and keys of the agent."""
        named = self._named_keys()
        if named is None:
            return {}
        given: dict[str, object] = {"client_keys": [str(file) for file in self.key_files]}
        if self.access.keys or self._settings.config.get("IdentitiesOnly"):
            public = [file for name in named if (file := _public(Path(name).expanduser()))]
            given |= {"agent_identities": public} if public else {"agent_path": None}
        return given

    def jump_hosts(self) -> tuple[Access, tuple[Host, ...]]:
        """Return the hosts to go through, in order, and the options for reaching them.

        Hosts from the SSH configuration do not use the keys and known hosts of the options, as with `ssh`.
        """
        if self.access.jump:
            access = replace(self.access, jump=None)
            hosts = hosts_of([self.access.jump])
            return access, (*HostAccess(access, hosts[0])._jumps(frozenset()), *hosts)
        access = replace(self.access, keys=(), known_hosts=None)
        if not self._settings.tunnel:
            return access, ()
        return access, HostAccess(access, self.host)._jumps(frozenset())

    def _jumps(self, passed: frozenset[str]) -> tuple[Host, ...]:
        """Return the jump hosts of the SSH configuration, including those through which the first jump host is reached.

        A host never goes through itself, even with `Host *`.
        """
        text = self._settings.tunnel
        if not isinstance(text, str):
            return ()
        hosts = hosts_of([text])
        passed |= {self.host.address}
        if hosts[0].address in passed:
            return ()
        return (*HostAccess(self.access, hosts[0])._jumps(passed), *hosts)


@functools.lru_cache(maxsize=8)
def _known_hosts(files: tuple[tuple[Path, int, int], ...]) -> asyncssh.SSHKnownHosts:
    """Return the content of known_hosts files, cached for all cells until a file changes.

    Invalid lines are skipped, as `ssh` does.
    """
    import asyncssh

    lines = []
    for file, *_ in files:
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split()
            marked = words[:1] in (["@cert-authority"], ["@revoked"])
            if len(words) > 1 + marked and (marked or not line.startswith("@")):
                lines.append(line)
    return asyncssh.import_known_hosts("\n".join(lines))


def _is_private(file: Path) -> bool:
    try:
        return b"PRIVATE KEY" in file.read_bytes()[:4096]
    except OSError:
        return False


def _is_locked(file: Path) -> bool:
    import asyncssh

    try:
        asyncssh.read_private_key(str(file))
    except asyncssh.KeyEncryptionError:
        return True
    except asyncssh.KeyImportError as error:
        return "assphrase" in str(error)
    return False


def _public(file: Path) -> str | None:
    """Return the public key file for a private key file, or None."""
    beside = Path(f"{file}.pub")
    if beside.is_file():
        return str(beside)
    return str(file) if file.is_file() and not _is_private(file) else None
