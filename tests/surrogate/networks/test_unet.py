"""The U-Net: any size, no matter how large the batch, from nothing."""

from __future__ import annotations

import pytest
import torch

from surrogate.errors import ModelError
from surrogate.networks.unet import UNet, levels_for


@pytest.mark.parametrize(
    "shape", [(1, 4, 4), (1, 8, 8), (1, 28, 28), (3, 17, 30), (3, 32, 32), (1, 5, 64)]
)
def test_it_keeps_the_shape_of_any_image_and_starts_at_zero(shape: tuple[int, int, int]) -> None:
    network = UNet(*shape, features=8)
    made = network(torch.randn(2, *shape), torch.zeros(1))
    assert made.shape == (2, *shape)
    assert not made.any()


def test_it_learns_and_every_weight_has_a_gradient() -> None:
    torch.manual_seed(0)
    network = UNet(1, 8, 8, features=16)
    x, noise = torch.randn(32, 1, 8, 8), torch.randn(32)
    best = torch.optim.Adam(network.parameters(), 3e-3)
    losses = []
    for _ in range(60):
        loss = (network(x, noise) - x.flip(-1)).square().mean()  # a thing of far-away pixels
        best.zero_grad()
        loss.backward()
        best.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert all(w.grad is not None and w.grad.abs().sum() > 0 for w in network.parameters())


def test_a_sample_does_not_depend_on_its_neighbours_or_on_how_a_level_is_given() -> None:
    torch.manual_seed(1)
    network = UNet(1, 12, 12, features=8).eval()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    x = torch.randn(5, 1, 12, 12)
    together = network(x, torch.tensor([0.3]))
    alone = torch.cat([network(each[None], torch.tensor([0.3])) for each in x])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(together, network(x, torch.full((5,), 0.3)), atol=1e-4, rtol=1e-4)


def test_sampling_is_in_single_precision() -> None:
    network = UNet(1, 8, 8, features=8).eval()
    x = torch.randn(2, 1, 8, 8, requires_grad=True)
    seen: list[torch.dtype] = []
    network.enter.register_forward_hook(lambda _, __, out: seen.append(out.dtype))
    network(x, torch.zeros(1))
    assert seen == [torch.float32]


def test_levels_grow_with_the_logarithm_of_the_size() -> None:
    assert [levels_for(side) for side in (4, 8, 14, 16, 32, 128)] == [1, 1, 2, 2, 3, 5]


def test_sizes_that_no_network_has_are_refused() -> None:
    with pytest.raises(ModelError, match="features"):
        UNet(1, 8, 8, features=0)
