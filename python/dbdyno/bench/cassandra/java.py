"""Cassandra's Java programs: the folder of their jars, and their module options for Java 17."""

from __future__ import annotations

import os
from pathlib import Path

from dbdyno.base.errors import WideError
from dbdyno.base.processes import find_program

JARS = "DBDYNO_CASSANDRA_JARS"
INSTALL_STEP = f"run `make setup-wide` in a clone of dbdyno, or set {JARS} to a folder with the jars of Cassandra 5"
_EXPORTS = (
    "java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch java.base/java.lang.ref"
    " java.base/java.lang.reflect java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry"
    " java.rmi/sun.rmi.server java.rmi/sun.rmi.transport.tcp java.sql/java.sql jdk.unsupported/sun.misc"
)
_OPENS = (
    "java.base/java.lang.module java.base/java.net java.base/jdk.internal.loader java.base/jdk.internal.ref"
    " java.base/jdk.internal.reflect java.base/jdk.internal.math java.base/jdk.internal.module"
    " java.base/jdk.internal.util.jar jdk.management/com.sun.management.internal java.base/sun.nio.ch java.base/java.io"
    " java.base/java.lang java.base/java.lang.reflect java.base/java.util java.base/java.nio java.base/java.math"
    " java.base/java.util.concurrent java.base/java.util.concurrent.atomic"
)


def jar_folder(where: str = "--direct") -> Path:
    """Return the folder with Cassandra's jars.

    Args:
        where: What needs the jars, for the error message.

    Raises:
        WideError: The jars or Java are missing.
    """
    named = os.environ.get(JARS)
    place = Path(named) if named else Path(__file__).resolve().parents[4] / "target" / "wide" / "cassandra" / "lib"
    if not any(place.glob("cassandra-all-*.jar")):
        raise WideError("Cassandra's jars are not installed", where=where, next_step=INSTALL_STEP)
    if find_program("java") is None:
        raise WideError("Java is not installed", where=where, next_step="install Java 17")
    return place


def module_options() -> list[str]:
    """Return the module options that Cassandra needs on Java 17."""
    exports = [f"--add-exports={one}=ALL-UNNAMED" for one in _EXPORTS.split()]
    return [*exports, *(f"--add-opens={one}=ALL-UNNAMED" for one in _OPENS.split())]
