"""`dbdyno probe`: latency of a database's I/O on real devices, one file per command."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "probe",
    package=__name__,
    rows={
        "redo": "Write as a log writer does, to one path or two.",
        "flash": "Read and overwrite a file or device until it is steady.",
        "recover": "Check what the files of a killed probe contain.",
    },
    help="""Measure the latency of a database's I/O on real files; every latency is kept as evidence.""",
)
