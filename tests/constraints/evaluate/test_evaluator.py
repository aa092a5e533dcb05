"""Evaluation against the plain-Python reference, on random formulas and on chosen ones."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from torch import Tensor

from constraints import (
    Boolean,
    DataError,
    Formula,
    FormulaError,
    Function,
    Layout,
    LogLTN,
    LogProbabilistic,
    Robustness,
    Signal,
    compiled,
    eventually,
    parse,
)
from constraints.ast.formulas import And, Or
from constraints.ast.walk import descend
from constraints.evaluate.semantics import Semantics
from tests.constraints import reference_evaluator as reference
from tests.constraints.random_formulas import NAMES, STEPS, formulas, random_formula
from tests.constraints.reference_evaluator import Logic, Reference

LAYOUT = Layout.series(NAMES, STEPS)
HARDNESS = 3.0
LOGICS: dict[str, tuple[Semantics, Logic]] = {
    "boolean": (Boolean(), reference.BOOLEAN),
    "robustness": (Robustness(), reference.ROBUSTNESS),
    "sum": (LogProbabilistic(HARDNESS), reference.probabilistic(HARDNESS)),
    "mean": (LogProbabilistic(HARDNESS, "mean"), reference.probabilistic(HARDNESS, "mean")),
}
AVERAGED: dict[str, tuple[Semantics, Logic]] = {
    "averaged": (LogLTN(HARDNESS, alpha=2.0), reference.averaged(HARDNESS, 2.0))
}
REACHES = [("inside", None), ("clip", "clip"), ("beyond", "weak"), ("beyond", "strong")]
SLOW = settings(
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def normal(seed: int, batch: int = 2, steps: int = STEPS) -> dict[str, Tensor]:
    """Series x, y, z of shape (batch, steps)."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(len(NAMES), batch, steps, generator=generator, dtype=torch.float64)
    return dict(zip(NAMES, values, strict=True))


def close(got: float | bool, wanted: float | bool) -> bool:
    """Equal to rounding; all that is false beyond doubt is the same."""
    if isinstance(wanted, bool) or math.isinf(wanted):
        return got == wanted or (got < -4e3 and wanted < 0)
    return abs(got - wanted) <= 1e-9 * max(1.0, abs(wanted)) or max(got, wanted) < -4e3


def assert_agrees(
    formula: Formula,
    data: dict[str, Tensor],
    end: str | None,
    trace: bool = False,
    logics: dict[str, tuple[Semantics, Logic]] = LOGICS,
) -> None:
    """The library and the reference have the same value for every sample and logic."""
    program = compiled(formula, LAYOUT, end, trace=trace)
    for name, (semantics, logic) in logics.items():
        value = program.trace(data, semantics, end or "clip") if trace else program(data, semantics)
        for sample, row in enumerate(value.reshape(len(value), -1).tolist()):
            series = {key: data[key][sample].tolist() for key in data}
            found = Reference(formula, series, logic, end)
            wanted = found.trace() if trace else [found.value()]
            for now, (got, expected) in enumerate(zip(row, wanted, strict=True)):
                assert close(got, expected), (
                    f"{name}, end={end}, sample {sample}, step {now}: {got} in place of "
                    f"{expected} for {formula}"
                )


@pytest.mark.parametrize(("reach", "end"), REACHES)
@pytest.mark.parametrize("block", range(4))
def test_random_formulas_at_step_0_equal_the_reference(
    reach: str, end: str | None, block: int
) -> None:
    for seed in range(40 * block, 40 * block + 40):
        assert_agrees(random_formula(Random(seed), reach=reach), normal(seed), end)


@pytest.mark.parametrize(("reach", "end"), [("inside", "clip"), *REACHES[1:]])
@pytest.mark.parametrize("block", range(4))
def test_random_formulas_at_every_step_equal_the_reference(
    reach: str, end: str, block: int
) -> None:
    for seed in range(40 * block, 40 * block + 40):
        formula = random_formula(Random(seed), reach=reach, trace=True)
        assert_agrees(formula, normal(seed, batch=1), end, trace=True)


@pytest.mark.parametrize(("reach", "end"), [("inside", "clip"), ("clip", "clip")])
def test_random_formulas_with_means_over_steps(reach: str, end: str) -> None:
    for seed in range(100):
        formula = random_formula(Random(seed), reach=reach, trace=True, constants=False)
        assert_agrees(formula, normal(seed, batch=1), end, trace=True, logics=AVERAGED)


def repeats(formula: Formula) -> bool:
    """Whether something is said twice at one place, which counts once to the library."""
    operands = [node.children() for node in descend(formula) if isinstance(node, (And, Or))]
    return any(len(set(each)) < len(each) for each in map(list, operands))


@SLOW
@given(formulas(reach="clip"))
def test_hypothesis_formulas_at_step_0_equal_the_reference(formula: Formula) -> None:
    assume(not repeats(formula))
    assert_agrees(formula, normal(0), "clip")


@SLOW
@given(formulas(reach="clip", trace=True))
def test_hypothesis_formulas_at_every_step_equal_the_reference(formula: Formula) -> None:
    assume(not repeats(formula))
    assert_agrees(formula, normal(1, batch=1), "clip", trace=True)


@pytest.mark.parametrize(
    "text",
    [
        "forall t in [0, 4]: exists u in [t, t + 3]: x(u) >= y(t) + 0.2",
        "forall t: exists u in [t, end]: forall v in [t, u]: x(v) + y(u) <= z(t) + 1",
        "exists t in [2, 5]: forall u in [t - 2, t + 2]: abs(x(u) - x(t)) <= 1.5",
        "forall t in [1, end]: exists u in [0, t - 1]: x(u) < x(t)",
        "exists u: forall v in [u + 1, end]: x(v) <= x(u)",
        "forall t in [0, 5]: mean(x * y, t, t + 2) <= max(z, t, t + 2)",
        "forall t: count(x >= x(t)) >= 2",
        "exists t in [1, 6]: max(x, t - 1, t + 1) - min(x, t - 1, t + 1) <= 1",
        "forall t: exists u in [5, t]: y(0) >= 0.5",
        "forall t: exists u in [0, t]: y(t) >= 0.5",
        "exists t in [10, 20]: x(3) * t >= 12",
        "argmax(x) <= 3 and argmin(y, 2, 6) > 4 and argmax(z) != 2",
        "argmax(x) - argmin(x) >= 1 or 2 * argmax(x) <= 5",
        "max(x) - min(x) <= 4 and max(abs(x), 2, 5) < 1.5",
        "max(x) = 1.5 +- 0.5 or abs(y(3)) = 0.3",
        "integral(x * y) <= 1 and integral(x, 2, 6) >= mean(delta(y)) - sum(cumsum(z), 1, 3)",
        "always[0,3](x >= 0 implies eventually[1,4](y <= 0.5 since[0,1] z(now) > -1))",
        "(x + 2 * y)(3) >= z@4 or time(2) >= x(2) + 2",
        "eventually[0,2](exists t in [1, 3]: x(t) <= y until[0,2] z >= x(t - 1))",
    ],
)
def test_selected_formulas_equal_the_reference(text: str) -> None:
    formula = parse(text)
    for seed in range(4):
        data = {**normal(seed), "time": torch.arange(STEPS).double().expand(2, -1)}
        assert_agrees(formula, data, None)


@pytest.mark.parametrize("end", ["clip", "weak", "strong"])
@pytest.mark.parametrize(
    "text",
    [
        # windows that may be empty, or whose body does not change with the variable
        "exists v in [now - 1, end - 3]: z = -1.7 +- 0",
        "count(forall u in [end, now + 4]: z <= -1.6) >= 2",
        "always[1,1](mean(x) >= 0.8) or eventually[1,1](x(0) > 0)",
        "forall now in [end - 2, end]: always[2,3](y > 1.8)",
        "exists now in [1, 3]: once(forall u in [now, now + 3]: sum(y, 3, 7) < 0)",
        "historically[1,2](false) and eventually[1,2](true)",
        "eventually[0,0](forall now in [0, now - 1]: true iff z >= max(y, abs(x)))",
        # operators that look beyond the grid before they are cut to it
        "true until[3,7] x <= 0.3",
        "exists now in [now, 1]: (exists t in [end - 3, now - 1]: y(t + 1) > 1) release[2,4] y < z",
        "eventually[1,3](x >= 0 since[2,end] y >= mean(z, 2, 5))",
        "once[3,3](abs(z) < 1.3 release[2,end] y < -0.1)",
        "eventually[3,5](x < 0.5 trigger[1,end] z > 0.2)",
    ],
)
def test_windows_at_the_edges_of_the_grid(text: str, end: str) -> None:
    assert_agrees(parse(text), normal(7, batch=1), end, trace=True)


def test_aggregates_over_clipped_windows() -> None:
    for text in [
        "argmax(2 * z, now - 1, now + 1) > 3",
        "argmin(z, now - 3, now) <= now - 1",
        "true until[3,7] mean(z, now - 2, now) <= 0.3",
        "max(x, now - 2, now) - min(y, now, now + 3) <= integral(z, now - 1, now + 2)",
    ]:
        assert_agrees(parse(text), normal(8), "clip", trace=True)
    inside = parse("eventually[1,3](x >= 0 since[2,end] y >= mean(z, now, now + 3))")
    for end in ("clip", "weak", "strong"):
        assert_agrees(inside, normal(9), end)


@pytest.mark.parametrize(
    ("text", "clipped", "weak", "strong"),
    [
        ("always[5,9](x <= 0)", True, True, False),
        ("eventually[5,9](x > 0)", False, True, False),
        ("not always[5,9](x <= 0)", False, True, False),
        ("forall t in [-2, 2]: x(t) <= 0", True, True, False),
        ("x <= 0 until[0,9] x > 0", False, True, False),
    ],
)
def test_atoms_outside_the_grid_are_met_or_not_by_the_end_rule(
    text: str, clipped: bool, weak: bool, strong: bool
) -> None:
    data = {"x": -torch.ones(1, STEPS)}
    layout = Layout.series("x", STEPS)
    for end, wanted in (("clip", clipped), ("weak", weak), ("strong", strong)):
        assert compiled(parse(text), layout, end).verdict(data).item() == wanted, end
    with pytest.raises(FormulaError, match=r"past the last step|before the first step"):
        compiled(parse(text), layout)


def test_a_trace_starts_with_the_value() -> None:
    for seed in range(60):
        formula = eventually(random_formula(Random(seed), reach="clip", trace=True), 0, 0)
        try:
            program, data = compiled(formula, LAYOUT, "clip"), normal(seed)
        except FormulaError as problem:  # once[1,2] has a trace but no value at step 0
            assert "is empty" in str(problem)  # noqa: PT017
            continue
        for semantics, _ in LOGICS.values():
            first = program.trace(data, semantics, "clip")[:, 0]
            torch.testing.assert_close(program(data, semantics), first)


def test_samples_of_a_batch_are_independent() -> None:
    for seed in range(60):
        formula = random_formula(Random(seed), reach="clip")
        program, data = compiled(formula, LAYOUT, "clip"), normal(seed, batch=3)
        for semantics, _ in LOGICS.values():
            together = program(data, semantics)
            apart = [
                program({k: v[i : i + 1] for k, v in data.items()}, semantics) for i in range(3)
            ]
            torch.testing.assert_close(together, torch.cat(apart))


def test_single_precision_is_close_to_double() -> None:
    for seed in range(60):
        formula = random_formula(Random(seed), reach="clip", depth=2)
        program, data = compiled(formula, LAYOUT, "clip"), normal(seed)
        single = {name: value.float() for name, value in data.items()}
        for semantics in (LogProbabilistic(HARDNESS), Robustness()):
            value = program(single, semantics)
            assert value.dtype == torch.float32
            exact = program({name: value.double() for name, value in single.items()}, semantics)
            torch.testing.assert_close(value.double(), exact, rtol=1e-3, atol=1e-4)


def test_flat_samples_are_split_into_signals() -> None:
    data = normal(3, batch=4)
    formula = parse("forall t: x(t) <= y(t) + 3 and exists u: z(u) >= 1")
    program = compiled(formula, LAYOUT)
    flat = LAYOUT.flatten(data)
    assert flat.shape == (4, 3 * STEPS)
    torch.testing.assert_close(program(flat), program(data))


def test_instances_have_their_own_values() -> None:
    layout = Layout.columns("alcohol acidity", instances=2)
    alcohol = torch.tensor([[11.0, 12.5], [12.5, 11.0]], dtype=torch.float64)
    data = {"alcohol": alcohol, "acidity": alcohol.flip(1)}
    program = compiled(parse("alcohol[1] <= 12 and alcohol[2] >= acidity[2] + 1"), layout)
    assert program.verdict(data).tolist() == [True, False]
    torch.testing.assert_close(program.robustness(data), torch.tensor([0.5, -2.5]).double())
    torch.testing.assert_close(program(layout.flatten(data)), program(data))
    with pytest.raises(FormulaError, match="of which instance"):
        compiled(parse("alcohol <= 12"), layout)
    with pytest.raises(FormulaError, match="instance"):
        compiled(parse("alcohol[3] <= 12"), layout)


def test_instances_of_series() -> None:
    layout = Layout.series("x y", STEPS, instances=2)
    data = {name: torch.stack([normal(0)[name], normal(1)[name]], 1) for name in "xy"}
    program = compiled(parse("forall t: x[1](t) <= y[2](t) + 1"), layout)
    wanted = (data["y"][:, 1] + 1 - data["x"][:, 0]).amin(1)
    torch.testing.assert_close(program.robustness(data), wanted)
    mean = compiled(parse("mean(x[2], 1, 3) >= max(y[1])"), layout).robustness(data)
    torch.testing.assert_close(mean, data["x"][:, 1, 1:4].mean(1) - data["y"][:, 0].amax(1))


def test_categories_as_codes_and_as_weights() -> None:
    color = Signal("color", "category", (3,), categories=("red", "green", "blue"))
    layout = Layout((color, Signal("size", "column")))
    weights = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], dtype=torch.float64)
    size = torch.tensor([1.0, 2.0], dtype=torch.float64)
    data = {"color": weights, "size": size}
    red = compiled(parse("color = red"), layout)
    assert red.verdict(data).tolist() == [True, False]
    soft = torch.nn.functional.logsigmoid(10 * (weights[:, 0] - 0.5))
    torch.testing.assert_close(red(data), soft)
    other = compiled(parse("color != red and size >= 1.5"), layout)
    assert other.verdict(data).tolist() == [False, True]
    member = compiled(parse("color in {red, blue}"), layout)
    codes = {"color": torch.tensor([0, 2, 1]), "size": torch.zeros(3)}
    assert member.verdict(codes).tolist() == [True, True, False]
    with pytest.raises(FormulaError, match=r'no order .*; write color = "red"'):
        compiled(parse("color <= red"), layout)
    with pytest.raises(FormulaError, match="did you mean 'green'"):
        compiled(parse("color = gren"), layout)
    with pytest.raises(DataError, match=r"holds the code 3 .*\(have: 0 \w+, 1 "):
        member.verdict({"color": torch.tensor([3]), "size": torch.zeros(1)})


def test_parameters_stand_for_their_numbers() -> None:
    layout = Layout.series(NAMES, STEPS, parameters={"limit": 1.25, "n": 2})
    data = normal(5)
    named = compiled(parse("forall t: n * x(t) <= limit + y(t)"), layout)
    spelt = compiled(parse("forall t: 2 * x(t) <= 1.25 + y(t)"), layout)
    assert named.lowered == spelt.lowered
    torch.testing.assert_close(named(data), spelt(data))


def test_regions_of_images() -> None:
    mask = torch.tensor([[True, True, True], [False, False, True]])
    layout = Layout.image((2, 2, 3), regions={"upper": mask})
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(4, 2, 2, 3, generator=generator, dtype=torch.float64)
    data, inside = {"image": image}, image[:, :, mask].reshape(4, -1)  # (4, 8)

    def soft(x: Tensor) -> Tensor:
        return torch.nn.functional.logsigmoid(10 * x)

    every = compiled(parse("forall p in upper: image(p) >= 0.5"), layout)
    torch.testing.assert_close(every(data), soft(inside - 0.5).sum(1))
    torch.testing.assert_close(every.robustness(data), (inside - 0.5).amin(1))
    some = compiled(parse("exists p: image(p) >= 0.9"), layout)
    assert some.verdict(data).equal((image >= 0.9).flatten(1).any(1))
    mean = compiled(parse("mean(image, upper) >= 0.4"), layout)
    torch.testing.assert_close(mean(data), soft(inside.mean(1) - 0.4))
    whole = compiled(parse("mean(image) <= 0.6 and max(image, upper) <= 0.9"), layout)
    parts = soft(0.6 - image.flatten(1).mean(1)) + soft(0.9 - inside).sum(1)
    torch.testing.assert_close(whole(data), parts)
    above = compiled(parse("forall p in upper: image(p) <= mean(image) + 0.3"), layout)
    margin = (image.flatten(1).mean(1)[:, None] + 0.3 - inside).amin(1)
    torch.testing.assert_close(above.robustness(data), margin)
    pairs = compiled(parse("forall p in upper: exists q: image(q) >= image(p) + 0.1"), layout)
    far = image.flatten(1).amax(1)[:, None] - inside - 0.1
    torch.testing.assert_close(pairs.robustness(data), far.amin(1))


def test_functions_of_the_layout() -> None:
    def rate(x: Tensor, y: Tensor) -> Tensor:
        return x * y

    def spread(series: Tensor) -> Tensor:
        return series.amax(-1) - series.amin(-1)

    def reverse(series: Tensor) -> Tensor:
        return series.flip(-1)

    functions = {
        "rate": Function(rate, 2),
        "spread": Function(spread, 1, whole=True),
        "reverse": Function(reverse, 1, whole=True, returns="series"),
    }
    layout = replace(LAYOUT, functions=functions)
    data = normal(6)
    x, y = data["x"], data["y"]
    for text, wanted in [
        ("forall t: rate(x(t), y(t)) <= 1", (1 - x * y).amin(1)),
        ("spread(x) >= 2", spread(x) - 2),
        ("always(reverse(x) <= y + 1)", (y + 1 - x.flip(1)).amin(1)),
        ("exists t in [1, 3]: reverse(x)(t) >= y(t)", (x.flip(1) - y)[:, 1:4].amax(1)),
    ]:
        torch.testing.assert_close(compiled(parse(text), layout).robustness(data), wanted)
    with pytest.raises(FormulaError, match="takes 2 argument"):
        compiled(parse("rate(x(0)) <= 1"), layout)
