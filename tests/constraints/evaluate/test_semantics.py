"""Laws of the semantics: duality, signs, limits, gradients, and what the settings do."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import logsigmoid

from constraints import (
    Boolean,
    Formula,
    FormulaError,
    Layout,
    LogLTN,
    LogProbabilistic,
    Robustness,
    Signal,
    compiled,
    parse,
    signals,
)
from constraints.ast import build
from constraints.ast import formulas as f
from constraints.compile.lower import lower
from constraints.compile.resolve import resolve
from constraints.evaluate.semantics import Semantics
from tests.constraints.random_formulas import NAMES, STEPS, formulas, random_formula

LAYOUT = Layout.series(NAMES, STEPS)
WHOLE = Layout.series("n", 3, integer=True)
SOFT: list[Semantics] = [
    LogProbabilistic(),
    LogProbabilistic(k=3.0, steps="mean"),
    LogLTN(k=3.0, alpha=2.0),
    LogProbabilistic(k=2.0, gaussian=0.5),
]
LAWS = settings(
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
HARD = LogProbabilistic(k=1e4)
some = formulas(depth=2, reach="clip")


def normal(seed: int = 0, batch: int = 3) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(len(NAMES), batch, STEPS, generator=generator, dtype=torch.float64)
    return dict(zip(NAMES, values, strict=True))


def value(formula: Formula | str, data: dict[str, Tensor], semantics: Semantics) -> Tensor:
    made = parse(formula) if isinstance(formula, str) else formula
    return compiled(made, LAYOUT, "clip")(data, semantics)


def lowered(formula: Formula | str, layout: Layout = LAYOUT) -> Formula:
    made = parse(formula) if isinstance(formula, str) else formula
    return lower(resolve(made, layout, "clip"), layout)


DATA = normal()


# duality


DUALS: list[Callable[[Formula, Formula], tuple[Formula, Formula]]] = [
    lambda a, b: (~(a & b), ~a | ~b),
    lambda a, b: (~(a | b), ~a & ~b),
    lambda a, b: (~~a, a),
    lambda a, b: (a.implies(b), ~a | b),
    lambda a, b: (~a.implies(b), a & ~b),
    lambda a, b: (~a.iff(b), a ^ b),
    lambda a, b: (a.iff(b), (a & b) | (~a & ~b)),
    lambda a, b: (~build.always(a, 0, 2), build.eventually(~a, 0, 2)),
    lambda a, b: (~build.once(a), build.historically(~a)),
    lambda a, b: (~a.until(b, 0, 3), (~a).release(~b, 0, 3)),
    lambda a, b: (~a.since(b), f.Until("forall", ~a, ~b, past=True)),
    lambda a, b: (
        ~f.Quantifier("forall", "now", None, None, a),
        f.Quantifier("exists", "now", None, None, ~a),
    ),
    lambda a, b: (~a.given(k=2.0, weight=3.0), (~a).given(k=2.0, weight=3.0)),
]


@LAWS
@given(some, some, st.sampled_from(DUALS))
def test_connectives_and_quantifiers_obey_de_morgan(
    a: Formula, b: Formula, dual: Callable[..., tuple[Formula, Formula]]
) -> None:
    left, right = dual(a, b)
    try:
        one = compiled(left, LAYOUT, "clip")
    except FormulaError:  # under a quantifier over all steps it may read past the last
        with pytest.raises(FormulaError):
            compiled(right, LAYOUT, "clip")
        return
    other = compiled(right, LAYOUT, "clip")
    assert one.lowered == other.lowered
    for semantics in (Boolean(), Robustness(), SOFT[0]):
        assert one(DATA, semantics).equal(other(DATA, semantics))


@LAWS
@given(some)
def test_negation_flips_verdict_and_margin(formula: Formula) -> None:
    data = normal(1)
    assert value(~formula, data, Boolean()).equal(~value(formula, data, Boolean()))
    torch.testing.assert_close(
        value(~formula, data, Robustness()), -value(formula, data, Robustness())
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("max(x) <= 2", "forall t: x(t) <= 2"),
        ("min(x, 1, 3) <= 2", "exists t in [1, 3]: x(t) <= 2"),
        ("2 > abs(x(1))", "x(1) < 2 and x(1) > -2"),
        ("abs(x(1)) >= 2", "x(1) >= 2 or x(1) <= -2"),
        ("x(0) <= min(y(0), z(0))", "x(0) <= y(0) and x(0) <= z(0)"),
        ("-1 <= x(0) <= 2", "x(0) >= -1 and x(0) <= 2"),
        ("x(0) in [-1, 2]", "-1 <= x(0) <= 2"),
        ("2 * x(0) - y(0) <= 3 + y(0)", "2 * x(0) - 2 * y(0) - 3 <= 0"),
        ("forall t: x(t) <= 1 and y(t) <= 1", "(forall t: x(t) <= 1) and (forall u: y(u) <= 1)"),
        ("next(always[0,2](x <= 1))", "eventually[1,1](forall t in [now, now + 2]: x(t) <= 1)"),
    ],
)
def test_equivalent_formulas_lower_to_the_same_form(left: str, right: str) -> None:
    assert lowered(left) == lowered(right)


# signs and limits


@LAWS
@given(some)
def test_soft_values_are_at_most_0(formula: Formula) -> None:
    for semantics in SOFT:
        assert bool((value(formula, normal(2), semantics) <= 1e-12).all())


@LAWS
@given(some)
def test_the_verdict_is_the_sign_of_the_margin(formula: Formula) -> None:
    data = normal(3)
    margin = value(formula, data, Robustness())
    clear = margin.abs() > 1e-9
    assert value(formula, data, Boolean())[clear].equal(margin[clear] > 0)


@pytest.mark.parametrize(
    ("text", "verdicts"),  # of x(0) = 0, 1, 2
    [
        ("x(0) <= 1", [True, True, False]),
        ("x(0) < 1", [True, False, False]),
        ("x(0) >= 1", [False, True, True]),
        ("x(0) > 1", [False, False, True]),
        ("x(0) = 1", [False, True, False]),
        ("x(0) != 1", [True, False, True]),
        ("0 < x(0) <= 2", [False, True, True]),
        ("0 < x(0) < 2", [False, True, False]),
        ("abs(x(0) - 1) < 1", [False, True, False]),
        ("max(x) > 1", [False, False, True]),
        ("argmax(x) <= 6", [True, True, True]),
        ("argmax(x) > 0", [False, False, False]),  # the first of equals
    ],
)
def test_bounds_belong_to_an_inequality_unless_it_is_strict(
    text: str, verdicts: list[bool]
) -> None:
    data = {name: torch.tensor([[0.0], [1.0], [2.0]]).expand(-1, STEPS) for name in NAMES}
    assert value(text, data, Boolean()).tolist() == verdicts
    assert value(f"not ({text})", data, Boolean()).tolist() == [not each for each in verdicts]


def test_the_hard_limit_is_the_indicator() -> None:
    checked = 0
    for seed in range(150):
        formula = random_formula(Random(seed), reach="clip", annotated=False, constants=False)
        program, data = compiled(formula, LAYOUT, "clip"), normal(seed)
        margin, soft = program.robustness(data), program(data, HARD)
        clear = margin.abs() > 1e-2
        verdict = program.verdict(data)[clear]
        assert bool((soft[clear][verdict] > -1e-9).all()), formula
        assert bool((soft[clear][~verdict] < -10).all()), formula
        checked += len(verdict)
    assert checked > 200


def test_a_harder_atom_moves_towards_its_verdict() -> None:
    data = normal(4)
    x = data["x"][:, 0]
    previous = value("x(0) >= 0", data, LogProbabilistic(k=0.1))
    for k in (0.5, 1.0, 5.0, 50.0):
        current = value("x(0) >= 0", data, LogProbabilistic(k=k))
        assert bool(((current > previous) == (x > 0)).all())
        previous = current
    infinite = value("x(0) >= 0", data, LogProbabilistic(k=math.inf))
    assert infinite.tolist() == [0.0 if each >= 0 else -math.inf for each in x.tolist()]


# gradients


SMOOTH = [
    "forall t: x(t) <= y(t) + 0.3",
    "exists t: abs(x(t) - y(t)) <= 0.2",
    "always[0,3](x >= 0 implies eventually[1,4](y <= 0.5))",
    "x >= -0.3 until[1,5] y >= 0.7",
    "x >= 1 release y >= 0",
    "always[3,4](x <= 1 since y >= 0.2)",
    "forall t in [0, 5]: mean(x * y, t, t + 2) <= 0.3 and integral(z) >= 1",
    "count(x >= 0.5, 1, 6) >= 3",
    "x(0) = 0.5 and y(2) != 0.1 +- 0.2 and exp(z(1)) <= 2",
    "(x(3) >= 0) {k=2} and (exists t: y(t) ^ 2 >= 4) {weight=0.3}",
    "forall t: exists u in [0, t]: x(u) * y(t) >= 0.1",
    "delta(x)(3) <= 0.2 iff cumsum(y)(4) >= 1",
]


@pytest.mark.parametrize("text", SMOOTH)
@pytest.mark.parametrize("semantics", SOFT)
def test_gradients_against_finite_differences(text: str, semantics: Semantics) -> None:
    program = compiled(parse(text), LAYOUT)
    flat = LAYOUT.flatten(normal(5, batch=2)).requires_grad_()
    torch.manual_seed(0)  # of the directions that the fast mode checks
    assert torch.autograd.gradcheck(
        lambda x: program(x, semantics), (flat,), atol=1e-5, rtol=1e-4, fast_mode=True
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("text", ["exists t: x(t) >= 0", "x(0) >= 0 or x(1) >= 0 or x(2) >= 0"])
def test_gradients_stay_finite_far_from_satisfaction(text: str, dtype: torch.dtype) -> None:
    layout = Layout.series("x", 3)
    scale = torch.tensor([-1e3, -30.0, -4.1, -1.0, -1e-3, 0.0, 1e-3, 1.0, 4.0, 1e3], dtype=dtype)
    for semantics in (LogProbabilistic(), LogProbabilistic(steps="mean"), LogLTN()):
        x = torch.cartesian_prod(scale, scale, scale).requires_grad_()
        found = compiled(parse(text), layout)({"x": x}, semantics)
        assert bool((found <= 1e-6).all())
        gradient = torch.autograd.grad(found.sum(), x)[0]
        assert bool(torch.isfinite(gradient).all())
        far = x.detach().amax(1) < -1
        assert bool((gradient[far].amax(1) > 0).all())  # something still pulls


# settings


def test_means_over_steps_divide_sums() -> None:
    data = normal(6)
    text = "forall t in [1, 5]: x(t) <= y(t)"
    summed, mean = (value(text, data, LogProbabilistic(steps=each)) for each in ("sum", "mean"))
    torch.testing.assert_close(mean, summed / 5)


def test_alpha_runs_from_the_mean_to_the_maximum() -> None:
    data = normal(7)
    atoms = logsigmoid(10 * (data["x"] - 1))
    text = "exists t: x(t) >= 1"
    exact = ((2 * atoms).exp().mean(1)).log() / 2
    torch.testing.assert_close(value(text, data, LogLTN(alpha=2.0)), exact)
    near_max = value(text, data, LogLTN(alpha=1e4))
    torch.testing.assert_close(near_max, atoms.amax(1), rtol=0, atol=1e-3)
    near_mean = value(text, data, LogLTN(alpha=1e-6))
    torch.testing.assert_close(near_mean, atoms.mean(1), rtol=1e-4, atol=1e-4)
    every = value("forall t: x(t) >= 1", data, LogLTN())
    torch.testing.assert_close(every, atoms.mean(1))
    torch.testing.assert_close(
        value("forall t: x(t) >= 1", data, LogLTN(steps="sum")), atoms.sum(1)
    )


def test_annotations_set_hardness_and_weight() -> None:
    data = normal(8)
    x, y = data["x"][:, 0], data["y"][:, 0]
    soft = LogProbabilistic(k=10.0)
    torch.testing.assert_close(value("(x(0) >= 1) {k=3}", data, soft), logsigmoid(3 * (x - 1)))
    both = value("(x(0) >= 1 and (y(0) <= 0) {k=2}) {k=3, weight=0.5}", data, soft)
    torch.testing.assert_close(both, 0.5 * (logsigmoid(3 * (x - 1)) + logsigmoid(-2 * y)))
    plain, weighted = "x(0) >= 1 or y(0) <= 0", "(x(0) >= 1) {k=3} or (y(0) <= 0) {weight=9}"
    for semantics in (Boolean(), Robustness()):
        assert value(plain, data, semantics).equal(value(weighted, data, semantics))
    counted = value("count((x >= 1) {k=3}) >= 2", data, soft)
    total = torch.sigmoid(3 * (data["x"] - 1)).sum(1)
    torch.testing.assert_close(counted, logsigmoid(10 * (total - 2)))


def test_a_gaussian_equality_is_a_quadratic_penalty() -> None:
    data = normal(9)
    x = data["x"][:, 0]
    gaussian = LogProbabilistic(gaussian=4.0)
    torch.testing.assert_close(value("x(0) = 0.5", data, gaussian), -4 * (x - 0.5) ** 2)
    torch.testing.assert_close(value("x(0) = 0.5", data, LogLTN(gaussian=4.0)), -4 * (x - 0.5) ** 2)
    inequality = value("x(0) <= 0.5", data, gaussian)
    torch.testing.assert_close(inequality, logsigmoid(10 * (0.5 - x)))
    plain = logsigmoid(10 * (x - 0.5)) + logsigmoid(10 * (0.5 - x))
    torch.testing.assert_close(value("x(0) = 0.5", data, LogProbabilistic()), plain)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("n(0) <= 4", -math.inf, 4.5),
        ("n(0) < 4", -math.inf, 3.5),
        ("n(0) > 4.2", 4.5, math.inf),
        ("n(0) = 4", 3.5, 4.5),
        ("2 <= n(0) < 5", 1.5, 4.5),
        ("n(0) <= 4.7", -math.inf, 4.5),
    ],
)
def test_half_unit_widens_integer_atoms_by_one_half(text: str, low: float, high: float) -> None:
    n = torch.tensor([[3.0, 0, 0], [4, 0, 0], [5, 0, 0], [2.2, 0, 0]], dtype=torch.float64)
    wanted = logsigmoid(10 * (n[:, 0] - low)) + logsigmoid(10 * (high - n[:, 0]))
    program = compiled(parse(text), WHOLE)
    torch.testing.assert_close(program({"n": n}, LogProbabilistic(half_unit=True)), wanted)
    hard = program({"n": n[:3]}, LogProbabilistic(k=1e4, half_unit=True))
    assert (hard > -1).equal(program.verdict({"n": n[:3]}))


def test_equalities_of_real_data_have_a_default_tolerance() -> None:
    real = Signal("a", "column", low=0.0, high=50.0), Signal("b", "column")
    bounded = Layout((*real, Signal("d", "column", span=500.0)))
    whole = Layout((Signal("c", "column", integer=True),))
    for text, layout, name, inside, outside in [
        ("a = 20", bounded, "a", 20.04, 20.06),  # a thousandth of the range
        ("b = 20", bounded, "b", 20.000019, 20.000021),  # a millionth of the value: rounding
        ("d = 20", bounded, "d", 20.4, 20.6),  # a thousandth of the data's span
        ("c ^ 2 = 400", whole, "c", 20.0, 21.0),
        ("b = 20 +- 3", bounded, "b", 22.9, 23.1),
        ("b = 20 +- 0", bounded, "b", 20.0, 20.0001),
        ("c = 20", whole, "c", 20.0, 21.0),
    ]:
        both = {name: torch.tensor([inside, outside], dtype=torch.float64)}
        data = {**{s.name: both[name] for s in layout.signals}, **both}
        assert compiled(parse(text), layout).verdict(data).tolist() == [True, False], text
        opposite = parse(text.replace("=", "!="))
        assert compiled(opposite, layout).verdict(data).tolist() == [False, True], text


def test_repetitions_count_once() -> None:
    data = normal(10)
    once, y = value("x(0) <= 1", data, LogProbabilistic()), "y(1) >= 0"
    for text in [
        "x(0) <= 1 and x(0) <= 1",
        "x(0) <= 1 and -x(0) >= -1",
        "x(0) <= 1 or x(0) <= 1",
        "forall t: x(0) <= 1",
        "exists t: forall u: x(0) <= 1",
        "(x(0) <= 1 and 2 > 1) or 1 > 2",
    ]:
        torch.testing.assert_close(value(text, data, LogProbabilistic()), once)
    split = value(f"forall t: x(0) <= 1 and {y}", data, LogProbabilistic())
    torch.testing.assert_close(split, once + value(y, data, LogProbabilistic()))


def test_formulas_and_terms_have_no_truth_value() -> None:
    x, y = signals("x y")
    for wrong in (lambda: bool(x[0] <= 1), lambda: 0 < x[0] < 1, lambda: not (x[0] <= 1)):
        with pytest.raises(TypeError, match="no truth value"):
            wrong()
    with pytest.raises(TypeError, match="compare it"):
        bool(x[0] + y[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: LogProbabilistic(k=0.0),
        lambda: LogProbabilistic(k=math.nan),
        lambda: LogProbabilistic(gaussian=-1.0),
        lambda: LogProbabilistic(steps="max"),
        lambda: LogLTN(alpha=0.0),
        lambda: LogLTN(k=math.inf),
        lambda: LogLTN(gaussian=0.0),
    ],
)
def test_settings_out_of_range_are_rejected(make: Callable[[], Semantics]) -> None:
    with pytest.raises(FormulaError, match=r"must be|unknown fold over steps"):
        make()


def test_counts_count_verdicts_not_margins() -> None:
    """At a strict bound the margin is 0, which alone would not say that it is not met."""
    x = {"x": torch.zeros(1, STEPS, dtype=torch.float64)}
    for text, margin in [("count(x > 0) >= 1", -1.0), ("count(x >= 0) >= 1", STEPS - 1.0)]:
        program = compiled(parse(text), LAYOUT)
        data = {**x, "y": x["x"], "z": x["x"]}
        assert program.robustness(data).item() == margin
        assert program.verdict(data).item() == (margin >= 0)


def test_a_small_integral_after_a_large_one_keeps_its_precision() -> None:
    layout = Layout.series("y", 2000)
    y = torch.cat([torch.full((1, 1000), 1e6), torch.full((1, 1000), 0.1)], 1)
    assert compiled(parse("integral(y, 1500, 1510) = 1 +- 0.01"), layout).verdict({"y": y}).all()
