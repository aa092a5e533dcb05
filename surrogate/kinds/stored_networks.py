"""The networks of a model: made by its kind, with random weights or those of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Preconditioned, Whitened, smooth
from surrogate.diffusion.training import DECODER
from surrogate.errors import ModelError
from surrogate.io.tensors import restored
from surrogate.kinds.codec import Codec
from surrogate.kinds.decoder import Decoder
from surrogate.kinds.kind import Kind, kind_named
from surrogate.random import Training, stream

WHITENED = "whitened"  # in a description: preconditioned with the covariance of the data


def untrained(
    codec: Codec,
    seed: int,
    width: int | None,
    depth: int,
    covariance: Callable[[], Covariance] | None,
) -> tuple[Preconditioned, Decoder | None, dict[str, Any]]:
    """Networks for data of a codec, and their description: `Surrogate.untrained`."""
    described: dict[str, Any] = {"width": width, "depth": depth}
    kind = kind_named(codec.kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(seed, Training.INITIAL_WEIGHTS).initial_seed()))
        network = kind.network(codec, width, depth)
        decoder = kind.decoder(codec)
    if decoder is not None:
        described["decoder"] = {"width": None, "depth": None, **decoder.options}
    if covariance is not None and decoder is not None and decoder.dispensable:
        spread = covariance()
        if smooth(spread):
            described[WHITENED], decoder.plain_handover = True, None
            return Whitened(network, spread), decoder, described
    return Preconditioned(network), decoder, described


def restored_denoiser(
    kind: Kind,
    codec: Codec,
    network: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    covariance: Covariance,
) -> Preconditioned:
    """A network of this description with these weights, if they fit it, preconditioned with the
    covariance of the data if the description says so."""
    width, depth = network["width"], network["depth"]
    made = restored(lambda: kind.network(codec, width, depth), depth, weights)
    made.requires_grad_()
    return (Whitened(made, covariance) if network.get(WHITENED) else Preconditioned(made)).eval()


def restored_decoder(
    kind: Kind, codec: Codec, network: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> Decoder | None:
    """The decoder of this description, if it has one."""
    own = {k.removeprefix(DECODER): v for k, v in tensors.items() if k.startswith(DECODER)}
    sizes = network.get("decoder")
    if sizes is None and not own:
        return None
    if not isinstance(sizes, Mapping):
        raise ModelError("the weights of a decoder have no description", value=sizes)
    width, depth, any_order = (sizes.get(name) for name in ("width", "depth", "any_order"))

    def make() -> Decoder:
        made = kind.decoder(codec, width, depth, new=bool(any_order))
        if made is None:
            raise ModelError(f"{kind.name} have no decoder", value=kind.name)
        return made

    found = restored(make, 1 if depth is None else depth, own).requires_grad_()
    if network.get(WHITENED):
        found.plain_handover = None
    return found
