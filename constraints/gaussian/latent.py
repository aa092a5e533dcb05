"""Formulas in latent coordinates: a statement about y = Q(z), restated about z.

A table's column may be learned through an increasing map Q, possibly a staircase, that makes its
latents z nearly normal. An interval of y is then an interval of z, exactly. A sum of several such
columns reads each of them through its map, and is no longer linear.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from constraints.ast import formulas as f
from constraints.ast.lowered import Atom, LatentColumn
from constraints.ast.lowered import LatentMap as LatentMap
from constraints.ast.nodes import Node
from constraints.ast.terms import Name, Term
from constraints.compile.program import Program
from constraints.compile.rewrite import Rewriting, rewritten
from constraints.errors import FormulaError, quoted, unknown
from constraints.layout.signals import Layout

LATENT_EQUALITY_HALF_WIDTH = 1e-6  # of the value's size, for an equality without tolerance


def to_latents(program: Program, warps: Mapping[str, LatentMap], *, soft: bool = False) -> Program:
    """The program restated for data in which the columns named in `warps` hold latents.

    An atom about one column becomes an interval of its latents. It stays in data units if it has a
    hardness k of its own, or if all atoms are `soft`: margins are in data units.
    """
    layout = _latent(program.layout, warps)
    return rewritten(program, _ToLatents(warps, program.layout, soft), layout)


def _latent(layout: Layout, warps: Mapping[str, LatentMap]) -> Layout:
    """The layout of the latents."""
    for name in warps:
        signal = layout.find(name)
        if signal is None:
            raise unknown("column", name, layout.names)
        if signal.kind != "column":
            columns = [each.name for each in layout.signals if each.kind == "column"]
            raise FormulaError(
                f"{name} is a {signal.kind}, and only columns have latents",
                value=name,
                allowed=[quoted(each) for each in columns],
            )
    signals = tuple(
        replace(
            signal,
            integer=False,
            low=warps[signal.name].low,
            high=warps[signal.name].high,
            span=warps[signal.name].span,
        )
        if signal.name in warps
        else signal
        for signal in layout.signals
    )
    return replace(layout, signals=signals)


class _ToLatents(Rewriting):
    def __init__(self, warps: Mapping[str, LatentMap], layout: Layout, soft: bool) -> None:
        self.warps = warps
        self.layout = layout
        self.soft = soft

    def term(self, node: Node) -> Term | None:
        if isinstance(node, Name) and node.name in self.warps:
            return LatentColumn(node, self.warps[node.name])
        return None

    def atom(self, atom: Atom) -> f.Formula:
        term = atom.terms[0]
        single = len(atom.terms) == 1 and isinstance(term, Name) and term.name in self.warps
        if not single or self.soft or atom.k is not None:
            through: Atom = self.inside(atom)
            return through
        assert isinstance(term, Name)
        found = _interval(atom, term, self.warps[term.name])
        signal = self.layout.find(term.name)
        lacking = signal is not None and signal.optional
        return Atom((1.0,), (term,)) if found == f.TRUE and lacking else found


def _interval(atom: Atom, signal: Name, warp: LatentMap) -> f.Formula:
    """An atom about one column as an interval of its latents, or true, or false."""
    low, high, *ends = atom.admitted()
    first, last = warp.interval(low, high, *ends) if low <= high else (math.inf, -math.inf)
    if low == high and first == last:  # where the map is no staircase
        room = LATENT_EQUALITY_HALF_WIDTH * max(1.0, abs(low))
        first, last = warp.interval(low - room, high + room, *ends)
    if first >= last:
        return f.FALSE
    # beyond its ends the map does not change
    first = -math.inf if first <= warp.low else first
    last = math.inf if last >= warp.high else last
    if math.isinf(first) and math.isinf(last):
        return f.TRUE
    return Atom((1.0,), (signal,), first, last)
