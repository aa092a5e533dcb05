"""Temporal logic on trajectories, tables and images: parsing, verdicts, differentiable values.

from constraints import Layout, compiled, parse

formula = parse("forall t: I(t) <= 20")
program = compiled(formula, Layout.series("S I", 30))
program.verdict({"S": S, "I": I})        # (B,) of bool
program({"S": S, "I": I})                # (B,) log-probability, differentiable

Names are loaded when first used: parsing and printing formulas, layouts and proofs of
contradiction need no torch (`lazy`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constraints.ast.aggregates import Aggregation as Aggregation
    from constraints.ast.aggregates import Parameter as Parameter
    from constraints.ast.aggregates import aggregates as aggregates
    from constraints.ast.build import always as always
    from constraints.ast.build import call as call
    from constraints.ast.build import count as count
    from constraints.ast.build import end as end
    from constraints.ast.build import eventually as eventually
    from constraints.ast.build import exists as exists
    from constraints.ast.build import forall as forall
    from constraints.ast.build import historically as historically
    from constraints.ast.build import maximum as maximum
    from constraints.ast.build import minimum as minimum
    from constraints.ast.build import now as now
    from constraints.ast.build import once as once
    from constraints.ast.build import one_of as one_of
    from constraints.ast.build import reaches as reaches
    from constraints.ast.build import signals as signals
    from constraints.ast.build import time as time
    from constraints.ast.families import Family as Family
    from constraints.ast.families import FamilyParameter as FamilyParameter
    from constraints.ast.families import Observation as Observation
    from constraints.ast.families import binomial as binomial
    from constraints.ast.families import factored as factored
    from constraints.ast.families import families as families
    from constraints.ast.families import has_verdict as has_verdict
    from constraints.ast.families import lognormal as lognormal
    from constraints.ast.families import negative_binomial as negative_binomial
    from constraints.ast.families import normal as normal
    from constraints.ast.families import observe as observe
    from constraints.ast.families import poisson as poisson
    from constraints.ast.families import student_t as student_t
    from constraints.ast.families import uniform as uniform
    from constraints.ast.formulas import Formula as Formula
    from constraints.ast.formulas import conjunction as conjunction
    from constraints.ast.formulas import disjunction as disjunction
    from constraints.ast.formulas import iff as iff
    from constraints.ast.formulas import implies as implies
    from constraints.ast.terms import Term as Term
    from constraints.ast.walk import instances_of as instances_of
    from constraints.compile.latches import latches as latches
    from constraints.compile.prefixes import prefix_margins as prefix_margins
    from constraints.compile.program import Program as Program
    from constraints.compile.program import compiled as compiled
    from constraints.errors import ConstraintError as ConstraintError
    from constraints.errors import DataError as DataError
    from constraints.errors import FormulaError as FormulaError
    from constraints.errors import ImpossibleError as ImpossibleError
    from constraints.errors import SurrogateError as SurrogateError
    from constraints.evaluate.semantics import Boolean as Boolean
    from constraints.evaluate.semantics import LogLTN as LogLTN
    from constraints.evaluate.semantics import LogProbabilistic as LogProbabilistic
    from constraints.evaluate.semantics import Robustness as Robustness
    from constraints.evaluate.semantics import Semantics as Semantics
    from constraints.explanation import Explanation as Explanation
    from constraints.explanation import explain as explain
    from constraints.language.bridge import bridge as bridge
    from constraints.language.parser import parse as parse
    from constraints.layout.functions import Classifier as Classifier
    from constraints.layout.functions import Function as Function
    from constraints.layout.image_operators import box as box
    from constraints.layout.signals import Layout as Layout
    from constraints.layout.signals import Signal as Signal
    from constraints.physics import rules as rules

_NAMES_OF = {
    "ast.aggregates": ("Aggregation", "Parameter", "aggregates"),
    "ast.build": (
        "always",
        "call",
        "count",
        "end",
        "eventually",
        "exists",
        "forall",
        "historically",
        "maximum",
        "minimum",
        "now",
        "once",
        "one_of",
        "reaches",
        "signals",
        "time",
    ),
    "ast.families": (
        "Family",
        "FamilyParameter",
        "Observation",
        "binomial",
        "factored",
        "families",
        "has_verdict",
        "lognormal",
        "negative_binomial",
        "normal",
        "observe",
        "poisson",
        "student_t",
        "uniform",
    ),
    "ast.formulas": ("Formula", "conjunction", "disjunction", "iff", "implies"),
    "ast.terms": ("Term",),
    "ast.walk": ("instances_of",),
    "compile.latches": ("latches",),
    "compile.prefixes": ("prefix_margins",),
    "compile.program": ("Program", "compiled"),
    "errors": ("ConstraintError", "DataError", "FormulaError", "ImpossibleError", "SurrogateError"),
    "evaluate.semantics": ("Boolean", "LogLTN", "LogProbabilistic", "Robustness", "Semantics"),
    "explanation": ("Explanation", "explain"),
    "language.bridge": ("bridge",),
    "language.parser": ("parse",),
    "layout.functions": ("Classifier", "Function"),
    "layout.image_operators": ("box",),
    "layout.signals": ("Layout", "Signal"),
}
_HOMES = {name: module for module, names in _NAMES_OF.items() for name in names}
__all__ = [*_HOMES, "rules"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "rules":
        return import_module("constraints.physics.rules")
    if name not in _HOMES:
        raise AttributeError(f"module 'constraints' has no attribute {name!r}")
    return getattr(import_module(f"constraints.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
