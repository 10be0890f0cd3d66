"""`dbdyno model`: commands on machines and models, one file per command."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "model",
    package=__name__,
    rows={
        "list": "The machines that come with dbdyno.",
        "show": "A machine: its parts drawn, every parameter explained.",
        "new": "Write a machine file to start from.",
        "check": "Check a machine file.",
        "replay": "Replay a block trace on a modelled device.",
        "calibrate": "Fit a machine to an arm of a run, or a device to latencies.",
        "predict": "Predict every arm of a run, and compare with the measured values.",
        "whatif": "Simulate a calibrated machine with other devices, sessions, cores.",
        "sensitivity": "Rank the parameters of a machine by their effect.",
        "analyse": "Compare queueing theory with a machine's simulation.",
        "cells": "Modelled storage cells that answer over SSH.",
        "trace": "Write a modelled run as Oracle trace files.",
        "claims": "Validate the model against published results.",
        "map": "Draw a claim over the parameters that its source leaves open.",
    },
    elsewhere={"cells": "dbdyno_rig.command"},
    help="""Model a database instance and its storage in virtual time.

    NAME is a machine that comes with dbdyno (`dbdyno model list`) or a file of your own. A study
    runs on one with `dbdyno run STUDY --target model:NAME`.
    """,
)
