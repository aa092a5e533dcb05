"""How far samples may be relied on: the worst of what speaks for and against them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from constraints.explanation import percent
from surrogate.evaluation.evaluate import Evaluation, Histograms, Measured
from surrogate.evaluation.result import NEAREST
from surrogate.reports.facts import Facts
from surrogate.reports.wording import give_or_take, moment, odds

NEAR, FAR = 1.5, 3.0  # times the noise: up to here close, from here far off
SMALL, LARGE, HUGE = 0.01, 0.1, 0.3  # D beyond its noise that does not matter, does, and ruins
LIKELY = 3.0  # deviations of the noise that chance may well make
CERTAIN = 4.0  # deviations of the noise from which a difference is none of chance
TOLD = 0.55  # accuracy from which a classifier matters
ANCESTORS = 100
WORTH = 0.1  # share of the samples that the effective ones should be
COPIES = 0.05
UNSURE = 0.3  # error of log P
MATTERS = 0.02  # of a score
DIFFER = {
    "correlation": "The correlations differ",
    "correlation_ratio": "How numbers go with words differs",
    "cramers_v": "How words go together differs",
    "contingency": "What goes together in pairs of columns differs",
    "autocorrelation": "The autocorrelations differ",
    "energy": "The samples as a whole differ",
}
LEVELS = ("good", "care", "poor")
SAYS = {
    "good": "No sign of trouble.",
    "care": "Use with care.",
    "poor": "Do not rely on these samples.",
}

Reason = tuple[str, str]  # level and sentence


@dataclass(frozen=True)
class Verdict:
    """`level`: good, care or poor; what speaks against the samples, the gravest first, and what
    for them."""

    level: str
    says: str
    against: tuple[str, ...]
    good: tuple[str, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.against + self.good


def verdict(facts: Facts) -> Verdict | None:
    """None where nothing was sampled and nothing compared."""
    found = facts.evaluation
    reasons = _run(facts) if facts.sampled else []
    if found is not None:
        reasons += _compared(facts, found)
    if not reasons and not facts.sampled:
        return None
    level = max((level for level, _ in reasons), key=LEVELS.index, default="good")
    says = SAYS[level]
    if level == "good" and found is not None:
        ratio = found.overall.median.ratio
        says = f"Close to the reference: {ratio:.2f} times the distance that chance alone makes."
    elif level == "good":
        says += " The samples were not compared with a reference."
    ordered = sorted(reasons, key=lambda each: -LEVELS.index(each[0]))
    good = tuple(sentence for level, sentence in ordered if level == "good")
    against = tuple(sentence for level, sentence in ordered if level != "good")
    return Verdict(level, says, against, good)


def _run(facts: Facts) -> list[Reason]:
    """What the sampler knows."""
    found: list[Reason] = [("care", f"The sampler warns: {each}.") for each in facts.warnings]
    met = facts.satisfied
    if met is not None and met < 1:
        level = "poor" if met < 0.5 else "care"
        found.append((level, f"{percent(1 - met)} of the samples miss a requirement."))
    elif met is not None:
        found.append(("good", "Every sample meets every requirement."))
    worth, lines = facts.worth, facts.number("ancestors")
    if worth is not None and worth < WORTH * facts.samples:
        found.append(
            (
                "care",
                f"The samples are worth only {worth:,.0f} independent ones: few carry the weight.",
            )
        )
    if lines is not None and lines < min(ANCESTORS, facts.samples):
        found.append(("care", f"All samples descend from only {lines:,.0f} starting points."))
    copies = facts.number("copies")
    if copies is not None and copies > COPIES * facts.samples:
        found.append(("care", f"{copies:,.0f} of the samples are copies of others."))
    error = facts.probability[1] if facts.probability is not None else None
    if error is not None and error > UNSURE:
        found.append(("care", f"The probability is known only {give_or_take(error)}."))
    return found


def _compared(facts: Facts, found: Evaluation) -> list[Reason]:
    """What a reference shows."""
    ratio = found.overall.median.ratio
    level = _level(found.overall.median)
    noise = (
        f"{ratio:.2f} times the noise between two samples of the truth"
        if math.isfinite(ratio)
        else "where two samples of the truth would not differ at all"
    )
    words = {
        "good": "The distributions agree with the reference",
        "care": "The distributions differ a little from the reference",
        "poor": "The distributions differ from the reference",
    }
    over = "steps" if facts.table is None else "columns"
    over = "all that is measured of an image" if facts.pictured else over
    listed: list[Reason] = [(level, f"{words[level]}: {noise} (median over {over}).")]
    far = [each for each in found.variables if _level(each.max) == "poor"]
    if far and level != "poor":
        listed.append(("care", _furthest(facts, max(far, key=lambda each: each.max.ratio))))
    if found.consistent is not None and found.consistent < 1:
        listed.append(
            ("care", f"{percent(1 - found.consistent)} of the samples break a law of the network.")
        )
    for name, what in DIFFER.items():
        each: Measured | None = getattr(found, name)
        if each is not None and _stands_out(each):
            listed.append(("care", f"{what} from the reference: {each.ratio:.1f} times the noise."))
    accuracy, error = found.classifier
    if accuracy >= max(TOLD, 0.5 + CERTAIN * error):
        listed.append(
            (
                "care",
                f"A {'simple ' * (facts.table is None)}classifier tells samples from the reference "
                f"in {percent(accuracy)} of the cases; guessing would be right in 50 %.",
            )
        )
    listed += _memorised(found) + _useful(found)
    mine, true = facts.probability, facts.true_probability
    if mine is not None and true is not None and _same(facts):
        gap = abs(mine[0] - true[0])
        noise_ = math.hypot(mine[1] or 0.0, true[1] or 0.0)
        agree = gap <= max(UNSURE, 3 * noise_)
        listed.append(
            (
                "good" if agree else "care",
                f"The reference puts the probability at {odds(true[0])}, the samples at "
                f"{odds(mine[0])}.",
            )
        )
    return listed


def _memorised(found: Evaluation) -> list[Reason]:
    """Whether rows that were learned from come back."""
    rows = found.privacy
    if rows is None:
        return []
    if not rows.memorised:
        return [("good", "The rows come no nearer to those that were learned from than real ones.")]
    copies, real = percent(rows.samples.copies), percent(rows.real.copies)
    level = "poor" if rows.samples.copies > rows.real.copies + COPIES else "care"
    return [
        (
            level,
            f"Rows that were learned from seem to be repeated: {copies} are exact copies (of real "
            f"rows {real}), and {percent(rows.near)} are as near as {percent(NEAREST)} of real "
            "rows are.",
        )
    ]


def _useful(found: Evaluation) -> list[Reason]:
    """Whether what learns from the rows does as well as what learns from real ones."""
    if found.usefulness is None:
        return []
    made: list[Reason] = []
    for each in found.usefulness.scores:
        bad = each.worse and each.difference < -MATTERS
        learned = f"Learned from the rows, {found.usefulness.target} is predicted"
        told = f"{each.name} {each.samples:.3f}, from real rows {each.real:.3f}"
        word = "worse" if bad else "about as well"
        made.append(("care" if bad else "good", f"{learned} {word}: {told}."))
    return made


def _level(distance: Measured) -> str:
    """Many samples make any difference many times the noise: it has to matter as well."""
    beyond = distance.value - distance.floor
    chance = beyond <= LIKELY * distance.floor_sd
    if distance.ratio <= NEAR or beyond <= SMALL or chance:
        return "good"
    return "poor" if beyond >= (LARGE if distance.ratio >= FAR else HUGE) else "care"


def _stands_out(each: Measured) -> bool:
    return each.ratio > NEAR and each.value > each.floor + CERTAIN * each.floor_sd


def _furthest(facts: Facts, far: Histograms) -> str:
    place = ""
    if len(far.steps) > 1:
        place = f" {far.worst}" if facts.pictured else f" at {moment(facts.grid, far.worst)}"
    return (
        f"The largest difference, D = {far.max.value:.3f} in {far.name}{place}, is "
        f"{far.max.ratio:.1f} times what noise would make it."
    )


def _same(facts: Facts) -> bool:
    """Whether the reference answers the same question, as far as a person stated it."""
    from surrogate.kinds.trajectories.requirements import asked

    other = None if facts.against is None else asked(facts.against)
    if facts.asked is None or other is None:
        return False
    mine, theirs = ({part.text for part in each.parts} for each in (facts.asked, other))
    return mine == theirs
