"""Elimination of dependent columns: a country that is a function of the city, for example.

A statement about a dependent column, the follower, is restated about the category that determines
it, the leader: `country = France` becomes `city in {Paris, Lyon}`, and a number becomes the sum of
its values over the leader's categories, each times the category's weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite

from constraints.ast import formulas as f
from constraints.ast.lowered import Atom, CategoryWeight
from constraints.ast.nodes import Node
from constraints.ast.terms import Const, Name, Term, add
from constraints.ast.walk import descend
from constraints.compile.program import Program
from constraints.compile.rewrite import Rewriting, rewritten
from constraints.layout.signals import Layout


@dataclass(frozen=True)
class DependentColumn:
    """A function of a categorical column, the leader, whose categories are `words`.

    `values`: for each of these categories the number, or the index of the follower's category.
    """

    leader: str
    words: tuple[str, ...]
    values: tuple[float, ...]

    def options(self, instance: int | None, chosen: list[int]) -> tuple[CategoryWeight, ...]:
        """The weights of the leader's categories with the `chosen` indices."""
        return tuple(CategoryWeight(Name(self.leader, instance), i, self.words) for i in chosen)


def implied_values(
    followers: Mapping[str, DependentColumn], layout: Layout, goal: f.Formula
) -> list[f.Formula]:
    """Implications for the categories in the goal: city = Paris implies country = France."""
    named = {node.name for node in descend(goal) if isinstance(node, Name)}
    found: list[f.Formula] = []
    for name, follower in followers.items():
        signal = layout.find(name)
        if name not in named or signal is None or signal.dates:
            continue
        for word, value in zip(follower.words, follower.values, strict=True):
            if word in named and isfinite(value):
                own = Name(signal.categories[int(value)]) if signal.categories else Const(value)
                leads = f.Compare((Name(follower.leader), Name(word)), ("=",))
                found.append(f.Implies(leads, f.Compare((Name(name), own), ("=",))))
    return found


def without_dependents(
    program: Program, followers: Mapping[str, DependentColumn], *, soft: bool = False
) -> Program:
    """The program restated about the leaders; if `soft`, margins of numbers stay in data units."""
    if not set(followers) & program.needed:
        return program
    return rewritten(program, _WithoutDependents(followers, soft), program.layout)


class _WithoutDependents(Rewriting):
    def __init__(self, followers: Mapping[str, DependentColumn], soft: bool) -> None:
        self.followers = followers
        self.soft = soft

    def atom(self, atom: Atom) -> f.Formula:
        category = atom.category
        if category is not None and category.name in self.followers:
            return self.words(atom)
        term = atom.terms[0]
        single = len(atom.terms) == 1 and isinstance(term, Name) and term.name in self.followers
        if single and not self.soft and atom.k is None:
            assert isinstance(term, Name)
            return self.number(atom, term)
        found: Atom = self.inside(atom)
        return found

    def words(self, atom: Atom) -> f.Formula:
        """`country in {France}`: the leader is among the categories with such a country."""
        first = atom.terms[0]
        assert isinstance(first, CategoryWeight)
        follower = self.followers[first.signal.name]
        wanted = {term.index for term in atom.terms if isinstance(term, CategoryWeight)}
        chosen = [i for i, value in enumerate(follower.values) if int(value) in wanted]
        return _among(atom, follower, first.signal.instance, chosen)

    def number(self, atom: Atom, term: Name) -> f.Formula:
        """A number in an interval: the leader is among the categories whose number is in it."""
        follower = self.followers[term.name]
        low, high, open_low, open_high = atom.admitted()
        chosen = [
            i
            for i, value in enumerate(follower.values)
            if (low < value if open_low else low <= value)
            and (value < high if open_high else value <= high)
        ]
        among = replace(atom, coefficients=(1.0,), low=0.5, high=float("inf"), integer=False)
        among = replace(among, open_low=False, open_high=False, slack=0.0)
        return _among(among, follower, term.instance, chosen)

    def term(self, node: Node) -> Term | None:
        if isinstance(node, Name) and node.name in self.followers:
            return self.total(node)
        if isinstance(node, CategoryWeight) and node.signal.name in self.followers:
            follower = self.followers[node.signal.name]
            chosen = [i for i, value in enumerate(follower.values) if int(value) == node.index]
            return add(*follower.options(node.signal.instance, chosen))
        return None

    def total(self, node: Name) -> Term:
        """A number as the sum of its values times the weights of the leader's categories."""
        follower = self.followers[node.name]
        every = follower.options(node.instance, list(range(len(follower.values))))
        pairs = zip(follower.values, every, strict=True)
        return add(*(float(value) * option for value, option in pairs))


def _among(
    atom: Atom, follower: DependentColumn, instance: int | None, chosen: list[int]
) -> f.Formula:
    """The statement that the leader is among the chosen categories, or, as the atom, is not."""
    if not chosen or len(chosen) == len(follower.values):
        return f.TRUE if bool(chosen) == atom.chooses else f.FALSE
    options = follower.options(instance, chosen)
    return replace(atom, coefficients=(1.0,) * len(options), terms=options)
