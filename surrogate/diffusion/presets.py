"""Presets: named sizes of a training run, in steps and depth of the network.

A preset is adapted three times: to the kind of data (`Kind.tuned`), to the number of samples
(`within`), and to data that are simulated during the run (`endless`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from surrogate.diffusion.training import Settings
from surrogate.errors import ModelError, whole_number

MIN_STEPS = 1_000  # of a run on few samples
MAX_ITERATIONS = 10**9


@dataclass(frozen=True)
class Preset:
    """Settings of the training and of the network.

    `epochs` bounds how often a sample is seen: a network that sees few samples more often memorises
    them, and a short run ends with small steps where a long one would be stopped early.
    """

    settings: Settings
    depth: int = 4  # blocks of the network
    epochs: int | None = 300
    large_steps: int = 8_000  # steps where samples are large, such as images

    def with_steps(self, steps: int) -> Preset:
        """The same with another number of steps."""
        own = self.settings
        warm_up, check_every = min(own.warm_up, steps // 5), min(own.check_every, steps)
        settings = replace(own, steps=steps, warm_up=warm_up, check_every=check_every)
        return replace(self, settings=settings, large_steps=steps)

    def endless(self) -> Preset:
        """The same without early stopping."""
        return replace(self, settings=replace(self.settings, patience=self.settings.steps))

    def within(self, samples: int) -> Preset:
        """The same with at most `epochs` passes over so many samples."""
        if self.epochs is None:
            return self
        limit = max(MIN_STEPS, self.epochs * samples // self.settings.batch)
        return self if self.settings.steps <= limit else self.with_steps(limit)


PRESETS = {
    "quick": Preset(Settings(steps=1_500, warm_up=100, check_every=150), large_steps=1_000),
    "default": Preset(Settings(steps=6_000)),
    "best": Preset(Settings(steps=20_000, check_every=500), large_steps=24_000),
}


def preset_named(name: str, iterations: int | None = None) -> Preset:
    """A preset by name, with another number of steps if that is given."""
    if name not in PRESETS:
        raise ModelError(f"unknown preset {name!r}", value=name, allowed=list(PRESETS))
    if iterations is None:
        return PRESETS[name]
    steps = whole_number(iterations, "iterations", least=1, most=MAX_ITERATIONS)
    return replace(PRESETS[name].with_steps(steps), epochs=None)
