"""An Apache Cassandra of our own for tests and benches: made, started, killed, started again, removed.

    with CassandraServer() as server:
        server.connect().execute("select release_version from system.local")

Its jars are those of `make setup-wide`; without them `missing()` says so. It runs as the unprivileged account that
embedded engines run as, on 127.0.0.1 at ports picked at run time, 512 MB of heap, its data in a private temporary
folder. `storage_compatibility_mode: NONE`, since the default reads an older
form of SSTable than CQLSSTableWriter of the same jar writes, and imports nothing of it without a word.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

from dbdyno.bench.engine.os_user import can_enter
from dbdyno.bench.engine.server_paths import free_port
from dbdyno.wide.java import modules
from launched import Launched

ROOT = Path(__file__).resolve().parents[1]
JARS = ROOT / "target" / "wide" / "cassandra" / "lib"
START_S = 300.0  # a machine under load
NEXT = "make setup-wide"
YAML = """
cluster_name: dbdyno
num_tokens: 4
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 10000ms
endpoint_snitch: SimpleSnitch
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
native_transport_port: {port}
storage_port: {storage}
ssl_storage_port: {tls}
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "127.0.0.1:{storage}"}}]
auto_snapshot: false
storage_compatibility_mode: NONE
user_defined_functions_enabled: false
concurrent_writes: 16
concurrent_reads: 16
file_cache_size: 32MiB
"""
LOGBACK = """<configuration><appender name="F" class="ch.qos.logback.core.FileAppender"><file>{log}</file><encoder>
<pattern>%-5level %date{{ISO8601}} %logger{{20}} %msg%n</pattern></encoder></appender>
<root level="INFO"><appender-ref ref="F"/></root></configuration>
"""


def missing() -> str | None:
    """Why no Cassandra can be started here; None where it can."""
    for program in ("java", "setpriv"):
        if shutil.which(program) is None:
            return f"{program} not found; {NEXT} says what it needs"
    if not JARS.is_dir():
        return f"no jars of Cassandra; {NEXT}"
    try:
        import cassandra  # noqa: F401
    except ImportError:
        return f"no cassandra-driver; {NEXT}"
    return None


class CassandraServer(Launched):
    """One node, as a context manager."""

    def __init__(self) -> None:
        super().__init__("cassandra")
        self.port, self.storage, self.tls = free_port(), free_port(), free_port()
        self.jars = JARS
        self._opened: list[Any] = []

    def dsn(self, keyspace: str) -> str:
        """What a user would give."""
        return f"cassandra://127.0.0.1:{self.port}/{keyspace}"

    def connect(self, keyspace: str | None = None) -> Any:
        """A session of the driver."""
        from cassandra.cluster import Cluster

        cluster = Cluster(["127.0.0.1"], port=self.port, connect_timeout=30)
        self._opened.append(cluster)
        session = cluster.connect(keyspace)
        session.default_timeout = 60
        return session

    def create(self) -> None:
        """Makes the folders and the configuration."""
        conf = self.folder / "conf"
        conf.mkdir(parents=True, mode=0o700)
        for name in ("data", "tmp"):
            (self.folder / name).mkdir(mode=0o700)
        (conf / "cassandra.yaml").write_text(YAML.format(port=self.port, storage=self.storage, tls=self.tls))
        (conf / "logback.xml").write_text(LOGBACK.format(log=self.folder / "system.log"))
        if self.account.other and not can_enter(self.account, JARS):
            self.jars = self.folder / "lib"
            shutil.copytree(JARS, self.jars)
        if self.account.other:
            for place in (self.folder, *self.folder.rglob("*")):
                os.chown(place, self.account.uid, self.account.gid)

    def start(self) -> None:
        """Starts the node and waits until it answers."""
        command = ["java", *modules(), "-Xms256M", "-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-XX:MaxDirectMemorySize=256M", "-Djdk.attach.allowAttachSelf=true"]
        command += [f"-Dcassandra.config=file:{self.folder}/conf/cassandra.yaml", "-Dcassandra.ring_delay_ms=0"]
        command += [f"-Dcassandra.storagedir={self.folder}/data", "-Dcassandra.skip_wait_for_gossip_to_settle=0"]
        command += [f"-Djna.tmpdir={self.folder}/tmp", f"-Djava.io.tmpdir={self.folder}/tmp"]
        command += ["-cp", f"{self.folder}/conf:{self.jars}/*", "org.apache.cassandra.service.CassandraDaemon"]
        self.launch(command)
        self.wait_for(self._knock, OSError, START_S)

    def close(self) -> None:
        """Ends the sessions, then the node."""
        for cluster in self._opened:
            cluster.shutdown()
        self._opened.clear()
        super().close()

    def _knock(self) -> None:
        socket.create_connection(("127.0.0.1", self.port), 5).close()
