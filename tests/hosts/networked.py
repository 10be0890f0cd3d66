"""Server, scheduler and workers as hosts on separate networks, with runs started from the desk, which is host 0."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from cluster import Cluster, add_worker, ended, started
from network import Network
from psycopg.conninfo import make_conninfo

from dbdyno.bench.postgres.embedded import EmbeddedPostgres

SHIM = Path(__file__).parents[1] / "lab" / "clock_shim.c"


class NetworkPostgres(EmbeddedPostgres):
    """A PostgreSQL server that other hosts can reach."""

    def __init__(self, address: str, **settings: str) -> None:
        super().__init__(settings=settings)
        self.address = address

    def _configure(self, port: int) -> None:
        super()._configure(port)
        text = (self.folder / "postgresql.conf").read_text()
        self._write("postgresql.conf", f"{text}listen_addresses = '{self.address}'\n")
        text = (self.folder / "pg_hba.conf").read_text()
        self._write("pg_hba.conf", f"{text}host all all {self.address}/24 scram-sha-256\n")

    def dsn(self) -> str:
        """Return the connection string for other hosts."""
        return make_conninfo("", **{**self.tcp_conninfo(), "host": self.address})


@dataclass
class Lab:
    """A server on the desk, and workers on hosts 1, 2 and so on."""

    network: Network
    server: NetworkPostgres
    folder: Path
    cluster: Cluster | None = None
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def start_workers(self, hosts: int, *, clocks_s: Sequence[float] = (), drifts_ppm: Sequence[float] = ()) -> None:
        """Start a scheduler on the desk, and on each host a worker whose clock is shifted and drifts."""
        options = {"host": self.network.address(0), "port": 0, "dashboard": False}
        with self.network.inside(0):
            scheduler, line = started("distributed.Scheduler", options, "Scheduler at:")
        self.held.callback(ended, scheduler)
        self.cluster = Cluster(line.split("Scheduler at:")[1].strip(), scheduler)
        for host in range(1, hosts + 1):
            self.start_worker(host, *(own[host - 1] if own else 0.0 for own in (clocks_s, drifts_ppm)))

    def start_worker(self, host: int, clock_s: float = 0.0, drift_ppm: float = 0.0) -> None:
        assert self.cluster is not None
        moved = {}
        if clock_s or drift_ppm:
            (seconds := self.folder / f"seconds-{host}").write_text(str(clock_s))
            moved = {"LD_PRELOAD": str(self._shim()), "CLOCK_SHIM": str(seconds), "CLOCK_SHIM_PPM": str(drift_ppm)}
        with self.network.inside(host):
            place = self.network.address(host)
            add_worker(self.cluster, self.folder, f"host-{host}", moved, host=place)
        self.held.callback(ended, self.cluster.workers[-1])

    def begun(self, *words: str, cwd: Path) -> subprocess.Popen[str]:
        """Start `dbdyno` on the desk."""
        log = (cwd / "said").open("w")
        self.held.enter_context(log)
        with self.network.inside(0):
            return subprocess.Popen(
                [sys.executable, "-m", "dbdyno", *words],
                cwd=cwd,
                stdout=log,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONWARNINGS": "ignore", "PGPASSWORD": self.server.password},
            )

    def run(self, *words: str, cwd: Path, codes: tuple[int, ...] = (0, 1), limit_s: float = 600) -> str:
        """Run `dbdyno` on the desk to its end, and return what it wrote."""
        process = self.begun(*words, cwd=cwd)
        try:
            code = process.wait(limit_s)
        finally:
            process.kill()
        said = (cwd / "said").read_text()
        assert code in codes, said
        return said

    def spread(self, plan: str, *words: str, cwd: Path, codes: tuple[int, ...] = (0, 1), limit_s: float = 600) -> str:
        """Run a plan on the workers."""
        assert self.cluster is not None
        return self.run("run", plan, *words, "--scheduler", self.cluster.address, cwd=cwd, codes=codes, limit_s=limit_s)

    def _shim(self) -> Path:
        shim = self.folder / "shim.so"
        if not shim.exists():
            subprocess.run(["cc", "-shared", "-fPIC", "-O2", str(SHIM), "-o", str(shim), "-ldl"], check=True)
        return shim


@contextlib.contextmanager
def lab(folder: Path, hosts: int, **settings: str) -> Iterator[Lab]:
    """Yield a laboratory with a server on the desk and `hosts` other hosts."""
    with Network(folder, hosts + 1) as network, contextlib.ExitStack() as stack:
        server = NetworkPostgres(network.address(0), **settings)
        with network.inside(0):
            stack.enter_context(server)
        found = Lab(network, server, folder)
        stack.enter_context(found.held)
        yield found


def rows_of(run: Path, query: str) -> list[Any]:
    """Return the rows of a query on the calls of a run."""
    return duckdb.connect().execute(query.replace("calls", f"read_parquet('{run}/calls/*.parquet')")).fetchall()
