"""Classes of images: what a classifier says, as a statement and as a number."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from constraints import (
    Classifier,
    FormulaError,
    Function,
    Layout,
    LogLTN,
    LogProbabilistic,
    call,
    compiled,
    explain,
    parse,
    signals,
)
from constraints.gaussian.expectation import log_expectation

DIGITS = tuple(str(i) for i in range(10))
WORDS = ("t-shirt", "trouser", "dress")


class Counting:
    """The first pixels as scores; counts how often it is asked."""

    def __init__(self, classes: int) -> None:
        self.classes, self.asked = classes, 0

    def __call__(self, images: Tensor) -> Tensor:
        self.asked += 1
        return (8 * images).flatten(1)[:, : self.classes].log_softmax(1)


LAYOUT = Layout.image((1, 4, 4), classifiers={"class": Classifier(Counting(10), DIGITS)})
PAIRS = replace(LAYOUT, instances=2)
CLOTHES = Layout.image((1, 4, 4), classifiers={"kind": Classifier(Counting(3), WORDS)})
GENERATOR = torch.Generator().manual_seed(0)
X = torch.rand(40, 1, 4, 4, generator=GENERATOR, dtype=torch.float64)
TWO = torch.rand(200, 2, 1, 4, 4, generator=GENERATOR, dtype=torch.float64)
LOG = Counting(10)(X)


def test_a_class_is_its_log_probability() -> None:
    program = compiled("class(image, 3)", LAYOUT)
    data = {"image": X}
    for semantics in (LogProbabilistic(), LogLTN(), LogProbabilistic(k=3.0)):
        torch.testing.assert_close(program(data, semantics), LOG[:, 3])
    assert program.verdict(data).equal(LOG.argmax(1) == 3)
    others = LOG[:, [k for k in range(10) if k != 3]]
    torch.testing.assert_close(program.robustness(data), LOG[:, 3] - others.amax(1))
    hard = program(data, LogProbabilistic(k=math.inf))
    assert hard.equal(torch.where(LOG.argmax(1) == 3, 0.0, -torch.inf).double())


def test_the_negation_of_a_class_is_its_complement() -> None:
    program = compiled("not class(image, 3)", LAYOUT)
    data = {"image": X}
    torch.testing.assert_close(program(data), torch.log1p(-LOG[:, 3].exp()))
    assert program.verdict(data).equal(LOG.argmax(1) != 3)
    torch.testing.assert_close(
        program.robustness(data), -compiled("class(image, 3)", LAYOUT).robustness(data)
    )
    sure = X.clone()
    sure[:, 0, 0, 3] = 20.0  # p_3 is 1 to the last digit, and what is left of it still counts
    assert program({"image": sure}).isfinite().all()
    assert (program({"image": sure}) < -100).all()


def test_a_class_probability_can_be_compared() -> None:
    program = compiled("class(image, 3) >= 0.3", LAYOUT)
    assert program.robustness({"image": X}).sub(LOG[:, 3].exp() - 0.3).abs().max() < 1e-12
    either = compiled("class(image, 3) + class(image, 8) >= 0.5", LAYOUT)
    assert either.verdict({"image": X}).equal(LOG[:, [3, 8]].exp().sum(1) >= 0.5)


def test_classes_by_label() -> None:
    log = Counting(3)(X)
    for text in ('kind(image, "trouser")', "kind(image, trouser)", "kind(image, 1)"):
        torch.testing.assert_close(compiled(text, CLOTHES)({"image": X}), log[:, 1])
    digits = {"digit": Classifier(Counting(3), ("7", "5", "6"))}
    shuffled = replace(LAYOUT, classifiers={**LAYOUT.classifiers, **digits})
    torch.testing.assert_close(compiled("digit(image, 5)", shuffled)({"image": X}), log[:, 1])
    some = compiled("exists i in [5, 6]: digit(image, i)", shuffled)
    assert some.verdict({"image": X}).equal(log.argmax(1) > 0)


def test_two_digits_add_up_to_ten() -> None:
    text = "exists i in [1, 9]: class(image[1], i) and class(image[2], 10 - i)"
    program = compiled(text, PAIRS)
    one, other = (Counting(10)(TWO[:, i]) for i in range(2))
    pairs = torch.stack([one[:, i] + other[:, 10 - i] for i in range(1, 10)], 1)
    expected = torch.log1p(-(1 - pairs.exp()).prod(1))
    torch.testing.assert_close(program({"image": TWO}), expected)
    assert program.verdict({"image": TWO}).equal(one.argmax(1) + other.argmax(1) == 10)
    assert program.verdict({"image": TWO}).any()
    lead = [
        compiled(f"class(image[1], {i}) and class(image[2], {10 - i})", PAIRS) for i in range(1, 10)
    ]
    margins = torch.stack([each.robustness({"image": TWO}) for each in lead], 1)
    torch.testing.assert_close(program.robustness({"image": TWO}), margins.amax(1))


def test_the_classifier_is_called_once_for_each_image() -> None:
    judge = Counting(10)
    classifiers = {"class": Classifier(judge, DIGITS)}
    layout = Layout.image((1, 4, 4), instances=2, classifiers=classifiers)
    text = "(exists i in [1, 9]: class(image[1], i) and class(image[2], 10 - i)) and "
    program = compiled(text + "not class(image[1], 5) and class(image[2], 1) <= 0.9", layout)
    assert judge.asked == 0
    program({"image": TWO})
    assert judge.asked == 2


def test_the_expectation_classifies_the_posterior_mean() -> None:
    flat = X.flatten(1).requires_grad_()
    program = compiled("class(image, 3)", LAYOUT)
    for semantics in (LogProbabilistic(), LogProbabilistic(k=math.inf)):
        value = log_expectation(program, flat, 0.01 * torch.eye(16, dtype=torch.float64), semantics)
        torch.testing.assert_close(value, LOG[:, 3])
        (slope,) = torch.autograd.grad(value.sum(), flat)
        assert (slope[:, 3] > 0).all()


def test_one_class_or_another() -> None:
    program = compiled("class(image, 3) or class(image, 8)", LAYOUT)
    assert program.verdict({"image": X}).equal(torch.isin(LOG.argmax(1), torch.tensor([3, 8])))
    three, eight = LOG[:, 3].exp(), LOG[:, 8].exp()
    torch.testing.assert_close(program({"image": X}).exp(), 1 - (1 - three) * (1 - eight))


def test_the_result_of_an_operator_can_be_classified() -> None:
    layout = replace(LAYOUT, pictures={"target": X[0]})
    found = compiled("class(mirror(image), 3)", layout)({"image": X})
    torch.testing.assert_close(found, Counting(10)(X.flip(-1))[:, 3])
    fixed = compiled("class(target, 3)", layout)({"image": X})
    torch.testing.assert_close(fixed, LOG[:1, 3].expand(40))


def test_classes_in_python_and_in_explanations() -> None:
    image = signals("image")
    formula = (image[0, 0] >= 0.1) & call("class", image, 3)
    assert formula == parse("pixel(image, 0, 0) >= 0.1 and class(image, 3)")
    found = explain(parse("class(image, 3) or mean(image) >= 0.5"), LAYOUT, {"image": X})
    assert [row.text for row in found.rows][1] == "class(image, 3)"
    assert found.rows[1].satisfied == float((LOG.argmax(1) == 3).double().mean())


def test_layouts_keep_their_classifiers() -> None:
    for layout in (copy.deepcopy(LAYOUT), replace(LAYOUT, instances=2), copy.copy(LAYOUT)):
        assert layout.classifiers["class"].classes == DIGITS
    functions = {"f": Function(torch.neg, 1)}
    more = replace(LAYOUT, functions=functions, pictures={"target": X[0]})
    assert set(more.classifiers) == {"class"}


@pytest.mark.parametrize(
    ("layout", "text", "says"),
    [
        (LAYOUT, "class(image, 10)", "there is no class 10 (have: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"),
        (LAYOUT, "class(image, 1.5)", "there is no class 1.5"),
        (LAYOUT, "exists i in [0, 9]: class(image, 10 - i)", "there is no class 10"),
        (LAYOUT, "exists i in [0, 12]: class(image, i)", "there is no class 10"),
        (LAYOUT, "class(image)", "class takes an image and a class, not 1 argument(s)"),
        (
            LAYOUT,
            "class(image, mean(image))",
            "a class is not a whole number; write a whole number, a",
        ),
        (LAYOUT, "class(3, 3)", "3 is not an image"),
        (LAYOUT, "clas(image, 3)", "unknown function 'clas'; did you mean 'class'?"),
        (LAYOUT, "class(image, i)", "unknown class 'i'"),
        (CLOTHES, "kind(image, trousers)", "unknown class 'trousers'; did you mean 'trouser'?"),
        (CLOTHES, "kind(image, 3)", "there is no class 3 (have: 0 t-shirt, 1 trouser, 2 dress)"),
        (PAIRS, "class(image, 3)", "does not say of which instance"),
    ],
)
def test_unknown_classes_are_rejected(layout: Layout, text: str, says: str) -> None:
    with pytest.raises(FormulaError) as caught:
        compiled(text, layout)
    assert says in str(caught.value)


def test_invalid_classifiers_are_rejected() -> None:
    with pytest.raises(
        FormulaError, match=r"with the classes 1 is not a classifier; .* labels that differ"
    ):
        Classifier(Counting(1), ("1",))
    with pytest.raises(FormulaError, match="differ"):
        Classifier(Counting(2), ("1", "1"))
    with pytest.raises(FormulaError, match="'mean' cannot name a function"):
        replace(LAYOUT, classifiers={"mean": Classifier(Counting(2), ("a", "b"))})
    wrong = replace(LAYOUT, classifiers={"wrong": Classifier(Counting(2), ("a", "b", "c"))})
    with pytest.raises(FormulaError, match=r"log-probabilities \(40, 3\) of 40 images"):
        compiled("wrong(image, a)", wrong)({"image": X})


def test_an_image_below_the_least_probability_has_no_class() -> None:
    sure = Classifier(Counting(10), DIGITS, sure=0.5)
    layout = replace(LAYOUT, classifiers={"class": sure})
    log_p = Counting(10)(X)
    wanted = (log_p.argmax(1) == 3) & (log_p[:, 3].exp() >= 0.5)
    assert (compiled("class(image, 3)", layout).verdict({"image": X}) == wanted).all()
    assert (compiled("not class(image, 3)", layout).verdict({"image": X}) == ~wanted).all()
    soft = compiled("class(image, 3)", layout)({"image": X})
    torch.testing.assert_close(soft, log_p[:, 3])
    with pytest.raises(FormulaError, match=r"sure, is 1.0; give a number in \[0, 1\)"):
        Classifier(Counting(2), ("a", "b"), sure=1.0)
