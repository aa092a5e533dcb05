"""Events inside kernels: what has triggered, and carrying it out.

Written as plain functions; `scalar.module` puts their source beside the generated `triggers`,
`assign` and `touched` of one network, where they are compiled. `rules` has a row (priority,
persistent, at trigger).
"""

# mypy: ignore-errors
# ruff: noqa: F821, RUF059
from __future__ import annotations

import numpy as np

from simulators.kernels.codegen.codes import BAD_ASSIGNMENT, EVENT_LOOP, MAX_SIMULTANEOUS_EVENTS


def collect(t, w, events):
    """Mark events whose trigger has just turned true; drop those that lost theirs."""
    now, was, pending, new, rules = events
    triggers(t, w, now)
    for e in range(now.size):
        if now[e] and not was[e]:
            pending[e] = True
            assign(e, t, w, new)
        elif pending[e] and not now[e] and rules[e, 1] == 0.0:
            pending[e] = False
        was[e] = now[e]


def settle(t, w, counts, events):
    """Carry out what has triggered, highest priority first, until nothing more triggers.

    Returns how many events were carried out, or minus a code of `codes`. The first `counts` entries
    of w are species and stay whole.
    """
    now, was, pending, new, rules = events
    done = 0
    while done <= MAX_SIMULTANEOUS_EVENTS:
        collect(t, w, events)
        best = -1
        for e in range(now.size):
            if pending[e] and (best < 0 or rules[e, 0] > rules[best, 0]):
                best = e
        if best < 0:
            return done
        pending[best] = False
        if rules[best, 2] == 0.0:
            assign(best, t, w, new)
        for v in range(new.shape[1]):
            if touched(best, v):
                value = new[best, v]
                if v < counts:
                    whole = np.round(value)
                    if not abs(value - whole) <= 1e-9 * max(1.0, abs(whole)) or whole < 0.0:
                        return -BAD_ASSIGNMENT
                    value = whole
                w[v] = value
        done += 1
    return -EVENT_LOOP
