"""Manifests of earlier versions, brought to what today's readers expect. The only place that infers from a manifest
what kind of bench made it.

Before benches had names a manifest said by its other keys what it was: `iorm` on storage cells, `logs` of log writers
on this host, `machine` on a model. What a run on cells switched stood under `iorm` alone.
"""

from __future__ import annotations

from typing import Any

_READS: dict[str, dict[str, Any]] = {
    "cells": {"evidence": "cells", "virtual": False, "parts": []},
    "host": {"evidence": "operations", "virtual": False, "parts": ["logs", "race"]},
    "model": {"evidence": "operations", "virtual": True, "parts": ["devices", "databases", "race", "limits"]},
    "postgres": {"evidence": "operations", "virtual": False, "parts": []},
}
_SIGNS = {"iorm": "cells", "logs": "host", "machine": "model"}


def upgraded(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with the bench that made it and how its evidence is read; of anything but a run, as it is."""
    if "bench" in manifest or "plan" not in manifest:
        return manifest
    bench = next((kind for sign, kind in _SIGNS.items() if sign in manifest), "postgres")
    manifest["bench"], manifest["reads"] = bench, type(manifest)(_READS[bench])
    plan, iorm = manifest.get("plan"), manifest.get("iorm")
    if isinstance(plan, dict) and isinstance(iorm, dict):
        _switching(manifest, plan, iorm)
    return manifest


def _switching(manifest: dict[str, Any], plan: dict[str, Any], iorm: dict[str, Any]) -> None:
    """What a run on cells switches, as parameters of its plan. What is not of the kind expected is left for those
    who read the plan to refuse."""
    workload, arms, schedule = plan.get("workload"), plan.get("arms"), plan.get("schedule")
    if not (isinstance(workload, dict) and isinstance(arms, list) and isinstance(schedule, dict)):
        return
    on = iorm.get("on")
    states = on if isinstance(on, list) and len(on) == len(arms) else [None] * len(arms)
    named = {key: iorm.get(key) for key in ("databases", "patience_s", "held")}
    same = type(manifest)
    manifest["plan"] = same(
        plan,
        workload=same(workload, kind="flash-log-switch", parameters=named),
        schedule=same(schedule, turn_ns=manifest.get("turn_ns")),
        arms=[
            same(arm, parameters=same(flash_log=own)) if isinstance(arm, dict) else arm
            for arm, own in zip(arms, states, strict=True)
        ],
    )
