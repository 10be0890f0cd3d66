"""A job's files on a Hadoop file system (hdfs://, s3a://, any for which Hadoop has a class).

Each file is written on the machine that reads its rows, then copied to a temporary name and renamed through Hadoop's
API, in a small JVM of this process with Spark's jars: Python on an executor has no other access to such a file system,
and nothing except Spark has to be installed. A rename replaces an existing file, so a task that runs twice leaves one
file. The ledger stays on the driver's disk.

The configuration is that of HADOOP_CONF_DIR, and on Spark its `spark.hadoop.*` settings; a file system whose class is
not in Spark's jars is found through HADOOP_CLASSPATH.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dbdyno.base.errors import MoveError

END_S = 10


class Hadoop:
    """Folder on a Hadoop file system.

    Raises:
        MoveError: The folder cannot be reached.
    """

    def __init__(self, place: str, settings: Mapping[str, str] | None = None) -> None:
        self.place = place.rstrip("/")
        self._gateway = _machine()
        jvm = self._gateway.jvm
        self._path, self._options = jvm.org.apache.hadoop.fs.Path, getattr(jvm, "org.apache.hadoop.fs.Options$Rename")
        with self._java_errors():
            conf = jvm.org.apache.hadoop.conf.Configuration()
            for name, value in (settings or {}).items():
                conf.set(name, value)
            uri = jvm.java.net.URI.create(self.place)
            self._files = jvm.org.apache.hadoop.fs.FileSystem.get(uri, conf)
            self._context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(uri, conf)

    def put(self, local: Path, name: str) -> None:
        """Copy a local file into the folder under a temporary name and rename it, replacing a file of the same name."""
        folder, _, last = f"{self.place}/{name}".rpartition("/")
        aside, there = self._path(f"{folder}/.{last}.{secrets.token_hex(8)}.tmp"), self._path(f"{folder}/{last}")
        over = self._gateway.new_array(self._options, 1)
        over[0] = self._options.OVERWRITE
        with self._java_errors():
            self._files.mkdirs(self._path(folder))
            try:
                self._files.copyFromLocalFile(False, True, _local(self._path, local), aside)
                self._context.rename(aside, there, over)
            except BaseException:
                self._files.delete(aside, False)
                raise

    def get(self, name: str, local: Path) -> None:
        """Copy a file from the folder to a local path."""
        with self._java_errors():
            there = self._path(f"{self.place}/{name}")
            self._files.copyToLocalFile(False, there, _local(self._path, local), True)

    def sizes(self) -> dict[str, int]:
        """Return the sizes in bytes of all files in the folder, including temporary ones, by their path in it."""
        found: dict[str, int] = {}
        with self._java_errors():
            root = self._path(self.place)
            if not self._files.exists(root):
                return found
            above = self._files.getFileStatus(root).getPath().toString()
            each = self._files.listFiles(root, True)
            while each.hasNext():
                one = each.next()
                found[one.getPath().toString().removeprefix(f"{above}/")] = one.getLen()
        return found

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        with self._java_errors():
            self._files.delete(self._path(f"{self.place}/{name}"), False)

    @contextlib.contextmanager
    def _java_errors(self) -> Iterator[None]:
        """Turn errors of Hadoop and of the JVM into `MoveError`."""
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            said = str(error.java_exception.toString()).splitlines()[0]
            raise MoveError(f"Hadoop says: {said}", where=self.place, next_step=NEXT) from None
        except (Py4JError, OSError) as error:
            raise MoveError(f"the JVM for Hadoop is lost: {error}", where=self.place, next_step=NEXT) from None


def _local(path: Any, file: Path) -> Any:
    """Return Hadoop's path of a local file; built so that `%` in the path is not decoded."""
    return path(f"file://{file.absolute()}")


def chunk_files(names: Iterable[str], files: Iterable[str]) -> list[str]:
    """Return the names that are chunk files, either directly or in a folder named by a partition value."""
    known = set(files)
    return [name for name in names if name in known or re.sub(r"(?<![^/])[^/=]+=[^/]*/(?=[^/]+$)", "", name) in known]


NEXT = "check that the file system is up and writable (HADOOP_CONF_DIR configures it), then run `dbdyno move resume`"


@functools.cache
def _machine() -> Any:
    """Return the gateway to this process's JVM, starting it first; raise `MoveError` if it cannot start."""
    try:
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    except ImportError:
        raise MoveError(
            "cannot be used: PySpark is not installed",
            where="a Hadoop file system",
            next_step="run `pip install 'dbdyno[spark]'`",
        ) from None
    jars = _jars()
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else Path("java")
    path = [os.environ.get("HADOOP_CONF_DIR", ""), os.environ.get("HADOOP_CLASSPATH", ""), f"{jars}/*"]
    try:
        port, token, process = launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=os.pathsep.join(filter(None, path)),
            java_path=str(java),
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
    except (OSError, StopIteration, ValueError) as error:
        raise MoveError(
            f"the JVM did not start: {error}", where="a Hadoop file system", next_step="install Java 8 to 17"
        ) from None
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    # The JVM ends when the pipe to it is closed.
    atexit.register(_end, gateway, process)
    return gateway


def _end(gateway: Any, process: Any) -> None:
    gateway.close()
    process.stdin.close()
    process.stdout.close()
    process.wait(END_S)


def _missing() -> MoveError:
    return MoveError(
        "cannot be used: PySpark is not installed",
        where="a Hadoop file system",
        next_step="run `pip install 'dbdyno[spark]'`",
    )


def _jars() -> Path:
    """Return the folder of Spark's jars: that of SPARK_HOME, else that of the package pyspark."""
    if "SPARK_HOME" in os.environ:
        return Path(os.environ["SPARK_HOME"]) / "jars"
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise _missing()
    return Path(found.origin).parent / "jars"


def verify_files(hadoop: Hadoop, files: Mapping[str, int], chunks: Iterable[str]) -> None:
    """Remove files that interrupted tasks left, and check the sizes of all others at the end of a job.

    Args:
        hadoop: The folder on the Hadoop file system.
        files: The files of finished chunks, with their sizes in bytes.
        chunks: Names of the files of all chunks.

    Raises:
        MoveError: The size of a file differs from the size that was written.
    """
    found = hadoop.sizes()
    left = [name for name in found if re.search(r"(^|/)\.part-\d+\.parquet\.[0-9a-f]{16}\.tmp$", name)]
    # A task that was killed may have written a partition value that its second run did not see.
    for name in (*left, *(name for name in chunk_files(found, chunks) if name not in files)):
        hadoop.delete(name)
    for name, size in files.items():
        if found.get(name) != size:
            raise MoveError(
                f"{name} has {found.get(name, 'no')} bytes, but dbdyno wrote {size} bytes",
                where=hadoop.place,
                next_step="find out who else writes to this folder, and move the table again into a new folder",
            )
