"""The network of classifiers: any size, one image at a time, smooth."""

from __future__ import annotations

import pytest
import torch

from surrogate.errors import ModelError
from surrogate.networks.convolutional import Convolutional, halvings_for


def awake(channels: int, side: int, classes: int = 3, depth: int = 1) -> Convolutional:
    """A network whose output says something of the image."""
    torch.manual_seed(0)
    network = Convolutional(channels, side, classes, 8, depth).eval()
    torch.nn.init.normal_(network.leave.weight)
    return network


@pytest.mark.parametrize(
    ("channels", "height", "width"), [(1, 4, 4), (1, 28, 28), (3, 9, 33), (3, 64, 5)]
)
def test_images_of_any_size_have_scores(channels: int, height: int, width: int) -> None:
    network = awake(channels, max(height, width))
    assert network(torch.rand(2, channels, height, width)).shape == (2, 3)


def test_sizes_are_halved_to_four_pixels() -> None:
    assert [halvings_for(side) for side in (4, 8, 9, 28, 32, 512)] == [1, 1, 2, 3, 3, 7]


def test_every_class_is_as_likely_at_first() -> None:
    assert not Convolutional(1, 8, 5)(torch.rand(3, 1, 8, 8)).any()


def test_the_score_of_an_image_does_not_depend_on_its_batch() -> None:
    network, images = awake(1, 12), torch.rand(5, 1, 12, 12)
    torch.testing.assert_close(network(images)[2:3], network(images[2:3]), rtol=1e-5, atol=1e-5)


def test_the_gradient_is_that_of_a_smooth_function() -> None:
    network = awake(1, 8, depth=2).double()
    images = torch.rand(1, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(network, (images,), fast_mode=True)
    assert torch.autograd.gradgradcheck(network, (images,), fast_mode=True)


def test_sizes_that_no_network_has_are_refused() -> None:
    with pytest.raises(ModelError, match="features of a network must be a whole number"):
        Convolutional(1, 8, 2, 0)
