"""Scenarios as temporal constraints: written by people, differentiable, exact in their verdicts.

from constraints import Layout, compiled, parse

formula = parse("forall t: I(t) <= 20")
program = compiled(formula, Layout.series("S I", 30))
program.verdict({"S": S, "I": I})        # (B,) of bool
program({"S": S, "I": I})                # (B,) log-probability, differentiable
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constraints.ast.formulas import Formula as Formula
    from constraints.ast.formulas import always as always
    from constraints.ast.formulas import conjunction as conjunction
    from constraints.ast.formulas import count as count
    from constraints.ast.formulas import disjunction as disjunction
    from constraints.ast.formulas import eventually as eventually
    from constraints.ast.formulas import exists as exists
    from constraints.ast.formulas import forall as forall
    from constraints.ast.formulas import historically as historically
    from constraints.ast.formulas import iff as iff
    from constraints.ast.formulas import implies as implies
    from constraints.ast.formulas import instances_of as instances_of
    from constraints.ast.formulas import once as once
    from constraints.ast.formulas import one_of as one_of
    from constraints.ast.terms import call as call
    from constraints.ast.terms import end as end
    from constraints.ast.terms import maximum as maximum
    from constraints.ast.terms import minimum as minimum
    from constraints.ast.terms import now as now
    from constraints.ast.terms import signals as signals
    from constraints.ast.terms import time as time
    from constraints.compile.lowered import Warp as Warp
    from constraints.compile.program import Program as Program
    from constraints.compile.program import compiled as compiled
    from constraints.errors import DataError as DataError
    from constraints.errors import FormulaError as FormulaError
    from constraints.errors import ImpossibleError as ImpossibleError
    from constraints.errors import SurrogateError as SurrogateError
    from constraints.evaluate.semantics import Boolean as Boolean
    from constraints.evaluate.semantics import LogLTN as LogLTN
    from constraints.evaluate.semantics import LogProbabilistic as LogProbabilistic
    from constraints.evaluate.semantics import Robustness as Robustness
    from constraints.explanation import Explanation as Explanation
    from constraints.explanation import explain as explain
    from constraints.gaussian.latent import warped as warped
    from constraints.language.bridge import bridge as bridge
    from constraints.language.parser import parse as parse
    from constraints.layout.functions import Classifier as Classifier
    from constraints.layout.functions import Function as Function
    from constraints.layout.image_operators import box as box
    from constraints.layout.image_operators import region_from_text as region_from_text
    from constraints.layout.image_operators import standard_regions as standard_regions
    from constraints.layout.signals import Layout as Layout
    from constraints.layout.signals import Signal as Signal
    from constraints.physics import rules as rules

# loaded when first used: reading and printing formulas needs no torch
_HOMES = {
    "Boolean": "evaluate.semantics",
    "Classifier": "layout.functions",
    "DataError": "errors",
    "Explanation": "explanation",
    "Formula": "ast.formulas",
    "FormulaError": "errors",
    "Function": "layout.functions",
    "ImpossibleError": "errors",
    "Layout": "layout.signals",
    "LogLTN": "evaluate.semantics",
    "LogProbabilistic": "evaluate.semantics",
    "Program": "compile.program",
    "Robustness": "evaluate.semantics",
    "Signal": "layout.signals",
    "SurrogateError": "errors",
    "Warp": "compile.lowered",
    "always": "ast.formulas",
    "box": "layout.image_operators",
    "bridge": "language.bridge",
    "call": "ast.terms",
    "compiled": "compile.program",
    "conjunction": "ast.formulas",
    "count": "ast.formulas",
    "disjunction": "ast.formulas",
    "end": "ast.terms",
    "eventually": "ast.formulas",
    "exists": "ast.formulas",
    "explain": "explanation",
    "forall": "ast.formulas",
    "historically": "ast.formulas",
    "iff": "ast.formulas",
    "implies": "ast.formulas",
    "instances_of": "ast.formulas",
    "maximum": "ast.terms",
    "minimum": "ast.terms",
    "now": "ast.terms",
    "once": "ast.formulas",
    "one_of": "ast.formulas",
    "parse": "language.parser",
    "region_from_text": "layout.image_operators",
    "signals": "ast.terms",
    "standard_regions": "layout.image_operators",
    "time": "ast.terms",
    "warped": "gaussian.latent",
}
__all__ = [*_HOMES, "rules"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "rules":
        return import_module("constraints.physics.rules")
    if name not in _HOMES:
        raise AttributeError(f"module 'constraints' has no attribute {name!r}")
    return getattr(import_module(f"constraints.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
