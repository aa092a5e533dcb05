"""Formulas about images: pixels, regions, operators, pictures, and the equations they are."""

import copy
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Normal

from constraints import (
    FormulaError,
    Function,
    ImpossibleError,
    Layout,
    LogLTN,
    LogProbabilistic,
    compiled,
    parse,
    signals,
)
from constraints.gaussian.equations import Equations, split
from constraints.gaussian.expectation import log_expectation
from constraints.layout.image_operators import (
    blur,
    downsample,
    mirror,
    standard_regions,
)
from constraints.prove.contradictions import refuse_impossible

GREY = Layout.image((1, 4, 6))
COLOUR = Layout.image((3, 4, 6))


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X, RGB = drawn(5, 1, 4, 6), drawn(5, 3, 4, 6)


def margin(text: str, layout: Layout, image: Tensor) -> Tensor:
    return compiled(text, layout).robustness({"image": image})


def test_one_pixel_is_read_by_row_and_column() -> None:
    assert margin("image(3, 4) >= 0.5", GREY, X).equal(X[:, 0, 3, 4] - 0.5)
    assert margin("pixel(image, 3, 4) >= 0.5", GREY, X).equal(X[:, 0, 3, 4] - 0.5)
    assert margin("red(image)(0, 5) <= 0.5", COLOUR, RGB).equal(0.5 - RGB[:, 0, 0, 5])
    image = signals("image")
    for formula in (image[3, 4] >= 0.5, image(3, 4) >= 0.5):
        assert compiled(formula, GREY).robustness({"image": X}).equal(X[:, 0, 3, 4] - 0.5)


def test_rows_and_columns_may_be_bound_variables() -> None:
    found = margin("forall r in [0, 3]: image(r, 3 - r) >= 0.2", GREY, X)
    assert found.equal((X[:, 0, range(4), [3, 2, 1, 0]] - 0.2).amin(1))
    table = "exists r in [0, 3]: forall c in [r, r + 2]: image(r, c) >= 0.3"
    rows = torch.stack([X[:, 0, r, r : r + 3].amin(1) for r in range(4)], 1)
    assert margin(table, GREY, X).equal(rows.amax(1) - 0.3)


def test_quantifiers_over_channels_and_regions() -> None:
    found = margin("mean(red(image), upper) >= mean(blue(image), lower)", COLOUR, RGB)
    torch.testing.assert_close(found, RGB[:, 0, :2].mean((1, 2)) - RGB[:, 2, 2:].mean((1, 2)))
    found = margin("forall p in left: green(image)(p) >= 0.2", COLOUR, RGB)
    assert found.equal(RGB[:, 1, :, :3].flatten(1).amin(1) - 0.2)
    found = margin("max(red(image), right) <= 0.9", COLOUR, RGB)
    assert found.equal(0.9 - RGB[:, 0, :, 3:].flatten(1).amax(1))
    every = margin("forall p in upper: image(p) >= 0.1", COLOUR, RGB)  # in every channel
    assert every.equal(RGB[:, :, :2].flatten(1).amin(1) - 0.1)


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(("upper lower", "left right")))
def test_halves_average_to_the_whole(height: int, width: int, halves: str) -> None:
    layout = Layout.image((1, 2 * height, 2 * width))
    one, other = halves.split()
    text = f"mean({one}) + mean({other}) = 2 * mean(image) +- 0.000001"
    assert compiled(text, layout).verdict({"image": drawn(3, 1, 2 * height, 2 * width)}).all()


def test_given_regions_override_standard_ones() -> None:
    mask = torch.zeros(4, 6, dtype=torch.bool)
    mask[3, 5] = True
    layout = Layout.image((1, 4, 6), regions={"upper": mask, "dot": ~mask})
    torch.testing.assert_close(margin("mean(upper) >= 0", layout, X), X[:, 0, 3, 5])
    torch.testing.assert_close(margin("sum(dot) >= 0", layout, X), X.sum((1, 2, 3)) - X[:, 0, 3, 5])
    for given_regions in ({}, standard_regions(4, 4)):  # standard regions exist at any size
        square = Layout.image((1, 4, 4), regions=given_regions)
        small = margin("mean(downsample(image), left) >= 0", square, X[..., :4])
        torch.testing.assert_close(small, X[:, 0, :, :2].mean((1, 2)))
    with pytest.raises(FormulaError, match="the region dot has 4x6 pixels, the image 2x3"):
        compiled("mean(downsample(image), dot) >= 0", layout)


def test_operators_compose() -> None:
    found = margin("mean(downsample(blur(image, 0.7)), upper) >= 0.5", GREY, X)
    inside = downsample(blur(X, 0.7))[:, 0, :1].mean((1, 2))
    torch.testing.assert_close(found, inside - 0.5)
    found = margin("mean(abs(blur(image) - mean(image))) <= 0.5", GREY, X)
    torch.testing.assert_close(found, 0.5 - (blur(X) - X.mean((2, 3), True)).abs().mean((1, 2, 3)))
    found = margin("forall p: (image - mirror(image))(p) <= 0.5", GREY, X)
    torch.testing.assert_close(found, 0.5 - (X - mirror(X)).flatten(1).amax(1))
    torch.testing.assert_close(
        margin("mean(blur(image - mirror(image)), left) >= 0", GREY, X),
        blur(X - mirror(X))[..., :3].mean((1, 2, 3)),
    )
    found = margin("sum(masked(image, upper)) >= 1", GREY, X)
    torch.testing.assert_close(found, X[:, :, :2].sum((1, 2, 3)) - 1)


def test_functions_of_a_user_are_operators_too() -> None:
    smear = Function(lambda x: x.roll(1, -1), 1, whole=True, returns="image", linear=True)
    layout = replace(GREY, functions={"smear": smear})
    assert margin("smear(image)(2, 0) >= 0", layout, X).equal(X[:, 0, 2, 5])
    equations, rest = split(compiled("forall p: smear(image)(p) = image(p)", layout))
    assert rest is None
    assert len(equations) == 24
    square = Function(torch.square, 1, whole=True, returns="image")
    nonlinear = replace(GREY, functions={"square": square})
    equations, rest = split(compiled("forall p: square(image)(p) = 0.25", nonlinear))
    assert len(equations) == 0
    assert rest is not None


def test_a_mirror_symmetry_can_be_stated() -> None:
    program = compiled("forall p: image(p) = mirror(image)(p)", GREY)
    same = (X + mirror(X)) / 2
    off = same.clone()
    off[2, 0, 1, 1] += 0.1
    assert program.verdict({"image": same}).all()
    assert program.verdict({"image": off}).tolist() == [True, True, False, True, True]


def test_pictures_are_constant_images() -> None:
    target = drawn(1, 4, 6, seed=3)
    known = drawn(4, 6, seed=4) > 0.5
    layout = Layout.image((1, 4, 6), regions={"known": known}, pictures={"target": target})
    program = compiled("forall p in known: image(p) = target(p)", layout)
    filled = torch.where(known, target, X)
    assert program.verdict({"image": filled}).all()
    assert not program.verdict({"image": X}).any()
    assert margin("mean(image) >= mean(target)", layout, X).shape == (5,)
    torch.testing.assert_close(
        margin("sum(image * target) >= 0", layout, X), (X * target).sum((1, 2, 3))
    )
    for other in (copy.copy(layout), copy.deepcopy(layout), replace(layout, instances=2)):
        assert other.pictures["target"].equal(target)
        assert set(other.regions) == {"known"}


def solved(text: str, layout: Layout) -> Equations:
    equations, rest = split(compiled(text, layout))
    assert rest is None
    return equations


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("forall p: image(p) = mirror(image)(p)", 3 * 12),
        ("forall p: flip(image)(p) = rotate(mirror(image), 180)(p)", 0),
        ("forall p: blur(image, 0.6)(p) = target(p)", 72),
        ("forall p: downsample(image)(p) = small(p)", 18),
        ("forall p in left: image(p) = target(p)", 36),
        ("mean(red(image)) = 0.4", 1),
        ("red(image)(1, 2) = 0.3 and mean(grey(image), upper) = mean(blur(grey(image)), lower)", 2),
        ("sum(image * target) = 10", 1),
        ("mean(image) = 0.5 and -2 * sum(image) = -72", 1),
    ],
)
def test_equations_of_images_equal_the_formula(text: str, count: int) -> None:
    target = drawn(3, 4, 6, seed=3)
    layout = replace(COLOUR, pictures={"target": target, "small": drawn(3, 2, 3, seed=2)})
    program, found = compiled(text, layout), solved(text, layout)
    assert len(found) == count
    if not count:
        return
    start = drawn(4, 72, seed=5)
    middle = (found.low + found.high) / 2
    gap = middle - start @ found.rows.T
    on = start + gap @ torch.linalg.pinv(found.rows).T
    assert program.verdict(on).all()
    assert not program.verdict(start).any()
    step = torch.linalg.pinv(found.rows)[:, 0] * (found.high - found.low)[0]  # out of the first
    assert not program.verdict(on + step).any()


def test_too_many_pixels_are_not_turned_into_equations() -> None:
    _, rest = split(compiled("forall p: image(p) = mirror(image)(p)", Layout.image((3, 40, 40))))
    assert rest is not None


def test_an_equation_about_masked_pixels_is_impossible() -> None:
    with pytest.raises(ImpossibleError, match="masked"):
        split(compiled("forall p: masked(image, upper)(p) = 0.5", GREY))


def test_the_expectation_of_pixels_is_the_normal_probability() -> None:
    """Uncorrelated pixels: probabilities multiply; and regions are not taken for one another."""
    mean, deviation = drawn(3, 24), torch.linspace(0.1, 0.4, 24, dtype=torch.float64)
    spread = deviation.square().diag()
    below = Normal(0.0, 1.0).cdf((0.6 - mean) / deviation).log().reshape(3, 4, 6)
    hard = LogProbabilistic(k=float("inf"))
    for region, part in (
        ("upper", below[:, :2]),
        ("lower", below[:, 2:]),
        ("left", below[..., :3]),
    ):
        program = compiled(f"forall p in {region}: image(p) <= 0.6", GREY)
        torch.testing.assert_close(log_expectation(program, mean, spread, hard), part.sum((1, 2)))
    both = compiled(
        "(forall p in upper: image(p) <= 0.6) and forall p in lower: image(p) <= 0.6", GREY
    )
    torch.testing.assert_close(log_expectation(both, mean, spread, hard), below.sum((1, 2)))
    apart = log_expectation(compiled("mean(upper) >= mean(lower) + 0.1", GREY), mean, spread, hard)
    images = mean.reshape(3, 4, 6)
    gap = images[:, :2].mean((1, 2)) - images[:, 2:].mean((1, 2)) - 0.1
    torch.testing.assert_close(apart, Normal(0.0, 1.0).cdf(gap / (deviation.norm() / 12)).log())


def test_soft_values_have_gradients() -> None:
    x = X.clone().requires_grad_()
    for semantics in (LogProbabilistic(), LogLTN()):
        value = compiled("forall p: blur(image)(p) <= 0.4", GREY)({"image": x}, semantics)
        (slope,) = torch.autograd.grad(value.sum(), x)
        assert (slope < 0).all()


@pytest.mark.parametrize(
    "text",
    [
        "mean(image) >= 1.5",
        "image(3, 4) <= -1",
        "exists p: image(p) > 1",
        "(forall p in upper: image(p) <= 0.2) and mean(upper) >= 0.5",
        "sum(image) = 0 and image(0, 0) >= 0.5",
    ],
)
def test_contradictions_about_pixels_are_found(text: str) -> None:
    with pytest.raises(ImpossibleError):
        refuse_impossible(parse(text), GREY)


@pytest.mark.parametrize("text", ["mean(image) = 1", "forall p: image(p) = mirror(image)(p)"])
def test_satisfiable_formulas_about_pixels_are_not_refuted(text: str) -> None:
    refuse_impossible(parse(text), Layout.image((1, 28, 28)))


@pytest.mark.parametrize(
    "text",
    [
        "image(3, 4) >= 0.5",
        "pixel(image, 3, 4) >= 0.5",
        "red(image[1])(3, 4) >= 0.5",
        "forall p: red(image)(p) >= 0.2",
        "forall p in known: blur(image, 2)(p) = target(p)",
        "mean(red(image), upper) = 0.4",
        "forall r in [0, 3]: image(r, 3 - r) >= 0.2",
        "not class(image, 3)",
        'class(image, "trouser") and class(image[1], i)',
        "exists i in [1, 9]: class(image[1], i) and class(image[2], 10 - i)",
        "class(image, 3) >= 0.9 implies bright(image)",
    ],
)
def test_formulas_about_images_parse_back(text: str) -> None:
    assert parse(str(parse(text))) == parse(text)


TARGET = replace(COLOUR, pictures={"target": torch.rand(3, 32, 32), "tiny": torch.rand(1, 2, 3)})


@pytest.mark.parametrize(
    ("layout", "text", "says"),
    [
        (
            GREY,
            "image(4, 0) >= 0",
            "image(4, 0): there is no row 4; rows are 0 to 3, counted from the top",
        ),
        (GREY, "image(0, 6) >= 0", "no column 6; columns are 0 to 5, counted from the left"),
        (GREY, "image(-1, 0) >= 0", "there is no row -1"),
        (GREY, "image(0.5, 0) >= 0", "there is no row 0.5"),
        (GREY, "exists r in [0, 9]: image(r, 0) >= 0", "there is no row 4"),
        (GREY, "image(1, 2, 3) >= 0", "a pixel is a row and a column"),
        (
            GREY,
            "image(mean(image), 2) >= 0",
            "a row is not a whole number; write a whole number, a var",
        ),
        (COLOUR, "image(0, 0) >= 0", "image has 3 channels; read one, as in red(image)(3, 4)"),
        (
            GREY,
            "mean(red(image)) >= 0",
            "red takes an image of 3 channels (red, green, blue), not 1",
        ),
        (GREY, "mean(downsample(image, 3)) >= 0", "4x6 pixels into blocks of 3x3 (have: 2)"),
        (GREY, "mean(rotate(image, 45)) >= 0", "does not turn by 45 degrees (have: 90, 180, 270)"),
        (
            GREY,
            "mean(blur(image, 0)) >= 0",
            "no standard deviation of 0 pixels; give a number above 0",
        ),
        (GREY, "mean(blur(image, mean(image))) >= 0", "the width of blur is a plain number"),
        (GREY, "mean(blur(image, 1, 2)) >= 0", "blur takes 1 to 2 argument(s), not 3"),
        (GREY, "mean(masked(image, 2)) >= 0", "the second argument of masked is not a region"),
        (GREY, "mean(blur(upper)) >= 0", "upper is not an image (have: image)"),
        (GREY, "blur(image) >= 0", "blur(image) is an image and does not say which pixels"),
        (GREY, "forall p: rotate(image)(p) = image(p)", "has 1x6x4 pixels, image 1x4x6; compare"),
        (GREY, "forall p: image(p) = target(p)", "given by its name, pictures="),
        (GREY, "mean(target) >= 0", "given by its name, pictures="),
        (GREY, "forall p in face: image(p) >= 0", "a region is given by its name, regions="),
        (GREY, "mean(blurred(image)) >= 0", "unknown function 'blurred'; did you mean 'blur'?"),
        (
            TARGET,
            "forall p: downsample(image)(p) = target(p)",
            "downsample(image) has 3x2x3 pixels, target 3x32x32; give a target of 3x2x3 pixels",
        ),
        (TARGET, "mean(image - tiny) >= 0", "image has 3x4x6 pixels, tiny 1x2x3; give a tiny of"),
        (TARGET, "mean(target[1]) >= 0", "a picture has no instances; write target"),
        (TARGET, "target >= 0", "target is an image and does not say which pixels"),
    ],
)
def test_errors_of_image_formulas_name_value_and_remedy(
    layout: Layout, text: str, says: str
) -> None:
    with pytest.raises(FormulaError) as caught:
        compiled(text, layout)
    assert says in str(caught.value)


def test_invalid_pictures_and_functions_are_rejected() -> None:
    with pytest.raises(
        FormulaError, match=r"picture target of shape \(4, 6\) .* give .* of shape \(C, H, W\)"
    ):
        replace(GREY, pictures={"target": torch.ones(4, 6)})
    with pytest.raises(FormulaError, match="image names a picture or classifier and something"):
        replace(GREY, pictures={"image": torch.ones(1, 4, 6)})
    with pytest.raises(FormulaError, match="blur names a picture or classifier and something"):
        replace(GREY, pictures={"blur": torch.ones(1, 4, 6)})
    total = Function(lambda x: x.sum(), 1, whole=True, returns="image")
    broken = replace(GREY, functions={"broken": total})
    with pytest.raises(FormulaError, match=r"broken returns shape \(\), not images \(B, C, H, W\)"):
        compiled("mean(broken(image)) >= 0", broken)
    assert set(standard_regions(4, 6)) == {"upper", "lower", "left", "right", "centre", "border"}
