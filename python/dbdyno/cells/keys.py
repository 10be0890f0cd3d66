"""Set-up of SSH keys for cells: a new ed25519 key, host keys that the user confirmed, the public key on every cell.

It is idempotent, can show what it would do, and never widens a file's mode.

A host key is shown by its fingerprint and added only when confirmed (or with --accept-new); a changed one is never
added. A private key is never copied to a cell. The system's ssh asks for the password of the first login on the
terminal; dbdyno does not handle it, and it is never on a command line.
"""

from __future__ import annotations

import asyncio
import shlex
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.base.errors import CellsError, errors_as
from dbdyno.base.files import write_atomically
from dbdyno.cells.access import Access, HostAccess
from dbdyno.cells.failures import describe_failure, forget_command
from dbdyno.cells.hosts import Host
from dbdyno.cells.ssh import Fleet, JumpError


@dataclass(frozen=True)
class HostKey:
    """Host key that a cell showed, as a line of known_hosts and as a fingerprint.

    `known` is 'yes', 'no' or 'changed'; `problem` says why there is no key; `forget` is the command that removes the
    known key.
    """

    host: Host
    line: str = ""
    fingerprint: str = ""
    known: str = "no"
    problem: str | None = None
    forget: str = ""


def key_steps(key: Path) -> dict[str, bool]:
    """Return the steps for the user's own key in words, and for each whether it has already been done."""
    there = key.is_file()
    private = there and stat.S_IMODE(key.stat().st_mode) & 0o077 == 0
    folder = key.parent
    narrow = folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o022 == 0
    return {
        f"folder {folder}, writable only by its owner (0700)": narrow,
        f"private key {key}, ed25519, readable only by its owner (0600)": private,
        f"public key {key}.pub": Path(f"{key}.pub").is_file(),
    }


def make_key(key: Path, comment: str) -> None:
    """Create what `key_steps` found missing; an existing key is kept, and its mode narrowed.

    Raises:
        CellsError: The public key cannot be derived from the existing private key.
    """
    import asyncssh

    key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(key.parent.stat().st_mode) & 0o022:
        key.parent.chmod(0o700)
    if not key.is_file():
        made = asyncssh.generate_private_key("ssh-ed25519", comment=comment)
        write_atomically(key, made.export_private_key(), durable=True, mode=0o600)
    elif stat.S_IMODE(key.stat().st_mode) & 0o077:
        key.chmod(0o600)
    public = Path(f"{key}.pub")
    if not public.is_file():
        unread = (asyncssh.KeyImportError, asyncssh.KeyEncryptionError)
        command = f"ssh-keygen -y -f {shlex.quote(str(key))} > {shlex.quote(str(public))}"
        step = f"make the public key manually: {command}"
        with errors_as(CellsError, unread, "the public key cannot be made from the private key", str(key), step):
            read = asyncssh.read_private_key(str(key))
        write_atomically(public, read.export_public_key(), durable=True, mode=0o644)


def read_host_keys(hosts: Sequence[Host], known_hosts: Path, access: Access | None = None) -> list[HostKey]:
    """Return the host key of every cell and whether known_hosts has it, without logging in to the cells.

    Args:
        hosts: The cells.
        known_hosts: The known_hosts file.
        access: Jump hosts and timeout, or None for the defaults.
    """
    access = access or Access(timeout_s=10.0)
    if not access.jump:
        access = replace(access, known_hosts=None)  # looking does not trust anything

    async def work() -> list[HostKey]:
        async with Fleet(hosts, access) as fleet:
            return list(await asyncio.gather(*(_look(host, known_hosts, fleet) for host in hosts)))

    return asyncio.run(work())


async def _look(host: Host, known_hosts: Path, fleet: Fleet) -> HostKey:
    import asyncssh

    timeout_s = fleet.access.timeout_s
    reach = HostAccess(replace(fleet.access, known_hosts=known_hosts), host)
    try:
        key = await asyncio.wait_for(fleet.host_key(reach), timeout_s)
    except TimeoutError:
        return HostKey(host, problem=f"no answer within {timeout_s:g} s")
    except JumpError as error:
        return HostKey(host, problem=error.describe()[0])
    except (OSError, asyncssh.Error) as error:
        return HostKey(host, problem=describe_failure(error, reach)[0])
    if key is None:
        return HostKey(host, problem="showed no host key")
    trusted = reach.known_keys()
    known = "no"
    if trusted:
        known = "yes" if key.convert_to_public() in trusted else "changed"
    public = key.export_public_key().decode().strip()
    line = f"{reach.known_name} {public}"
    return HostKey(host, line, key.get_fingerprint(), known, forget=forget_command(reach))


def trust(keys: Sequence[HostKey], known_hosts: Path) -> int:
    """Add unknown host keys to known_hosts, and return their number; a changed key is never added."""
    lines = [key.line for key in keys if key.known == "no" and key.line]
    if lines:
        known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = known_hosts.read_text(encoding="utf-8") if known_hosts.is_file() else ""
        if before and not before.endswith("\n"):
            before += "\n"
        write_atomically(known_hosts, (before + "\n".join(lines) + "\n").encode(), durable=True, mode=0o600)
    return len(lines)


def install_command(public: str) -> str:
    """Return the shell command that adds the key on a cell, if it is missing, on its own line, with correct modes."""
    line = shlex.quote(public.strip())
    file = "~/.ssh/authorized_keys"
    return (
        f"umask 077; mkdir -p ~/.ssh && touch {file} && {{ grep -qxF -e {line} {file} || "
        f'{{ [ -z "$(tail -c 1 {file})" ] || echo >> {file}; '
        f"printf '%s\\n' {line} >> {file}; }}; }} && chmod 700 ~/.ssh && chmod 600 {file}"
    )


def remove_command(public: str) -> str:
    """Return the shell command that removes the key from a cell.

    It removes every line with the key, whatever its comment; other lines, mode and owner stay unchanged. Nothing is
    written if the key is not there.
    """
    blob = shlex.quote(" ".join(public.split()[:2]))
    file = "~/.ssh/authorized_keys"
    return (
        f"[ ! -e {file} ] || ! grep -qF -e {blob} {file} || {{ umask 077; t=$(mktemp ~/.ssh/.keys.XXXXXX) &&"
        f' cp -p {file} "$t" && {{ grep -vF -e {blob} {file} > "$t"; [ $? -le 1 ]; }} && mv -f "$t" {file}; }}'
    )


def install_with_ssh(host: Host, public: str, known_hosts: Path, access: Access | None = None) -> list[str]:
    """Return the ssh command line that installs the key; ssh may ask for the password on the terminal.

    Jump hosts and the SSH configuration file are those of `access`.
    """
    way = []
    if access and access.jump:
        way += ["-J", access.jump]
    if access and isinstance(access.config, Path):
        way += ["-F", str(access.config)]
    target = f"{host.user}@{host.address}" if host.user else host.address
    port = ["-p", str(host.port)] if host.port else []
    return [
        "ssh",
        "-o",
        "StrictHostKeyChecking=yes",
        "-o",
        f"UserKnownHostsFile={known_hosts}",
        *port,
        *way,
        "--",
        target,
        install_command(public),
    ]
