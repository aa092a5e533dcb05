"""Scenarios as temporal constraints: written by people, differentiable, exact in their verdicts.

from constraints import Layout, compile, parse

formula = parse("forall t: I(t) <= 20")
program = compile(formula, Layout.series("S I", 30))
program.verdict({"S": S, "I": I})        # (B,) of bool
program({"S": S, "I": I})                # (B,) log-probability, differentiable
"""

from constraints import rules as rules
from constraints.bridge import bridge as bridge
from constraints.errors import DataError as DataError
from constraints.errors import FormulaError as FormulaError
from constraints.errors import ImpossibleError as ImpossibleError
from constraints.explain import Explanation as Explanation
from constraints.explain import explain as explain
from constraints.formula import Formula as Formula
from constraints.formula import always as always
from constraints.formula import conjunction as conjunction
from constraints.formula import count as count
from constraints.formula import disjunction as disjunction
from constraints.formula import eventually as eventually
from constraints.formula import exists as exists
from constraints.formula import forall as forall
from constraints.formula import historically as historically
from constraints.formula import iff as iff
from constraints.formula import implies as implies
from constraints.formula import instances_of as instances_of
from constraints.formula import once as once
from constraints.formula import one_of as one_of
from constraints.functions import Classifier as Classifier
from constraints.functions import Function as Function
from constraints.images import box as box
from constraints.images import region_from_text as region_from_text
from constraints.images import standard_regions as standard_regions
from constraints.language import parse as parse
from constraints.lowered import Warp as Warp
from constraints.program import Program as Program
from constraints.program import compile as compile
from constraints.semantics import Boolean as Boolean
from constraints.semantics import LogLTN as LogLTN
from constraints.semantics import LogProbabilistic as LogProbabilistic
from constraints.semantics import Robustness as Robustness
from constraints.signals import Layout as Layout
from constraints.signals import Signal as Signal
from constraints.terms import call as call
from constraints.terms import end as end
from constraints.terms import maximum as maximum
from constraints.terms import minimum as minimum
from constraints.terms import now as now
from constraints.terms import signals as signals
from constraints.terms import time as time
from constraints.warps import warped as warped
