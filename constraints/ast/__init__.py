"""Formulas and terms as immutable syntax trees; loading any part of it makes nodes printable."""

from constraints.ast import printer as printer
