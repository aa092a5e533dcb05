"""Simulation-based calibration of a surrogate, replicate by replicate.

A replicate i draws observations of the truth x_i by the design, samples the model given these, and
keeps the rank of each quantity of x_i among its values in the samples (`evaluation.ranks`). Truths
come from outside, so that model and sampler are tested together; samples of the model itself test
the sampler alone. Random numbers are functions of (seed, i): more replicates add to the first ones.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr

from constraints import Formula
from constraints.errors import ImpossibleError, Setting
from surrogate.calibration.design import Design, design
from surrogate.calibration.result import REPLICATE_COLUMNS, Calibration
from surrogate.errors import ModelError, SamplingError, whole_number
from surrogate.evaluation.ranks import randomised_ranks
from surrogate.guidance import sampler
from surrogate.guidance.method import AUTO, method_named, names_of
from surrogate.guidance.sampler import Answer
from surrogate.io.reading import ObservationOptions
from surrogate.kinds.given import distributions
from surrogate.kinds.measurements import Signals
from surrogate.kinds.signals import samples_of
from surrogate.model import Surrogate
from surrogate.random import Calibration as Stream
from surrogate.random import derived, stream

REPLICATES, SAMPLES = 100, 100
PARTICLES = 1_000  # for the samples of a replicate, where the method has particles
SMALL_PILOT = 100  # plain draws beside particles, which do not depend on them
MIN_THINNED = 2
GIVEN, OWN = "given", "own"

Progress = Callable[[int], None]


def calibrate(
    model: Surrogate,
    truths: Any = None,
    *,
    replicates: int = REPLICATES,
    samples: int = SAMPLES,
    noise: Any = (),
    given: str | Sequence[str] = (),
    steps_observed: Sequence[int] = (),
    like: Any = None,
    columns: Mapping[str, str] | None = None,
    time: str | None = None,
    upto: Any = None,
    every: int = 1,
    nearest: bool = False,
    quantities: str | Sequence[str] = (),
    seed: int = 0,
    method: str = AUTO,
    particles: int | None = None,
    known: pd.DataFrame | None = None,
    progress: Progress = lambda replicates: None,
    **settings: Any,
) -> Calibration:
    """Whether samples given data are calibrated: ranks of truths among them, and coverage.

    truths: trajectories or rows that the model has not learned from, such as
    `simulate(models.sir(), samples=100, parameters=...)`; without them its own samples, which test
    the sampler alone. What is observed of each: the columns `given`, at `steps_observed` of series,
    with the distributions of `noise`; or what data `like` these observe, read by `columns`, `time`,
    `upto`, `every` and `nearest` as in `Surrogate.sample`. quantities: terms that are ranked, such
    as "max(I)"; by default what is not observed exactly. `method`, `particles` and `settings` are
    those of `sample`. known: ranks of an earlier run with the same arguments, which goes on.

    An interrupted run (Ctrl-C) returns what is known by then.
    """
    replicates = whole_number(replicates, "replicates", least=1)
    samples, seed = whole_number(samples, "samples", least=2), whole_number(seed, "seed")
    kind, layout = model.kind, model.codec.layout()
    options = ObservationOptions(
        columns=columns,
        noise=distributions(noise),
        time=time,
        upto=upto,
        every=every,
        nearest=nearest,
    )
    own = design(
        kind,
        layout,
        options,
        like=like,
        given=_listed(given),
        steps=steps_observed,
        quantities=_listed(quantities),
    )
    source, data = _truths(model, truths, replicates, seed)
    signals = kind.tensors(data, layout, slice(None))
    replicates = samples_of(data)
    given_settings = {"method": method, "particles": particles, **settings}
    digest = _digest(model, own, signals, samples, seed, given_settings)
    runner = Replicates(
        model, own, signals, samples, seed, method, particles or PARTICLES, settings
    )
    return runner.run(source, known, digest, progress)


class Replicates:
    """Replicates of one design; `signals` are those of the truths (N, ...)."""

    def __init__(
        self,
        model: Surrogate,
        own: Design,
        signals: Signals,
        samples: int,
        seed: int,
        method: str,
        particles: int,
        settings: Mapping[str, Any],
    ) -> None:
        self.model, self.design, self.signals = model, own, signals
        self.samples, self.seed, self.method = samples, seed, method
        self.settings = dict(settings)
        if method == AUTO or _has_particles(method):
            self.settings["particles"] = particles
        self.count = len(next(iter(signals.values())))
        self.parameters = own.measurements.parameters(signals)
        self._method: str | None = None

    def run(
        self, source: str, known: pd.DataFrame | None, digest: str, progress: Progress
    ) -> Calibration:
        """All replicates, those that are `known` apart."""
        began = time.monotonic()
        rows = [] if known is None else _known(known, digest, self.count)
        done = {row["replicate"] for row in rows}
        progress(len(done))
        interrupted = False
        for i in range(self.count):
            if i in done:
                continue
            try:
                rows += self.replicate(i)
            except KeyboardInterrupt:
                if not rows:
                    raise
                interrupted = True
                break
            progress(1)
        table = pd.DataFrame(rows, columns=list(REPLICATE_COLUMNS)).assign(run=digest)
        return Calibration(
            ranks=table.sort_values("replicate", kind="stable", ignore_index=True),
            quantities=self.design.ranked,
            observed=self.design.notes,
            source=source,
            samples=self.samples,
            requested=self.count,
            seed=self.seed,
            seconds=time.monotonic() - began,
            interrupted=interrupted,
        )

    def replicate(self, i: int) -> list[dict[str, Any]]:
        """A row for each quantity of truth i."""
        noise = stream(self.seed, Stream.NOISE, i)
        observed = self.design.measurements.observed(self.parameters, i, noise)
        truth = {name: each[i : i + 1] for name, each in self.signals.items()}
        at = self.design.values(truth, observed)[0]
        blank = {"replicate": i, "problem": ""}
        try:
            answer = self._sampled(observed, derived(self.seed, Stream.REPLICATE, i))
        except (SamplingError, ImpossibleError) as problem:
            failed = {**blank, "problem": problem.problem}
            return [
                {**failed, "quantity": name, "truth": value}
                for name, value in zip(self.design.ranked, at, strict=True)
            ]
        found = self.model.kind.tensors(answer.dataset, self.design.layout, slice(None))
        every = self.design.values(found, observed)
        effective = answer.diagnostics.sample_ess
        draws = every[self._thinned(i, len(every), effective)]
        ties = torch.rand(len(at), generator=stream(self.seed, Stream.TIES, i), dtype=torch.float64)
        ranks = randomised_ranks(at, draws, ties.numpy())
        return [
            {
                **blank,
                "quantity": name,
                "truth": at[q],
                "rank": ranks[q],
                "mean": every[:, q].mean(),
                "sd": every[:, q].std(),
                "effective": effective,
            }
            for q, name in enumerate(self.design.ranked)
        ]

    def _sampled(self, observed: Mapping[str, Formula], seed: int) -> Answer:
        """Samples given what was observed. Once `auto` has chosen a method with particles it is
        kept, since the next observations are of the same kind; where it fails, `auto` is asked."""
        kept = self._method if self.method == AUTO else None
        if kept is None:
            found = sampler.sample(
                self.model, self.samples, observed, seed=seed, method=self.method, **self.settings
            )
            chosen = found.diagnostics.method
            self._method = chosen if _has_particles(chosen) else None
            return found
        try:
            return sampler.sample(
                self.model,
                self.samples,
                observed,
                seed=seed,
                method=kept,
                pilot_samples=SMALL_PILOT,
                **self.settings,
            )
        except SamplingError:
            return sampler.sample(self.model, self.samples, observed, seed=seed, **self.settings)

    def _thinned(self, i: int, count: int, effective: float) -> np.ndarray:
        """As many of the samples as they are worth: ranks among samples that share ancestors would
        be too extreme."""
        worth = min(count, max(MIN_THINNED, round(effective)))
        return torch.randperm(count, generator=stream(self.seed, Stream.THINNING, i))[
            :worth
        ].numpy()


def _has_particles(method: str) -> bool:
    return "particles" in names_of(method_named(method))


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _truths(model: Surrogate, truths: Any, replicates: int, seed: int) -> tuple[str, xr.Dataset]:
    """Where truths come from, and at most so many of them, chosen by the seed."""
    if truths is None:
        return OWN, model.dataset(replicates, seed=derived(seed, Stream.TRUTHS))
    if not model.kind.holds(truths):
        raise ModelError(
            f"the truths are no {model.kind.name}, which this is a model of",
            value=type(truths).__name__,
            remedy=f"give data over {model.kind.dimensions}",
        )
    data = model.codec.read(truths)
    model.codec.matches(data)
    count = samples_of(data)
    if count <= replicates:
        return GIVEN, data
    order = torch.randperm(count, generator=stream(seed, Stream.TRUTHS))
    return GIVEN, data.isel(sample=order[:replicates].numpy())


def _digest(
    model: Surrogate,
    own: Design,
    signals: Signals,
    samples: int,
    seed: int,
    settings: Mapping[str, Any],
) -> str:
    """Of all that the replicates of a run depend on, but for their number."""
    first = {name: np.asarray(each[0]).tolist() for name, each in signals.items()}
    about = {
        "model": model.digest,
        "observed": {name: str(each) for name, each in own.measurements.statements.items()},
        "quantities": own.ranked,
        "truth": first,
        "samples": samples,
        "seed": seed,
        "settings": {name: str(value) for name, value in settings.items()},
    }
    text = json.dumps(about, sort_keys=True)
    return "run-" + hashlib.sha256(text.encode()).hexdigest()[:12]  # no number in any notation


def _known(ranks: pd.DataFrame, digest: str, count: int) -> list[dict[str, Any]]:
    """Rows of an earlier run; ModelError where that was another one."""
    missing = [name for name in (*REPLICATE_COLUMNS, "run") if name not in ranks]
    if missing:
        raise ModelError(
            f"a table of ranks has a column {missing[0]!r}",
            value=list(ranks),
            allowed=[*REPLICATE_COLUMNS, "run"],
        )
    if set(ranks["run"].astype(str)) - {digest}:
        raise ModelError(
            "these ranks are of another run: of another model, design, seed or setting",
            value=str(ranks["run"].iloc[0]),
            remedy=("give the same settings, or start anew without ", Setting("resume", True)),
        )
    why = ranks["problem"].astype(object)  # an empty column of a file is read as numbers
    kept = ranks[ranks["replicate"] < count].assign(problem=why.where(why.notna(), ""))
    return kept[list(REPLICATE_COLUMNS)].to_dict("records")  # type: ignore[return-value]
