"""What pip-audit found, in lines: python tools/audit_report.py REPORT.json

Exit 0 every package was looked up and is well, 1 a package has an advisory, 3 none has and some were not looked up.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(path: Path) -> int:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["dependencies"]
    except (OSError, ValueError, KeyError):
        return 3
    bad = [(one["name"], one["version"], each["id"]) for one in found for each in one.get("vulns", ())]
    skipped = [one["name"] for one in found if "skip_reason" in one]
    for name, version, advisory in bad:
        print(f"{name} {version}: {advisory}")
    if skipped and not bad:
        print(f"the advisory service answered for {len(found) - len(skipped)} of {len(found)} packages")
    return 1 if bad else 3 if skipped or not found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
