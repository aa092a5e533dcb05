"""What can go wrong with a model: what a person asked of it, and what a run met."""

from __future__ import annotations


class ModelError(ValueError):
    """Data, settings or a model folder that cannot be used, with the reason and the remedy."""


class TrainingError(RuntimeError):
    """A training run that had to stop: a diverging loss, no room to write."""
