"""Covariances of flat samples as linear operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor


class CovarianceOperator(Protocol):
    """A covariance (D, D) as a linear operator: of long series the matrix is too large.

    `known` caches variances and correlations of atoms, for the next posterior with this covariance.
    """

    @property
    def known(self) -> dict[Any, Any]: ...

    def through(self, rows: Tensor) -> Tensor:
        """rows (..., D) times the covariance: (..., D)."""
        ...


@dataclass(frozen=True)
class DenseCovariance:
    """A covariance as a matrix (D, D)."""

    matrix: Tensor
    known: dict[Any, Any] = field(default_factory=dict)

    def through(self, rows: Tensor) -> Tensor:
        """rows (..., D) times the matrix: (..., D)."""
        return rows @ self.matrix.to(rows)
