"""Devices keep their response times: the same requests take the same nanoseconds as when each device was added."""

from __future__ import annotations

import hashlib
import random
import struct

import pytest

from dbdyno import _core

KEPT = {
    "disk-7200": "4ae9574dbd69b743",
    "disk-7200-cache": "ea54fc586bf5977c",
    "disk-15000": "2db4dc37ed54a369",
    "disk-15000-cache": "52069b060135fbde",
    "mirror-15000": "61a2a398b6785eb5",
    "mirror-slow": "c7b736c8759a220b",
    "stripe-15000": "b3bbfcff12fa6208",
    "raid5-15000": "d45790f9ced731aa",
    "flash-log": "52069b060135fbde",
    "flash-2011": "0b68262f18a9418c",
    "flash-2013": "b9fa76de1140692a",
    "sata-2024": "636dda6ad1017df1",
    "nvme-2024": "a8381940e41ce9a4",
    "nvme-client-2024": "a8277f3848fb46a4",
    "optane-2018": "44d4097c9bcaee72",
    "gp2": "c8a52dbd9febc380",
    "gp3": "1d7ab35f238daffe",
    "io2": "dd57e215e21438f3",
    "pd-ssd": "e33203a3fcf66d55",
    "premium-ssd": "7c68382ce5e152e9",
}
"""Expected hashes of the times of 500 mixed requests, by device."""


def times(name: str) -> str:
    """Return a hash of the times that the device takes for reads and writes of 512 bytes to 1 MB."""
    dice, at_ns = random.Random(8), 0
    arrived, reads, offsets, sizes = [], [], [], []
    for _ in range(500):
        at_ns += int(dice.expovariate(1 / 300_000))
        arrived.append(at_ns)
        reads.append(dice.random() < 0.5)
        offsets.append(dice.randrange(1 << 19) * 512)
        sizes.append(dice.choice((512, 4096, 8192, 65536, 1 << 20)))
    packed = [struct.pack("<500Q", *column) for column in (arrived, offsets, sizes)]
    toml = dict(_core.device_texts())[name]
    found = _core.device_replay(toml, [], (packed[0], bytes(reads), packed[1], packed[2]), 8)
    return hashlib.sha256(found).hexdigest()[:16]


@pytest.mark.parametrize("name", KEPT)
def test_a_device_keeps_its_times_to_the_nanosecond(name: str) -> None:
    assert times(name) == KEPT[name]


def test_every_device_is_kept() -> None:
    assert list(KEPT) == [name for name, _ in _core.device_texts()]
