"""`dbdyno model`: commands on machines and models, one file per command."""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "list": ("dbdyno.cli.model.list", "The machines that come with dbdyno."),
    "show": ("dbdyno.cli.model.show", "A machine: its parts drawn, every parameter explained."),
    "new": ("dbdyno.cli.model.new", "Write a machine file to start from."),
    "check": ("dbdyno.cli.model.check", "Check a machine file."),
    "replay": ("dbdyno.cli.model.replay", "Replay a block trace on a modelled device."),
    "calibrate": ("dbdyno.cli.model.calibrate", "Fit a machine to an arm of a run, or a device to latencies."),
    "predict": ("dbdyno.cli.model.predict", "Predict every arm of a run, and compare with the measured values."),
    "whatif": ("dbdyno.cli.model.whatif", "Simulate a calibrated machine with other devices, sessions, cores."),
    "sensitivity": ("dbdyno.cli.model.sensitivity", "Rank the parameters of a machine by their effect."),
    "analyse": ("dbdyno.cli.model.analyse", "Compare queueing theory with a machine's simulation."),
    "cells": ("dbdyno_rig.command", "Modelled storage cells that answer over SSH."),
    "trace": ("dbdyno.cli.model.trace", "Write a modelled run as Oracle trace files."),
    "claims": ("dbdyno.cli.model.claims", "Validate the model against published results."),
    "map": ("dbdyno.cli.model.map", "Draw a claim over the parameters that its source leaves open."),
}


@click.group("model", cls=LazyGroup, rows=ROWS)
def command() -> None:
    """Model a database instance and its storage in virtual time.

    NAME is a machine that comes with dbdyno (`dbdyno model list`) or a file of your own. A study
    runs on one with `dbdyno run STUDY --target model:NAME`.
    """
