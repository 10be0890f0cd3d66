"""The log device as a host's probe measured it: one device for each method by which a server can sync its log."""

from __future__ import annotations

from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.host.speed import HostSpeed
from dbdyno.bench.host.syncs import Syncs
from dbdyno.study.prediction.device import LEAST, NAME, LogDevice, section
from dbdyno.study.prediction.parameter import DEFAULT, MEASURED, Parameter, toml_value
from dbdyno.study.prediction.slopes import slope
from dbdyno.study.prediction.sync_methods import USUAL, device_name


def host_device(speed: HostSpeed) -> LogDevice:
    """Return the device of the log; its text also has the devices of the other sync methods.

    Raises:
        ModelError: The probe made too few syncs by the usual method.
    """
    usual = speed.syncs[USUAL]
    if len(usual.elapsed_us) < LEAST:
        raise ModelError(
            f"{len(usual.elapsed_us)} syncs are too few to fit a device",
            where=str(speed.folder),
            next_step=f"measure for a longer time, such as --for 60s; at least {LEAST} syncs are needed",
        )
    texts: list[str] = []
    rows: list[Parameter] = []
    notes: list[str] = []
    report: JsonObject = {}
    for method, own in speed.syncs.items():
        if len(own.elapsed_us) < LEAST:
            notes.append(f"Device: {len(own.elapsed_us)} syncs by {method} are too few; it is not in the machine.")
            continue
        text, found, own_report = _device(method, own)
        texts.append(text)
        rows += found
        report = report or own_report
    return LogDevice("\n".join(texts), rows, report, [*_sentences(report), *notes])


def _device(method: str, syncs: Syncs) -> tuple[str, list[Parameter], JsonObject]:
    """Return the section of a sync method's device, its parameters, and the fit of its times."""
    import numpy as np

    from dbdyno import _core

    name = device_name(method)
    kb, times = np.asarray(syncs.kb), np.asarray(syncs.device_us())
    per_kb = _per_kb(name, slope(kb, times))
    times = np.maximum(times - per_kb.value * kb, 1.0)
    report = _core.model_calibrate(
        np.ascontiguousarray(times, dtype="<f8").tobytes(), np.asarray(syncs.started_ns, dtype="<i8").tobytes()
    )
    regimes = report["toml"].replace("{ stay_ms", f"{{ write_us_per_kb = {toml_value(per_kb.value)}, stay_ms")
    how = f"{len(times)} writes with {method}, without their CPU"
    shown = report["quantiles"] if method == USUAL else [row for row in report["quantiles"] if row["p"] == 0.5]
    rows = [
        Parameter(f"devices.{name} p{row['p'] * 100:g}", row["us"], MEASURED, how, row["low"], row["high"], "us")
        for row in shown
    ]
    return section(name, regimes, how), [*rows, per_kb], report


def _per_kb(name: str, found: tuple[float, float, float] | None) -> Parameter:
    key = f"devices.{name} write_us_per_kb"
    if found is None:
        return Parameter(key, 0.0, DEFAULT, "too few writes")
    return Parameter(key, found[0], MEASURED, "slope of write time over size", found[1], found[2], "us/KB")


def _sentences(report: JsonObject) -> list[str]:
    from dbdyno.model.calibrate import sentences

    return [f"Device: {text}" for text in sentences(report)] if report else []


__all__ = ["NAME", "host_device"]
