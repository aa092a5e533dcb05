"""Gillespie's direct method (1977), many trajectories at once in the lanes of vector registers.

One pass of the inner loop advances every lane by one event: two xoshiro256++ draws, all rates, the
waiting time and a branchless choice of reaction, written out straight-line for the network so that
LLVM turns the loop into vector code. Lanes do not wait for each other: each has its own clock,
records its state when the clock passes a grid time, and takes up the next trajectory when it has
finished one. The random stream and the arithmetic belong to the trajectory, so neither the lane,
the chunk nor the thread changes a result.
"""

from __future__ import annotations

import numpy as np

from simulators import rates
from simulators.kernels.codegen.code import Code, Job
from simulators.kernels.codegen.codes import BAD_RATE, TOO_MANY_EVENTS
from simulators.kernels.codegen.program import Program
from simulators.kernels.codegen.proofs import proved
from simulators.kernels.registry import Kernel, register
from simulators.network import ReactionNetwork

LANES = 32
MAX_REACTIONS = 24  # beyond, vector code takes too long to compile
PASSES_PER_CHECK = 4096  # passes between two looks at the event budget and the stop flag


def source(program: Program, varying: frozenset[int], *, lanes: int, checked: bool) -> str:
    """Source of `run`, see `codegen.code`. `varying`: constants that are kept per lane."""
    count, reactions = len(program.variables), len(program.rates)
    new, old, rows = 2, 2 + count, 2 + 2 * count
    place = {constant: rows + at for at, constant in enumerate(sorted(varying))}
    rename = {name: f"x{v}" for v, name in enumerate(program.variables)}
    rename |= {f"#{c}": f"c{c}" for c in range(len(program.constants))}
    fixed = [c for c in range(len(program.constants)) if c not in varying]

    top, last_top = rows + len(place), rows + len(place) + len(program.latches)
    flag = last_top + len(program.latches)
    time = flag + 1 if checked else 0  # errors report the time before the last event

    def latched(at: int) -> list[str]:
        """Values of the latches in the state kept in rows from `at` on."""
        own = {name: f"f[{at + v}, l]" for v, name in enumerate(program.variables)}
        own |= {f"#{c}": f"f[{row}, l]" for c, row in place.items()}
        return [rates.source(latch, rename | own) for latch in program.latches]

    load = [f"c{c} = f[{row}, l]" for c, row in place.items()]
    load += [f"x{v} = f[{new + v}, l]" for v in range(count)]
    keep = [f"f[{old + v}, l] = x{v}" for v in range(count)]
    keep += [f"f[{time}, l] = f[0, l]"] if checked else []
    rate = [f"a{j} = {rates.source(law, rename)}" for j, law in enumerate(program.rates)]
    sums = ["b0 = a0" if reactions else "b0 = 0.0"]
    sums += [f"b{j} = b{j - 1} + a{j}" for j in range(1, reactions)]
    total = f"b{max(reactions - 1, 0)}"
    moves = [f"f[{new + v}, l] = {_move(program, v)}" for v in range(count)]
    checks = _checks(program, new, total, flag) if checked else []
    moves += [f"y{m} = {value}" for m, value in enumerate(latched(new))]
    for m in range(len(program.latches)):
        keep.append(f"f[{last_top + m}, l] = f[{top + m}, l]")
        moves.append(f"f[{top + m}, l] = y{m} if y{m} > f[{top + m}, l] else f[{top + m}, l]")

    fill = [
        f"f[{row}, l] = constants[q if constants.shape[0] > 1 else 0, {c}]"
        for c, row in place.items()
    ]
    fill += [f"f[{new + v}, l] = initial[q, {v}]" for v in range(count)]
    fill += [f"f[{old + v}, l] = initial[q, {v}]" for v in range(count)]
    record = [f"out[i, {v}, k] = f[{old + v}, l]" for v in range(count)]
    reset = []
    for m, (value, after) in enumerate(zip(latched(old), latched(new), strict=True)):
        fill += [f"f[{top + m}, l] = {after}", f"f[{last_top + m}, l] = f[{top + m}, l]"]
        record.append(f"out[i, {count + m}, k] = f[{last_top + m}, l]")
        record.append(f"f[{last_top + m}, l] = {value}")
        reset.append(f"f[{top + m}, l] = max(f[{last_top + m}, l], {after})")
    tell = [f"where[{v + 1}] = f[{old + v}, l]" for v in range(count)]

    trouble = ["report[1] = first + who[l]", f"where[0] = f[{time}, l]", *tell, "return"]
    tell_bad = []
    if checked:
        tell_bad = [f"for l in range({lanes}):", f"    if f[{flag}, l] != 0.0 and who[l] >= 0:"]
        tell_bad += [f"        {line}" for line in [f"report[0] = {BAD_RATE}", *trouble]]

    def block(lines: list[str], indent: int) -> str:
        return ("\n" + " " * indent).join(lines) if lines else "pass"

    return f"""
@njit(nogil=True, error_model="numpy", cache=True)
def run(seed, first, initial, constants, times, out, report, where, limit, stop):
    n = out.shape[0]
    steps = times.size
    {block([f"c{c} = constants[0, {c}]" for c in fixed], 4)}
    f = np.zeros(({flag + 2}, {lanes}))
    stream = np.zeros((4, {lanes}), np.uint64)
    who = np.zeros({lanes}, np.int64)
    step = np.zeros({lanes}, np.int64)
    began = np.zeros({lanes}, np.int64)
    passed = U({2**lanes - 1})  # lanes, as bits, whose clock has passed a grid time
    q = 0
    alive = {lanes}
    passes = 0
    for l in range({lanes}):
        f[0, l] = np.inf
        f[1, l] = -np.inf
        step[l] = steps
        who[l] = -1
    while True:
        while passed != U(0):
            l = np.int64(lowest(passed))
            passed &= passed - U(1)
            i = who[l]
            k = step[l]
            while k < steps and f[0, l] > times[k]:
                {block(record, 16)}
                k += 1
            {block(["step[l] = k", *reset], 12)}
            if k < steps:
                f[1, l] = times[k]
                continue
            if i >= 0 and passes - began[l] - 1 > limit:
                report[0] = {TOO_MANY_EVENTS}
                {block(trouble, 16)}
            if q < n:
                seed_stream(seed, first + q, stream, l)
                f[0, l] = times[0]
                f[1, l] = times[0]
                {block(fill, 16)}
                who[l] = q
                step[l] = 0
                began[l] = passes
                q += 1
            else:
                who[l] = -1
                f[0, l] = np.inf
                f[1, l] = np.inf
                alive -= 1
        if alive == 0:
            return
        while passed == U(0):
            passes += 1
            for l in range({lanes}):
                u = next_bits(stream, l)
                v = next_bits(stream, l)
                {block(load, 16)}
                {block(keep, 16)}
                {block(rate, 16)}
                {block(sums, 16)}
                t = f[0, l] + exponential(u) / {total}
                p = unit(v) * {total}
                f[0, l] = t
                {block(moves, 16)}
                {block(checks, 16)}
                passed |= (U(1) << U(l)) if t > f[1, l] else U(0)
            if passes % {PASSES_PER_CHECK} == 0:
                for l in range({lanes}):
                    if who[l] >= 0 and passes - began[l] > limit:
                        report[0] = {TOO_MANY_EVENTS}
                        {block(trouble, 24)}
                if stop[0]:
                    return
        {block(tell_bad, 8)}
"""


def _move(program: Program, variable: int) -> str:
    """New value of a variable: old value, plus the change of the reaction that `p` falls on.

    Reaction j is chosen when b_{j-1} <= p < b_j, so its change is the first one plus the differences
    up to j: each a select, no branch.
    """
    by = [change.get(variable, 0) for change in program.changes]
    terms = [f"x{variable}"]
    if by and by[0]:
        terms.append(f"({float(by[0])!r})")
    for j in range(1, len(by)):
        if by[j] != by[j - 1]:
            terms.append(f"({float(by[j] - by[j - 1])!r} if p >= b{j - 1} else 0.0)")
    return " + ".join(terms)


def _checks(program: Program, new: int, total: str, flag: int) -> list[str]:
    """Per lane: every rate >= 0 (NaN fails), the total finite, every new count >= 0."""
    tests = [f"(a{j} >= 0.0)" for j in range(len(program.rates))]
    tests.append(f"({total} < np.inf)")
    shrinking = {v for change in program.changes for v, by in change.items() if by < 0}
    # with a total of zero nothing fires, whatever the branchless choice wrote
    tests += [f"((f[{new + v}, l] >= 0.0) | ({total} <= 0.0))" for v in sorted(shrinking)]
    return [
        f"good = {' & '.join(tests)}",
        f"f[{flag}, l] = 0.0 if good else 1.0",
        "passed |= U(0) if good | (f[1, l] == np.inf) else (U(1) << U(l))",  # idle lanes may be bad
    ]


def _generate(job: Job) -> Code:
    width = LANES if job.program.vectorises else 1  # one lane is plain scalar code
    return Code(source(job.program, job.varying, lanes=width, checked=job.checked))


def _refusal(network: ReactionNetwork, program: Program) -> str | None:
    if not program.autonomous:
        return "the lanes take no events and no time in rates"
    if len(program.rates) > MAX_REACTIONS:
        return f"the lanes take up to {MAX_REACTIONS} reactions"
    return None


def _needs_checks(program: Program, constants: np.ndarray) -> bool:
    return not proved(program, constants)


register(
    Kernel(
        name="lanes",
        method="direct",
        exact=True,
        discrete=True,
        summary="exact events",
        generate=_generate,
        refusal=_refusal,
        needs_checks=_needs_checks,
        preference=1,
        latches=True,
    )
)
