"""Formulas without the columns that follow from a category, as a country follows from a city.

What is said of such a column is said of the words it follows from: `country = France` is `city in
{Paris, Lyon}`, and a number is the sum of its values over the words, each times the word's weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite

from constraints.ast import formulas as f
from constraints.ast.lowered import Atom, Option
from constraints.ast.nodes import Node
from constraints.ast.terms import Const, Name, Term, add
from constraints.ast.walk import descend
from constraints.compile.program import Program
from constraints.compile.rewrite import Rewriting, rewritten
from constraints.layout.signals import Layout


@dataclass(frozen=True)
class Follower:
    """`values`: for each of the leader's `words` the number, or the number of the category."""

    leader: str
    words: tuple[str, ...]
    values: tuple[float, ...]

    def options(self, instance: int | None, chosen: list[int]) -> tuple[Option, ...]:
        """The weights of some of the leader's words."""
        return tuple(Option(Name(self.leader, instance), i, self.words) for i in chosen)


def stated(followers: Mapping[str, Follower], layout: Layout, goal: f.Formula) -> list[f.Formula]:
    """What follows from the words that the goal names: city = Paris implies country = France."""
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


def followed(program: Program, followers: Mapping[str, Follower], *, soft: bool = False) -> Program:
    """The same statement about the leaders; margins stay as they are where all are `soft`."""
    if not set(followers) & program.needed:
        return program
    return rewritten(program, _Following(followers, soft), program.layout)


class _Following(Rewriting):
    def __init__(self, followers: Mapping[str, Follower], soft: bool) -> None:
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
        """One of some words: one of the words of the leader that lead to them."""
        first = atom.terms[0]
        assert isinstance(first, Option)
        follower = self.followers[first.signal.name]
        wanted = {term.index for term in atom.terms if isinstance(term, Option)}
        chosen = [i for i, value in enumerate(follower.values) if int(value) in wanted]
        return _among(atom, follower, first.signal.instance, chosen)

    def number(self, atom: Atom, term: Name) -> f.Formula:
        """A number in an interval: one of the words whose number is."""
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
        if isinstance(node, Option) and node.signal.name in self.followers:
            follower = self.followers[node.signal.name]
            chosen = [i for i, value in enumerate(follower.values) if int(value) == node.index]
            return add(*follower.options(node.signal.instance, chosen))
        return None

    def total(self, node: Name) -> Term:
        """A number as the sum of its values over the leader's words."""
        follower = self.followers[node.name]
        every = follower.options(node.instance, list(range(len(follower.values))))
        pairs = zip(follower.values, every, strict=True)
        return add(*(float(value) * option for value, option in pairs))


def _among(atom: Atom, follower: Follower, instance: int | None, chosen: list[int]) -> f.Formula:
    """That the leader is (or, where the weights have an upper bound, is not) one of some words."""
    if not chosen or len(chosen) == len(follower.values):
        return f.TRUE if bool(chosen) == atom.chooses else f.FALSE
    options = follower.options(instance, chosen)
    return replace(atom, coefficients=(1.0,) * len(options), terms=options)
