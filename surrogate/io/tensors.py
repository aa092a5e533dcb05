"""Tensors of a model as safetensors files, identified by their hash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from surrogate.errors import ModelError
from surrogate.io.model_folder import CONFIG, digest, read_bytes, write_bytes

Net = TypeVar("Net", bound=nn.Module)


def narrowest(value: Tensor) -> Tensor:
    """The same numbers in the type of least precision that has them all."""
    for kind in (torch.float16, torch.float32):
        if torch.equal(value.to(kind).to(value.dtype), value):
            return value.to(kind)
    return value


def write_tensors(target: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write tensors; their file's hash."""
    content = save_tensors({name: value.detach().contiguous() for name, value in tensors.items()})
    write_bytes(target, content)
    return digest(content)


def read_tensors(source: Path, expected: str | None = None) -> dict[str, Tensor]:
    """Tensors from a file, whose hash must be the expected one."""
    content = read_bytes(source)
    if expected is not None and digest(content) != expected:
        raise ModelError(
            f"{source} is not the file that {CONFIG} names (its hash differs): it was changed, "
            "cut short or mixed up",
            value=digest(content),
            remedy="copy the whole folder again",
        )
    try:
        found: dict[str, Tensor] = load_tensors(content)
    except (SafetensorError, ValueError, KeyError) as problem:
        raise ModelError(f"{source} is damaged: {problem}") from None
    return found


def restored(make: Callable[[], Net], depth: Any, weights: Mapping[str, Tensor]) -> Net:
    """The network that `make` makes with these weights, if they fit it."""
    if type(depth) is not int or not 1 <= depth <= len(weights):
        raise ModelError(
            f"a network of depth {depth!r} does not have {len(weights)} weights", value=depth
        )
    with torch.device("meta"):  # its sizes, before any memory is taken
        made = make()
    wanted = {name: value.shape for name, value in made.state_dict().items()}
    found = {name: value.shape for name, value in weights.items()}
    if wanted != found:
        name = next(iter({*wanted.items()} ^ {*found.items()}))[0]
        raise ModelError(
            f"the weights do not fit the network: {name} differs",
            value=name,
            remedy="the model is damaged, or of another version: train it again",
        )
    if not all(value.is_floating_point() for value in weights.values()):
        raise ModelError("the weights are not real numbers")
    made.load_state_dict({k: v.float() for k, v in weights.items()}, assign=True)
    return made.eval()
