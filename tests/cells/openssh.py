"""A real OpenSSH server for the tests: `sshd` as a child of ours, with modelled cells behind it.

It listens on loopback at ports picked by the system, has a host key, a configuration and a home of its own in a
temporary folder, and accepts only the user who runs the tests; the machine's own SSH files are neither read nor
written. `cellcli` and `hostname` on its PATH ask the test, which answers with a modelled cell, one per port, or with
what a test says. StrictModes is off: a temporary folder is below one that everybody may write to.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pwd
import shlex
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ssh_server import Keys

from dbdyno_rig.cell import Cell
from dbdyno_rig.filters import ProgramResult
from dbdyno_rig.shell import shell

USER = pwd.getpwuid(os.getuid()).pw_name
PATIENCE_S = 90.0
PROGRAMS = ("cellcli", "hostname")

# What stands for cellcli on a cell: it asks the test, prints what it is told, and may hang, be
# killed, or see its session killed.
PROGRAM = """#!{python} -IS
import json, os, pathlib, signal, socket, sys, time
asked = {{"port": int(os.environ["SSH_CONNECTION"].split()[3]),
         "words": [os.path.basename(sys.argv[0]), *sys.argv[1:]]}}
with socket.create_connection(("127.0.0.1", {port})) as rig:
    rig.sendall(json.dumps(asked).encode() + b"\\n")
    told = json.loads(rig.makefile().readline())
    sys.stdout.write(told["output"])
    sys.stdout.flush()
    sys.stderr.write(told["errors"])
    sys.stderr.flush()
    if told["then"] == "hang":
        rig.recv(1)
    if told["then"] == "cut":
        pid = os.getppid()
        while not pathlib.Path(f"/proc/{{pid}}/comm").read_text().startswith("sshd"):
            pid = int(pathlib.Path(f"/proc/{{pid}}/stat").read_text().rsplit(")")[-1].split()[1])
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
    if told["then"] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
sys.exit(told["code"])
"""


@dataclass
class Then:
    """What a cell answers in a test, and what happens next: 'end', 'hang', 'cut' (its session's sshd
    is killed) or 'killed' (the program itself is)."""

    output: str = ""
    code: int = 0
    errors: str = ""
    then: str = "end"


Behaviour = Callable[[str], Then]
"""Function from the command line that a cell receives to the cell's answer."""


def modelled(cell: Cell) -> Behaviour:
    """Return the behaviour of a modelled cell."""

    def say(line: str) -> Then:
        said: ProgramResult = shell(cell, line)
        return Then(said.output, said.code, said.errors)

    return say


@dataclass
class Sshd(Keys):
    """Running SSH server: `ports` in the order of its cells, and the behaviour of each in `cells`."""

    ports: list[int]
    cells: list[Behaviour]
    process: subprocess.Popen[bytes] | None = None
    asked: list[str] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """Return the home folder of the sessions."""
        return self.folder / "home"

    @property
    def authorized_keys(self) -> Path:
        """Return the file of the accepted public keys."""
        return self.home / ".ssh" / "authorized_keys"

    @property
    def log(self) -> str:
        """Return the server's log so far."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def logins(self) -> int:
        """Return the number of successful logins so far."""
        return self.log.count("Accepted publickey")

    @property
    def hosts(self) -> list[str]:
        """Return the cells' addresses as `--hosts` expects them and as columns are named."""
        return [f"127.0.0.1:{port}" for port in self.ports]

    def reach(self, *hosts: str) -> list[str]:
        """Return the options with which `dbdyno cells` reaches these hosts, by default all cells."""
        return [
            "-H",
            ",".join(hosts or self.hosts),
            "-l",
            USER,
            "--key",
            str(self.key),
            "--known-hosts",
            str(self.known_hosts),
            "--timeout",
            str(PATIENCE_S),
        ]

    def let_in(self, key: Path) -> None:
        """Accept this key, too."""
        with self.authorized_keys.open("a") as file:
            file.write(Path(f"{key}.pub").read_text())

    def config(self, **settings: str) -> Path:
        """Return an `ssh` configuration with the cells as cel01 and so on; `settings` come before the options for all
        of them.
        """
        lines = []
        for number, port in enumerate(self.ports, 1):
            lines += [f"Host cel{number:02}", f"  Port {port}"]
        lines += ["Host cel*", *(f"  {name} {text}" for name, text in settings.items())]
        lines += [
            "Host *",
            "  HostName 127.0.0.1",
            f"  User {USER}",
            f"  IdentityFile {self.key}",
            f"  UserKnownHostsFile {self.known_hosts}",
        ]
        path = self.folder / "ssh_config"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def stop(self) -> None:
        """Stop the server and its remaining sessions."""
        if self.process is None:
            return
        os.kill(self.process.pid, signal.SIGSTOP)  # nobody comes in meanwhile
        sessions = _below(self.process.pid)
        self.process.terminate()
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.wait(PATIENCE_S)
        for pid in sessions:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process = None

    def start(self) -> None:
        """Start or restart the server, and wait until it answers: it listens on all ports before it does."""
        program = sshd_program()
        assert program
        ends = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []  # with us
        config, log = self.folder / "sshd_config", self.folder / "log"
        words = [*ends, program, "-D", "-f", config, "-E", log]
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + PATIENCE_S
        while not _answers(self.ports[0]):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.02)


def sshd_program() -> Path | None:
    """Return the full path of sshd, by which it must be called, or None if it is missing."""
    found = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    return Path(found).resolve() if found else None


def make_key(path: Path, *options: str) -> Path:
    """Create a key pair with the system's ssh-keygen; return its path."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)]
    subprocess.run([*words, *options], check=True, stdin=subprocess.DEVNULL)
    return path


@contextlib.contextmanager
def openssh(folder: Path, cells: list[Behaviour], *settings: str) -> Iterator[Sshd]:
    """Yield a server with these cells behind it; `settings` come first in its configuration."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    server = Sshd(folder, [], cells)
    with _asked(server) as rig:
        _furnish(server, rig)
        try:
            _start(server, settings)
            yield server
        finally:
            server.stop()


@functools.cache
def _key_pair(name: str) -> tuple[bytes, bytes]:
    """Return a private key and its public key, which all servers of a test process share."""
    with tempfile.TemporaryDirectory() as folder:
        path = make_key(Path(folder) / name)
        return path.read_bytes(), Path(f"{path}.pub").read_bytes()


def _start(server: Sshd, settings: tuple[str, ...]) -> None:
    """Start the server on free ports."""
    for _ in range(5):
        _configure(server, settings)
        with contextlib.suppress(AssertionError):
            server.start()
        if "Address already in use" not in server.log:
            break
        server.stop()  # somebody else took a port meanwhile
        (server.folder / "log").write_text("")
    assert server.process is not None, server.log
    assert server.process.poll() is None, server.log


def _furnish(server: Sshd, rig: int) -> None:
    """Write keys, the home folder and the programs; `rig` is the port that the programs ask."""
    for path in (server.key, server.folder / "host_key"):
        private, public = _key_pair(path.name)
        path.write_bytes(private)
        path.chmod(0o600)
        Path(f"{path}.pub").write_bytes(public)
    server.authorized_keys.parent.mkdir(parents=True, mode=0o700)
    server.authorized_keys.write_bytes(Path(f"{server.key}.pub").read_bytes())
    server.authorized_keys.chmod(0o600)
    programs = server.folder / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(PROGRAM.format(python=sys.executable, port=rig))
        (programs / name).chmod(0o755)
    (server.folder / "log").touch()


def _configure(server: Sshd, settings: tuple[str, ...]) -> None:
    """Choose free ports, and write the server's configuration."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in server.cells]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        server.ports = [one.getsockname()[1] for one in sockets]
    host_key = (server.folder / "host_key.pub").read_text()
    server.known_hosts.write_text("".join(f"[127.0.0.1]:{port} {host_key}" for port in server.ports))
    lines = [
        *settings,
        *(f"ListenAddress 127.0.0.1:{port}" for port in server.ports),
        f"HostKey {server.folder}/host_key",
        f"PidFile {server.folder}/pid",
        f"AuthorizedKeysFile {server.authorized_keys}",
        f"SetEnv HOME={server.home} PATH={server.folder}/bin:/usr/bin:/bin",
        f"AllowUsers {USER}",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "LogLevel VERBOSE",
    ]
    (server.folder / "sshd_config").write_text("\n".join(lines) + "\n")


@contextlib.contextmanager
def _asked(server: Sshd) -> Iterator[int]:
    """Answer the questions of the cells' programs; yield the port on which they ask."""
    over = threading.Event()

    class Question(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            question = json.loads(self.rfile.readline())
            line = shlex.join(question["words"])
            server.asked.append(line)
            told = server.cells[server.ports.index(question["port"])](line)
            self.wfile.write(json.dumps(vars(told)).encode() + b"\n")
            if told.then == "hang":
                over.wait()

    class Questions(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 128

    with Questions(("127.0.0.1", 0), Question) as questions:
        thread = threading.Thread(target=questions.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield questions.server_address[1]
        finally:
            over.set()
            questions.shutdown()
            thread.join()


def _answers(port: int) -> bool:
    """Return True if an SSH server greets on this port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as one:
        return one.recv(4) == b"SSH-"
    return False


def _below(pid: int) -> list[int]:
    """Return all descendants of a process."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


@functools.cache
def why_not() -> str | None:
    """Return the reason why no real server works here, or None. Its own client must log in, too: an account can be
    locked or have no shell, and a container can forbid what sshd does to itself.
    """
    if sshd_program() is None or not shutil.which("ssh"):
        return "no sshd here: `make setup-test` installs Debian's openssh-server"
    if os.getuid() == 0 and not Path("/run/sshd").is_dir():
        return "sshd started by root wants the folder /run/sshd: `make setup-test` makes it"
    with tempfile.TemporaryDirectory() as folder:
        server = Sshd(Path(folder), [], [lambda line: Then("yes\n")])
        with _asked(server) as rig:
            _furnish(server, rig)
            try:
                _start(server, ())
                words = ["ssh", "-F", str(server.config()), "-o", "BatchMode=yes", "cel01"]
                done = subprocess.run(
                    [*words, "cellcli"],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=PATIENCE_S,
                    check=False,
                )
                if done.stdout == b"yes\n":
                    return None
                return f"ssh itself cannot log in to sshd here: {done.stderr!r}, {server.log}"
            except AssertionError as error:
                return f"sshd does not start here: {error}"
            finally:
                server.stop()


@contextlib.contextmanager
def agent(folder: Path) -> Iterator[Callable[[Path, str], None]]:
    """Start a real ssh-agent; yield a function that adds a key with its passphrase."""
    path = folder / "agent"
    words = ["ssh-agent", "-D", "-a", str(path)]
    environment = {**os.environ, "SSH_AUTH_SOCK": str(path), "SSH_ASKPASS_REQUIRE": "force"}

    def add(key: Path, passphrase: str = "") -> None:
        say = folder / "say"
        say.write_text(f"#!/bin/sh\necho '{passphrase}'\n")
        say.chmod(0o700)
        subprocess.run(
            ["ssh-add", "-q", str(key)],
            env={**environment, "SSH_ASKPASS": str(say)},
            check=True,
            capture_output=True,
        )

    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + PATIENCE_S
            while not path.exists():
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.01)
            yield add
        finally:
            process.terminate()
