"""Scenarios as temporal constraints: written by people, differentiable, exact in their verdicts.

from constraints import Layout, compile, parse

formula = parse("forall t: I(t) <= 20")
program = compile(formula, Layout.series("S I", 30))
program.verdict({"S": S, "I": I})        # (B,) of bool
program({"S": S, "I": I})                # (B,) log-probability, differentiable
"""

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
from constraints.compile.program import compile as compile
from constraints.errors import DataError as DataError
from constraints.errors import FormulaError as FormulaError
from constraints.errors import ImpossibleError as ImpossibleError
from constraints.evaluate.semantics import Boolean as Boolean
from constraints.evaluate.semantics import LogLTN as LogLTN
from constraints.evaluate.semantics import LogProbabilistic as LogProbabilistic
from constraints.evaluate.semantics import Robustness as Robustness
from constraints.explain import Explanation as Explanation
from constraints.explain import explain as explain
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
