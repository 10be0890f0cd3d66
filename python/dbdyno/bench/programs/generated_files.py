"""Generated files that a plan uses in its commands: `files = {corpus = "text 16MiB", source = "c-project 24"}`.

The files are identical wherever and whenever they are generated, so that runs on two machines work on the same bytes:

    text SIZE      English-like words drawn from a fixed vocabulary; zstd -3 compresses it to about a fifth
    c-project N    N C files of some 100 lines with a Makefile: `make -C DIR OUT=DIR2` compiles into DIR2, a path in it
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from dbdyno.base.errors import PlanError

SEED = 20140611
_SIZE = re.compile(r"(\d{1,6}) ?(KiB|MiB|GiB)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_TEXT_MOST = 64 << 30
_SOURCES_MOST = 10_000
_FUNCTIONS = 10
_LETTERS = "eeeettaaooiinnsshhrrddlucmfwypvbgk"

_MAKEFILE = """\
OUT ?= out
OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(wildcard *.c))
$(OUT)/program: $(OBJECTS)
\t$(CC) -o $@ $^
$(OUT)/%.o: %.c common.h | $(OUT)
\t$(CC) -O2 -c -o $@ $<
$(OUT):
\tmkdir -p $@
clean:
\trm -rf $(OUT)
.PHONY: clean
"""
_HEADER = "#include <stdint.h>\n#include <stdio.h>\nstruct item {{ uint64_t key, value[4]; }};\n{declared}\n"
_FUNCTION = """\
static uint64_t {name}(struct item *items, int n)
{{
    uint64_t sum = {a}u;
    for (int i = 1; i < n; i++) {{
        items[i].value[i & 3] += items[i - 1].key * {b}u + (sum >> {c});
        sum ^= items[i].value[(i + {c}) & 3] << {d};
    }}
    return sum % {a}u;
}}
"""


def makers(files: dict[str, str], where: str = "files") -> dict[str, Callable[[Path], None]]:
    """Return for each file the function that makes it at a path.

    Raises:
        PlanError: A file's description is unknown or outside its limits.
    """
    return {name: _maker(what, f"{where}, {name}") for name, what in files.items()}


def _maker(what: str, where: str) -> Callable[[Path], None]:
    kind, _, amount = what.strip().partition(" ")
    size = _SIZE.fullmatch(amount.strip())
    if kind == "text" and size:
        count = int(size[1]) * _UNITS[size[2]]
        if not 1 <= count <= _TEXT_MOST:
            raise PlanError(
                f"{what!r} is outside the range from 1KiB to 64GiB",
                where=where,
                next_step="choose a size in this range",
            )
        return lambda path: _write_text(path, count)
    if kind == "c-project" and amount.isdecimal() and 1 <= int(amount) <= _SOURCES_MOST:
        return lambda path: _write_project(path, int(amount))
    raise PlanError(
        f"{what!r} is not a file that dbdyno can generate",
        where=where,
        next_step=f'write "text 16MiB", or "c-project 24" (1 to {_SOURCES_MOST:,} files)',
    )


def _write_text(path: Path, size: int) -> None:
    """Write exactly `size` bytes of words."""
    left = size
    with path.open("w", encoding="ascii") as file:
        for paragraph in _paragraphs():
            left -= file.write(paragraph[:left])
            if left <= 0:
                return


def _paragraphs() -> Iterator[str]:
    dice = random.Random(SEED)
    vocabulary = ["".join(dice.choices(_LETTERS, k=dice.randint(2, 9))) for _ in range(4000)]
    phrases = [" ".join(dice.choices(vocabulary, k=6)) for _ in range(20_000)]
    while True:
        yield " ".join(dice.choices(phrases, k=2000)) + "\n"


def _write_project(folder: Path, sources: int) -> None:
    folder.mkdir()
    dice = random.Random(SEED)
    names = [f"part{number:04d}" for number in range(sources)]
    declared = "\n".join(f"uint64_t {name}(struct item *items, int n);" for name in names)
    (folder / "Makefile").write_text(_MAKEFILE)
    (folder / "common.h").write_text(_HEADER.format(declared=declared))
    for name in names:
        (folder / f"{name}.c").write_text(_source(name, dice))
    calls = "".join(f"    sum += {name}(items, 64);\n" for name in names)
    (folder / "main.c").write_text(
        '#include "common.h"\nint main(void)\n{\n    static struct item items[64];\n    uint64_t sum = 0;\n'
        f'{calls}    printf("%llu\\n", (unsigned long long)sum);\n    return 0;\n}}\n'
    )


def _source(name: str, dice: random.Random) -> str:
    own = [f"{name}_{number}" for number in range(_FUNCTIONS)]
    body = "".join(
        _FUNCTION.format(
            name=each,
            a=dice.randint(3, 1 << 30),
            b=dice.randint(3, 1 << 30),
            c=dice.randint(1, 9),
            d=dice.randint(1, 9),
        )
        for each in own
    )
    calls = "".join(f"    sum += {each}(items, n);\n" for each in own)
    head = f"\nuint64_t {name}(struct item *items, int n)\n{{\n    uint64_t sum = 0;\n{calls}    return sum;\n}}\n"
    return f'#include "common.h"\n{body}{head}'
