"""A host with a known device and known processors, as its probes would measure it."""

from __future__ import annotations

import random
from pathlib import Path

from dbdyno.bench.host.speed import HostSpeed
from dbdyno.bench.host.syncs import Syncs
from dbdyno.study.prediction.reference import REFERENCE

DEVICE_US = {"fdatasync": 400.0, "open_datasync": 300.0, "fsync": 900.0, "open_sync": 800.0}
PER_KB_US, CPU_US, CPU_PER_KB_US, DELAY_US = 4.0, 50.0, 0.5, 30.0


def flushes(us: float, dice: random.Random, count: int = 400) -> Syncs:
    """Return writes of a device that takes `us` [us] plus time per KB; a tenth of them waited for a busy core."""
    made = Syncs()
    for number in range(count):
        kb = 8.0 * dice.randint(1, 9)
        queue = 5.0 if dice.random() > 0.1 else 4_000.0
        made.started_ns.append(10**15 + number * 10**7)
        made.kb.append(kb)
        cpu_us = CPU_US + CPU_PER_KB_US * kb
        made.cpu_us.append(cpu_us)
        made.queue_us.append(queue)
        made.elapsed_us.append(us * dice.lognormvariate(0, 0.02) + PER_KB_US * kb + cpu_us + queue - 5.0)
    return made


def host(work: float = 1.0, message: float = 1.0, count: int = 400) -> HostSpeed:
    """A host on which work and messages take that many times as long as on the reference."""
    dice = random.Random(11)
    return HostSpeed(
        Path("/disk"),
        4,
        "made",
        "Linux made",
        work_us=[REFERENCE.work_us * work] * 20,
        message_us=[REFERENCE.message_us * message] * 20,
        wake_us=[8.0] * 20,
        delays_us=[dice.expovariate(1 / DELAY_US) for _ in range(800)],
        others=[0.1] * 20,
        syncs={method: flushes(us, dice, count) for method, us in DEVICE_US.items()},
    )
