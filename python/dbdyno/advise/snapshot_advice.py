"""Advice on an interval of snapshots, as `dbdyno advise snap:1..12` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbdyno.advise.engines.postgres.snapshots import read
from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.judge import judge, rules
from dbdyno.advise.placement import FastDevice
from dbdyno.advise.predictions import without_machine
from dbdyno.advise.proofs import stored_proofs
from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.store.folder import Store


def advice_on(store: Store, period: str, target: str) -> JsonObject:
    """Return the model of the advice that all rules give on a period such as `1..12`.

    Raises:
        SnapshotError: The period cannot be read.
        AdviceError: There are no rules for the engine.
    """
    return judge(without_machine(without_device(read(store, period, target))), rules(), stored_proofs())


def without_device(facts: Facts) -> Facts:
    """Return the evidence with the reason why nothing is said about a fast device: none was named."""
    lack = MissingEvidence("the size of the fast device was not given", "add the size, such as --fast-gb 100")
    return replace(facts, lacking={FastDevice: lack, **facts.lacking})


def about_statement(model: Mapping[str, Any], name: str) -> JsonObject:
    """Return the advice reduced to the findings about one statement, which `name` identifies."""
    found = [one for one in model["findings"] if one["subject"] == f"statement {name}"]
    return {**model, "findings": found}
