"""A Cassandra node that dbdyno creates, starts, uses and removes.

It listens on 127.0.0.1 only, at ports picked at run time, with a heap of 512 MB. There is no password: the bulk loader,
which the study compares, would show a password to every user of the host. So the node must hold nothing but generated
rows; functions written by users are disabled.

Its storage compatibility mode is NONE: by default a node reads an older format of SSTables than CQLSSTableWriter of the
same release writes, and silently imports nothing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError, WideError
from dbdyno.base.processes import find_program
from dbdyno.bench.cassandra.java import jar_folder, module_options
from dbdyno.bench.engine.embedded_server import EmbeddedServer
from dbdyno.bench.engine.os_user import can_enter, engine_account
from dbdyno.bench.engine.server_paths import free_port
from dbdyno.bench.undo import CASSANDRA_DATA

if TYPE_CHECKING:
    from dbdyno.bench.guardian import Guardian

HOST = "127.0.0.1"
KEYSPACE = "dbdyno_lab"
DRIVER_S = 30
OPTIONS = (
    *("-Xms256M", "-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=256M"),
    *("-Djdk.attach.allowAttachSelf=true", "-Dcassandra.ring_delay_ms=0"),
    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
)
_YAML = """cluster_name: dbdyno
num_tokens: 4
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 10000ms
endpoint_snitch: SimpleSnitch
listen_address: {host}
rpc_address: {host}
native_transport_port: {port}
storage_port: {storage}
ssl_storage_port: {tls}
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "{host}:{storage}"}}]
auto_snapshot: false
storage_compatibility_mode: NONE
user_defined_functions_enabled: false
concurrent_writes: 16
concurrent_reads: 16
file_cache_size: 32MiB
"""
_LOGBACK = """<configuration><appender name="C" class="ch.qos.logback.core.ConsoleAppender"><encoder>
<pattern>%-5level %date{ISO8601} %logger{20} %msg%n</pattern></encoder></appender>
<root level="INFO"><appender-ref ref="C"/></root></configuration>
"""


def check_installed() -> None:
    """Check that Cassandra's jars, Java and the driver are installed.

    Raises:
        TargetError: One of them is missing; the error says how to install it.
    """
    instead = "or name a cluster that runs: --target cassandra://host/keyspace"
    try:
        jar_folder("")
    except WideError as error:
        raise TargetError(
            f"Cassandra cannot be started here: {error.message}", next_step=f"{error.next_step}; {instead}"
        ) from None
    if importlib.util.find_spec("cassandra") is None:
        raise TargetError(
            "Cassandra cannot be started here: its Python driver is not installed",
            next_step="run `make setup-wide` in a clone of dbdyno, or `pip install 'dbdyno[wide]'` elsewhere",
        )


class EmbeddedCassandra(EmbeddedServer):
    """A Cassandra node started by dbdyno, as a context manager; it has the keyspace `KEYSPACE`.

    Args:
        guardian: A guardian to share; None starts a private one.
        workdir: Folder in which the private folder is created; None means TMPDIR or /var/tmp.
    """

    source = "jars"
    start_s = 300.0
    failure_step = "check that 1 GB of memory is free, or use a running cluster: --target cassandra://host/keyspace"

    def __init__(self, *, guardian: Guardian | None = None, workdir: Path | None = None) -> None:
        super().__init__(guardian)
        self.port, self.storage_port, self._tls_port = free_port(), free_port(), free_port()
        self._workdir = workdir
        self._jars = Path()
        self._opened: list[Any] = []

    def dsn(self, keyspace: str = KEYSPACE) -> str:
        """Return the address of a keyspace."""
        return f"cassandra://{HOST}:{self.port}/{keyspace}"

    def connect(self, keyspace: str | None = None) -> Any:
        """Open a session of the driver; `close` closes it together with the server."""
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
        from cassandra.policies import RoundRobinPolicy

        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=2 * DRIVER_S)
        profiles = {EXEC_PROFILE_DEFAULT: profile}
        cluster = Cluster([HOST], port=self.port, connect_timeout=DRIVER_S, execution_profiles=profiles)
        self._opened.append(cluster)
        return cluster.connect(keyspace)

    def start(self) -> None:
        """Create the folders if there are none yet, start the node and wait until it answers.

        Raises:
            TargetError: Something is not installed, or the node did not start.
        """
        if self._account is None:
            check_installed()
            self._create()
        java = str(find_program("java"))
        own = [f"-Dcassandra.config=file:{self.folder}/conf/cassandra.yaml", f"{CASSANDRA_DATA}{self.data_dir}"]
        scratch = self.folder / "tmp"
        own += [f"-Djna.tmpdir={scratch}", f"-Djava.io.tmpdir={scratch}"]
        own += ["-cp", f"{self.folder}/conf:{self._jars}/*", "org.apache.cassandra.service.CassandraDaemon"]
        self._launch([java, *module_options(), *OPTIONS, *own], self._listens)
        self._make_keyspace()

    def close(self) -> None:
        """Close the sessions, stop the node and remove its folder."""
        for cluster in self._opened:
            cluster.shutdown()
        self._opened.clear()
        super().close()

    def _create(self) -> None:
        account = engine_account()

        def fill() -> None:
            conf = self.folder / "conf"
            for place in (conf, self.data_dir, self.folder / "tmp"):
                place.mkdir(mode=0o700)
            ports = {"port": self.port, "storage": self.storage_port, "tls": self._tls_port}
            (conf / "cassandra.yaml").write_text(_YAML.format(host=HOST, **ports))
            (conf / "logback.xml").write_text(_LOGBACK)
            self._jars = jar_folder()
            if account.other and not can_enter(account, self._jars):
                shutil.copytree(self._jars, self.folder / "lib")
                self._jars = self.folder / "lib"
            if account.other:
                for place in (self.folder, *self.folder.rglob("*")):
                    os.chown(place, account.uid, account.gid)

        self._make_folder(account, self._workdir, fill)

    def _listens(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), 5).close()
        except OSError:
            return False
        return True

    def _make_keyspace(self) -> None:
        from cassandra import DriverException
        from cassandra.cluster import NoHostAvailable

        how = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        try:
            self.connect().execute(f"create keyspace if not exists {KEYSPACE} with replication = {how}")
        except (NoHostAvailable, DriverException) as error:
            raise self._failure(f"the embedded server does not answer: {error}") from None
