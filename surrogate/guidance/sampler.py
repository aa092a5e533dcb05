"""Samples of a model under a scenario, whichever method makes them, with what is known of them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

import torch
import xarray as xr
from torch import Tensor

from constraints import Formula, conjunction
from constraints.contradictions import refuse_impossible
from constraints.rules import from_network
from surrogate.errors import ModelError
from surrogate.guidance import truncated
from surrogate.guidance.gradient import WEIGHTS, guided
from surrogate.guidance.particles import effective, systematic
from surrogate.guidance.refresh import refresh
from surrogate.guidance.rejection import reject
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.twisted import Particles, twisted
from surrogate.guidance.universal import universal
from surrogate.labels import described, label
from surrogate.model import MOST, Surrogate
from surrogate.schedule import karras
from surrogate.training import seeded

METHODS = ("auto", "twisted", "guidance", "universal", "rejection")
SOFT = 10.0  # hardness where a method needs one
PILOT = 2_000  # unconditional samples that tell how probable a scenario is
LIKELY = 0.3  # share of the pilot from which rejection is the cheaper way
LEAST = 0.02  # the last noise level before the clean point
BATCHES = 4
TRIES = 3  # rungs of the ladder: each has twice the particles and half as many steps again
Say = Callable[[str], None]


@dataclass
class Settings:
    """How to sample; None is chosen."""

    method: str = "auto"
    particles: int | None = None
    steps: int | None = None
    hardness: float | None = None
    consistency: bool = True
    weighted: bool = False
    end: str | None = None
    schedule: str = "snr"  # of the method guidance
    langevin: int | None = None  # its steps at the end

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ModelError(f"unknown method {self.method!r} (have: {', '.join(METHODS)})")
        if self.particles is not None and not 8 <= self.particles <= 10**7:
            raise ModelError(f"particles must be 8 to 10,000,000, not {self.particles}")
        if self.steps is not None and not 2 <= self.steps <= 10_000:
            raise ModelError(f"sampling takes 2 to 10,000 steps, not {self.steps}")
        if self.hardness is not None and not 0 < self.hardness < math.inf:
            raise ModelError(f"hardness must be a number > 0, not {self.hardness}")
        if self.schedule not in WEIGHTS:
            raise ModelError(f"unknown schedule {self.schedule!r} (have: {', '.join(WEIGHTS)})")
        if self.langevin is not None and not 0 <= self.langevin <= 10**6:
            raise ModelError(f"langevin must be 0 to 1,000,000 steps, not {self.langevin}")

    @property
    def guided(self) -> bool:
        """Whether samples are led to the scenario without weights: not all may meet it."""
        return self.method in ("guidance", "universal")


@dataclass
class Diagnostics:
    """How a run went. Probabilities are natural logarithms."""

    method: str
    why: str
    log_probability: float | None  # None where a method does not tell
    log_probability_error: float | None
    effective: float  # samples that the weighted ones are worth
    least_effective: float  # share of particles that carried the weight, at worst
    ancestors: int  # first particles that the last ones come from
    particles: int
    evaluations: int  # of the network, in samples
    met_before: float  # share of particles that satisfied the formula before any was chosen
    acceptance: float | None  # of the pilot
    copies: int  # samples that are copies of others
    seconds: float
    samples: int
    rejection_seconds: float | None  # that rejection would take for as many samples
    warnings: list[str] = field(default_factory=list)


def sample(
    model: Surrogate,
    samples: int,
    where: Formula | Mapping[str, Formula],
    seed: int = 0,
    settings: Settings | None = None,
    say: Say = lambda text: None,
    progress: Callable[[float], None] = lambda share: None,
) -> xr.Dataset:
    """Labelled trajectories from p(x | where), with their diagnostics in `attrs`."""
    if samples < 1:
        raise ModelError(f"ask for at least one sample, not {samples}")
    chosen = settings or Settings()
    rules = dict(where) if isinstance(where, Mapping) else {str(where): where}
    goal = conjunction(*rules.values())
    layout = model.codec.layout()
    known = from_network(described(model.codec.to_dataset(torch.zeros(1, *model.shape))))
    physics = known if chosen.consistency else {}
    refuse_impossible(goal, layout, given=list(known.values()), end=chosen.end)
    hardness = (chosen.hardness or SOFT) if chosen.guided else chosen.hardness
    scenario = Scenario(model, goal, physics, end=chosen.end, hardness=hardness)
    run = Run(scenario, samples, seed, chosen, say, progress)
    x, weights, found = run.go()
    data = model.codec.to_dataset(scenario.shaped(x).float())
    data = label(data, rules | physics, chosen.end)
    if chosen.weighted:
        data["log_weight"] = ("sample", weights.numpy(), {"long_name": "log of the weight"})
    return data.assign_attrs(
        surrogate_seed=seed,
        surrogate_model=model.digest,
        surrogate_settings=json.dumps(asdict(chosen)),
        surrogate_diagnostics=json.dumps(asdict(found)),
    )


class Run:
    """One question to a model."""

    def __init__(
        self,
        scenario: Scenario,
        samples: int,
        seed: int,
        settings: Settings,
        say: Say,
        progress: Callable[[float], None],
    ) -> None:
        self.scenario, self.samples, self.seed = scenario, samples, seed
        self.settings, self.say, self.progress = settings, say, progress
        self.evaluations = 0
        self.cost = math.nan  # seconds of an unconditional sample
        self.began = time.monotonic()

    def go(self) -> tuple[Tensor, Tensor, Diagnostics]:
        """Samples (n, D), their log-weights (n,), and how it went."""
        method, why = self.settings.method, "as was asked for"
        if self.settings.guided:
            return self._guided(method, why)
        pilot = reject(self.scenario, PILOT, PILOT, self.seed + 10**6, seeded(self.seed, 20))
        self.cost = (time.monotonic() - self.began) / PILOT
        self.evaluations += 40 * PILOT
        rate = pilot.rate
        if method == "auto":
            method = "rejection" if rate >= LIKELY else "twisted"
            why = f"{rate:.1%} of {PILOT:,} unconditional samples meet the scenario"
            self.say(f"method: {method} ({why})")
        if method == "rejection":
            return self._rejection(why, rate)
        return self._twisted(why, rate)

    # --- gradients --------------------------------------------------------------------------------

    def _guided(self, method: str, why: str) -> tuple[Tensor, Tensor, Diagnostics]:
        settings, generator = self.settings, seeded(self.seed, 24)
        done = 0

        def tell(step: int) -> None:
            nonlocal done
            done += step
            self.progress(done / steps)

        steps = settings.steps or (1000 if method == "guidance" else 200)
        final = settings.langevin if settings.langevin is not None else 2000
        if method == "guidance":
            x = guided(
                self.scenario,
                self.samples,
                generator,
                weight=settings.schedule,
                steps=steps,
                final=final,
                progress=tell,
            )
            self.evaluations += (steps + final) * self.samples
        else:
            x = universal(self.scenario, self.samples, generator, steps=steps, progress=tell)
            self.evaluations += 2 * steps * self.samples
        met, kept = self.scenario.satisfied(x)
        found = self._diagnostics(method, why, None, None, None)
        found.met_before = float(met.double().mean())
        found.effective, found.particles, found.ancestors = self.samples, self.samples, self.samples
        share = float((met & kept).double().mean())
        if share < 1:
            found.warnings = [f"{1 - share:.1%} of the samples do not meet the scenario"]
        return x, torch.zeros(len(x), dtype=torch.float64), found

    # --- rejection --------------------------------------------------------------------------------

    def _rejection(self, why: str, rate: float | None) -> tuple[Tensor, Tensor, Diagnostics]:
        most = 2_000 * max(self.samples, 500)
        generator = seeded(self.seed, 21)
        kept = reject(
            self.scenario,
            self.samples,
            most,
            self.seed,
            generator,
            steps=self.settings.steps,
            progress=lambda count: self.progress(min(1.0, count / self.samples)),
        )
        self.evaluations += (self.settings.steps or 40) * kept.drawn
        if not len(kept.x):
            raise ModelError(
                f"none of {kept.drawn:,} samples meets the scenario; use the method twisted"
            )
        x = kept.x[: self.samples]
        error = math.sqrt((1 - kept.rate) / len(kept.x))
        warnings = []
        if len(x) < self.samples:
            warnings.append(f"only {len(x):,} of {self.samples:,} samples were found")
        found = self._diagnostics("rejection", why, math.log(kept.rate), error, rate)
        found.effective = float(len(x))
        found.particles = kept.drawn
        found.ancestors = len(x)
        found.met_before = kept.met / kept.drawn
        found.warnings = warnings
        return x, torch.zeros(len(x), dtype=torch.float64), found

    # --- particles --------------------------------------------------------------------------------

    def _twisted(self, why: str, rate: float | None) -> tuple[Tensor, Tensor, Diagnostics]:
        particles = self.settings.particles or max(3 * self.samples, 2_000)
        steps = self.settings.steps or 40
        for attempt in range(TRIES):
            batches = self._batches(particles, steps, attempt)
            problems = _problems(batches)
            if not problems or attempt == TRIES - 1:
                break
            particles, steps = 2 * particles, steps * 3 // 2
            self.say(f"{'; '.join(problems)}: again with {particles:,} particles, {steps} steps")
        x = torch.cat([batch.x for batch in batches])
        log_weights = torch.cat([batch.log_weights for batch in batches])
        if not bool(log_weights.isfinite().any()):
            raise ModelError(
                "no particle meets the scenario, which is improbable or contradicts the model; "
                "try more particles or steps, or ask for less"
            )
        each = torch.tensor([batch.log_z for batch in batches], dtype=torch.float64)
        log_z = truncated.log_mean(each)
        relative = torch.exp(each - log_z)
        error = float(relative.std()) / math.sqrt(len(batches))
        found = self._diagnostics("twisted", why, log_z, error, rate)
        found.effective = min(effective(log_weights), float(self.samples))
        found.least_effective = min(batch.least / len(batch.x) for batch in batches)
        found.ancestors = sum(batch.ancestors for batch in batches)
        found.particles = len(x)
        found.met_before = sum(batch.met for batch in batches) / len(batches)
        found.warnings = problems
        x, weights = self._chosen(x, log_weights, found)
        found.seconds = time.monotonic() - self.began
        return x, weights, found

    def _batches(self, particles: int, steps: int, attempt: int) -> list[Particles]:
        sigmas = karras(steps, LEAST, MOST).double()
        size = math.ceil(particles / BATCHES)
        made = []
        for j in range(BATCHES):
            generator = seeded(self.seed, 22, attempt, j)
            done = j / BATCHES

            def tell(step: int, done: float = done) -> None:
                self.progress(done)

            made.append(twisted(self.scenario, size, sigmas, generator, tell))
            self.evaluations += size * steps
            self.progress((j + 1) / BATCHES)
        return made

    def _chosen(self, x: Tensor, log_weights: Tensor, found: Diagnostics) -> tuple[Tensor, Tensor]:
        """As many as were asked for: with weights, or of equal weight and told apart."""
        generator = seeded(self.seed, 23)
        if self.settings.weighted:
            alive = log_weights.isfinite()
            x, log_weights = x[alive], log_weights[alive]
            rows = torch.randperm(len(x), generator=generator)[: self.samples]
            return x[rows], log_weights[rows] - log_weights[rows].max()
        rows = systematic(log_weights, self.samples, generator)
        rows = rows[torch.randperm(len(rows), generator=generator)]
        x = refresh(self.scenario, x[rows], generator)
        self.evaluations += 3 * len(x)
        found.copies = len(x) - len(torch.unique(x, dim=0))
        return x, torch.zeros(len(x), dtype=torch.float64)

    def _diagnostics(
        self, method: str, why: str, log_z: float | None, error: float | None, rate: float | None
    ) -> Diagnostics:
        return Diagnostics(
            method=method,
            why=why,
            log_probability=log_z,
            log_probability_error=error,
            effective=0.0,
            least_effective=1.0,
            ancestors=0,
            particles=0,
            evaluations=self.evaluations,
            met_before=0.0,
            acceptance=rate,
            copies=0,
            seconds=time.monotonic() - self.began,
            samples=self.samples,
            rejection_seconds=None
            if log_z is None
            else self.cost * self.samples / math.exp(max(log_z, -700.0)),
        )


def _problems(batches: list[Particles]) -> list[str]:
    """What is wrong with a run, in words."""
    count = sum(len(batch.x) for batch in batches)
    found = []
    ancestors = sum(batch.ancestors for batch in batches)
    if ancestors < min(100, count // 20):
        found.append(f"only {ancestors} lines of particles survived")
    carrying = sum(batch.effective for batch in batches)
    if carrying < 0.02 * count:
        found.append(f"only {carrying:.0f} of {count:,} particles carry the weight")
    each = torch.tensor([batch.log_z for batch in batches])
    if not bool(each.isfinite().all()):
        found.append("in some batches no particle met the scenario")
    elif float(each.max() - each.min()) > 1.0:
        factor = math.exp(float(each.max() - each.min()))
        found.append(f"batches disagree on the probability by a factor of {factor:.1f}")
    return found
