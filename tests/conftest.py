"""One thread for each test process, which run side by side; no deadlines; which tests are slow.

`slow.txt` lists tests by measured CPU time; `make check` leaves them out (-m "not slow"), and
`make durations` measures them again. A line is the seconds and the node id, without parameters.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
HERE = Path(__file__).parent
SLOW = {
    line.split(maxsplit=1)[1]
    for line in (HERE / "slow.txt").read_text(encoding="utf-8").splitlines()
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, so that no process waits for a long one at the end."""
    for item in items:
        if item.nodeid.partition("[")[0] in SLOW:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write the CPU seconds of a test, children included, to the file that CPU_TIMES names."""
    before = os.times()
    found = yield
    spent = sum(after - then for after, then in zip(os.times()[:4], before[:4], strict=True))
    if "CPU_TIMES" in os.environ:
        with Path(os.environ["CPU_TIMES"]).open("a", encoding="utf-8") as file:
            file.write(f"{spent:.2f} {item.nodeid}\n")
    return found
