"""The paper's experiments on digits: pairs that sum to ten, filled halves, symmetry.

The judge is a classifier of its own: another network, trained apart from the one in the formulas.
"""

from __future__ import annotations

from collections import Counter

from paper_bench import NOTHING, Bench, Found, share
from paper_images import Made, asymmetry, judge, judged, made, pixels, sheet, trade_off
from report import Target

from surrogate.model import Surrogate, pretrained

MAX_SAMPLES = 256  # samples of a scenario
MAX_SAMPLES_SLOW = 64  # of the slow methods
SUM = "exists i in [1, 9]: class(image[1], i) and class(image[2], 10 - i)"
DEVIATION = (
    0.308  # of all pixels of MNIST: the paper's unit. No digit of it differs by half of that
)
SOME = 0.1  # one digit in ten thousand differs by it
HALVES = {"upper": "lower", "lower": "upper"}
MIRRORED = "forall p: image(p) = mirror(image)(p)"
WIDTHS = (0.0, 0.1, 0.3)  # how far pixels may lie apart


def digits(bench: Bench) -> Surrogate:
    return Surrogate.load(bench.options.model) if bench.options.model else pretrained("digits")


def counts(bench: Bench) -> tuple[int, int]:
    """Samples of ours, and of the slow methods."""
    return min(bench.samples, MAX_SAMPLES), min(bench.slow, MAX_SAMPLES_SLOW)


def cost(row: Made) -> list[str]:
    own = row.cost
    return [f"{own.evaluations:,.0f}", f"{own.cpu:,.0f}", f"{own.wall:,.0f}", row.log_p]


COST = ["evaluations", "CPU s", "wall s", "log P"]


def sum_to_ten(bench: Bench) -> Found:
    """Pairs of digits that sum to ten."""
    model, (count, few) = digits(bench), counts(bench)
    ways = {
        "ours: moments": (count, {"method": "moments"}),
        # k = 30 of a class is what its log-probability counts for
        "paper: forward": (few, {"method": "universal", "strength": 30.0}),
        "paper": (few, {"method": "guidance", "strength": 30.0, "langevin": 10}),
    }
    rows, found = [], {}
    for name, (number, settings) in ways.items():
        run = made(bench, name, model, number, SUM, settings)
        seen = judged(judge(bench), pixels(run.data))
        pairs = seen.classes.reshape(-1, 2)
        ten = pairs.sum(1) == 10
        kinds = Counter(map(tuple, pairs[ten].tolist()))
        most = max(kinds.values(), default=0) / max(1, len(pairs))
        found[name] = (float(ten.mean()), len(kinds), most, seen.invalid, run)
        rows.append(
            [
                name,
                f"{number}",
                share(run.met),
                share(found[name][0]),
                f"{len(kinds)}",
                share(most),
                share(seen.invalid),
                *cost(run),
            ]
        )
    rows.append(
        ["published", NOTHING, NOTHING, "96 %", "4 (2-8, 4-6)", NOTHING, "~12 %"] + [NOTHING] * 4
    )
    rows.append(
        ["published, forward", NOTHING, NOTHING, "100 %", "9", NOTHING, "~8 %"] + [NOTHING] * 4
    )
    head = ["method", "pairs", "met (guide)", "ten (judge)", "ordered pairs", "most frequent"]
    ten, kinds_of, most, invalid, run = found["ours: moments"]
    targets = [
        Target("sum to ten, by the judge", 100 * ten, 98, unit=" %"),
        Target("ordered pairs present", kinds_of, 9, unit=""),
        Target("share of the most frequent", 100 * most, 40, at_most=True, unit=" %"),
        Target("no digits", 100 * invalid, 8, at_most=True, unit=" %"),
        Target("64 pairs in", run.cost.wall * 64 / count, 60, at_most=True, unit=" s"),
    ]
    note = sheet(bench, "mnist-sum", run.data.isel(sample=slice(0, 64)))
    return Found(targets, {"digits that sum to ten": ([*head, "no digit", *COST], rows)}, [note])


def filling(bench: Bench) -> Found:
    """One half brighter than the other: as some digits have it, and by the paper's one deviation,
    which none has."""
    model, (count, few) = digits(bench), counts(bench)
    rows, targets, notes = [], [], []
    for gap in (SOME, DEVIATION):
        for half, other in HALVES.items():
            where = f"mean({half}) >= mean({other}) + {gap}"
            ways = {"ours: moments": (count, {"method": "moments"})}
            if gap == DEVIATION:
                ways["paper: forward"] = (few, {"method": "universal", "hardness": 80.0})
            if gap == DEVIATION and half == "upper":
                ways["paper"] = (few, {"method": "guidance", "hardness": 80.0, "langevin": 20})
            for name, (number, settings) in ways.items():
                run = made(bench, f"{name}, {half}, {gap}", model, number, where, settings)
                seen = judged(judge(bench), pixels(run.data))
                shares = [share(run.met), share(seen.invalid)]
                rows.append([half, f"{gap}", name, f"{number}", *shares, *cost(run)])
                if name.startswith("ours"):
                    label, invalid = f"{half} half by {gap}", 100 * seen.invalid
                    targets += [
                        Target(f"{label}: met", 100 * run.met, 99, unit=" %"),
                        Target(f"{label}: no digits", invalid, 10, at_most=True, unit=" %"),
                    ]
                    shown = run.data.isel(sample=slice(0, 64))
                    notes.append(sheet(bench, f"mnist-filling-{half}-{gap}", shown))
    rows.append(["either", "1 deviation", "published", NOTHING, "pictures", *[NOTHING] * 5])
    head = ["brighter half", "by", "method", "samples", "met", "no digit", *COST]
    return Found(targets, {"one half brighter than the other": (head, rows)}, notes)


def symmetry(bench: Bench) -> Found:
    """Digits that are their own mirror images, more or less."""
    model, (count, few) = digits(bench), counts(bench)
    rows, points = [], {}
    runs = [
        (
            f"ours: moments, +- {width:g}",
            count,
            f"{MIRRORED} +- {width:g}" if width else MIRRORED,
            {"method": "moments"},
        )
        for width in WIDTHS
    ]
    runs += [
        ("paper: forward", few, MIRRORED, {"method": "universal", "hardness": 5.0}),
        ("paper", few, MIRRORED, {"method": "guidance", "hardness": 5.0, "langevin": 0}),
    ]
    for name, number, where, settings in runs:
        run = made(bench, name, model, number, where, settings)
        seen, off = judged(judge(bench), pixels(run.data)), asymmetry(pixels(run.data))
        kinds = Counter(seen.classes[seen.confidence >= 0.6].tolist())
        points[name] = (off, seen.invalid, run)
        rows.append(
            [name, f"{number}", f"{off:.3f}", share(seen.invalid), _kinds(kinds), *cost(run)]
        )
    rows.append(["published", NOTHING, NOTHING, "~30 %", NOTHING] + [NOTHING] * 4)
    rows.append(["published, forward", NOTHING, NOTHING, "~16 %", "1: 88 %"] + [NOTHING] * 4)
    head = ["method", "samples", "asymmetry", "no digit", "digits (judge)", *COST]
    off, invalid, run = points["ours: moments, +- 0"]
    targets = [
        Target("asymmetry", off, 0.05, at_most=True, unit=""),
        Target("no digits", 100 * invalid, 15, at_most=True, unit=" %"),
    ]
    notes = [sheet(bench, "mnist-symmetry", run.data.isel(sample=slice(0, 64)))]
    notes.append(
        trade_off("mnist-symmetry", {k: v[:2] for k, v in points.items()}, "share of no digits")
    )
    return Found(targets, {"digits that are their own mirror images": (head, rows)}, notes)


def _kinds(kinds: Counter[int]) -> str:
    total = sum(kinds.values())
    return ", ".join(f"{k}: {n / total:.0%}" for k, n in kinds.most_common(5))


EXPERIMENTS = {"mnist-sum": sum_to_ten, "mnist-filling": filling, "mnist-symmetry": symmetry}
