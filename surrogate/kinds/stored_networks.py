"""The networks of a stored model: made by its kind, with the weights of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from surrogate.diffusion.denoise import Preconditioned
from surrogate.diffusion.training import DECODER
from surrogate.errors import ModelError
from surrogate.io.tensors import restored
from surrogate.kinds.codec import Codec
from surrogate.kinds.decoder import Decoder
from surrogate.kinds.kind import Kind


def restored_denoiser(
    kind: Kind, codec: Codec, network: Mapping[str, Any], weights: Mapping[str, Tensor]
) -> Preconditioned:
    """A network of this description with these weights, if they fit it."""
    width, depth = network["width"], network["depth"]
    made = restored(lambda: kind.network(codec, width, depth), depth, weights)
    return Preconditioned(made.requires_grad_()).eval()


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
    width, depth = sizes.get("width"), sizes.get("depth")

    def make() -> Decoder:
        made = kind.decoder(codec, width, depth)
        if made is None:
            raise ModelError(f"{kind.name} have no decoder", value=kind.name)
        return made

    return restored(make, 1 if depth is None else depth, own).requires_grad_()
