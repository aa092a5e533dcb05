"""Write slow.txt: the tests that took more CPU time than LIMIT, from a file of measured times.

CPU_TIMES=times.txt python -m pytest && python -m tests.slow times.txt

A line of the file is the CPU seconds of a test, children included, and its node id. The cases of a
parametrised test are one line, with the longest of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT = 0.5  # seconds


def slowest(lines: list[str]) -> dict[str, float]:
    """Test -> the CPU seconds of its longest case, longest first, those above LIMIT."""
    found: dict[str, float] = {}
    for line in lines:
        seconds, test = line.split(maxsplit=1)
        name = test.partition("[")[0].strip()
        found[name] = max(found.get(name, 0.0), float(seconds))
    slow = {name: seconds for name, seconds in found.items() if seconds > LIMIT}
    return dict(sorted(slow.items(), key=lambda pair: (-pair[1], pair[0])))


if __name__ == "__main__":
    measured = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    text = "".join(f"{seconds:.1f} {name}\n" for name, seconds in slowest(measured).items())
    Path(__file__).with_suffix(".txt").write_text(text, encoding="utf-8")
