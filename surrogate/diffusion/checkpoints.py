"""Checkpoints: a folder with the state of an unfinished run, from which it can be resumed.

`state.json` names the file of the tensors and its hash, and is replaced last and atomically: a run
that is killed at any moment leaves a complete checkpoint, the last one or the one before. Only
files that a run wrote are ever removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from constraints.errors import Action
from surrogate.diffusion.training import State
from surrogate.errors import ModelError, TrainingError
from surrogate.io import model_folder as store
from surrogate.io import tensors as tensor_files

STATE, TENSORS = "state.json", "state-{step}.safetensors"
RESUME = Action("resume=True", "--resume")
START_AGAIN = "start again with ", Action("resume=False", "--force")


class Checkpoints:
    """The checkpoint of one run; `command`: the command line that started it, for messages."""

    def __init__(self, folder: Path, command: Sequence[str] = ()) -> None:
        self.folder, self.command = folder, list(command)
        self.step: int | None = None  # of what is kept

    def keep(self, state: State, run: Mapping[str, Any]) -> None:
        """Replace the checkpoint; `run`: what must be equal when the run is resumed."""
        name = TENSORS.format(step=state.step)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            digest = tensor_files.write_tensors(self.folder / name, state.tensors)
            config = {"version": store.FORMAT_VERSION, "tensors": name, "digest": digest}
            config |= {"state": state.to_config(), "run": run, "command": self.command}
            store.write_json(self.folder / STATE, config)
        except OSError as problem:
            with suppress(OSError):
                self.folder.rmdir()  # if there is nothing in it
            raise TrainingError(
                f"cannot write a checkpoint to {str(self.folder)!r}: {problem.strerror or problem}",
                remedy=(
                    "free some room and ",
                    *(("start again",) if self.step is None else ("go on with ", RESUME)),
                ),
            ) from None
        self.step = state.step
        for file in self._own():
            if file.name not in (STATE, name):
                file.unlink(missing_ok=True)

    def last(self, run: Mapping[str, Any]) -> State:
        """The stored state; ModelError if it is damaged or belongs to another run."""
        try:
            config = store.read_json(self.folder / STATE)
            store.check_version(config, self.folder / STATE)
            file = self.folder / Path(str(config.get("tensors"))).name
            tensors = tensor_files.read_tensors(file, str(config.get("digest")))
        except ModelError as problem:
            raise ModelError(
                problem.problem,
                value=problem.value,
                allowed=problem.allowed,
                remedy=(*problem.remedy, *([", or "] if problem.remedy else []), *START_AGAIN),
            ) from None
        before = config.get("run")
        if not isinstance(before, dict) or not isinstance(config.get("state"), dict):
            raise ModelError(f"{self.folder / STATE} is damaged", remedy=START_AGAIN)
        other = [name for name in run if before.get(name) != run[name]]
        if other:
            raise ModelError(
                f"the checkpoint in {str(self.folder)!r} is of another run (other "
                f"{', '.join(other)})",
                remedy=("go on with what it was started with, or ", *START_AGAIN),
            )
        state = State.from_config(config["state"], tensors)
        self.step = state.step
        return state

    def exists(self) -> bool:
        return (self.folder / STATE).is_file()

    def kept(self) -> str:
        """What a run that stopped leaves behind, in words."""
        if self.step is None:
            return "there is no checkpoint yet"
        return f"the run is kept up to step {self.step:,}"

    def discard(self) -> None:
        """Remove the checkpoint, and its folder if nothing else is in it."""
        with suppress(OSError):
            (self.folder / STATE).unlink(missing_ok=True)  # first: without it there is no run
            for file in self._own():
                file.unlink(missing_ok=True)
            self.folder.rmdir()

    def _own(self) -> Iterator[Path]:
        """Files of runs, and what one that was killed while it wrote left of them."""
        for pattern in ("state-*.safetensors", ".state-*.safetensors.*", f".{STATE}.*", STATE):
            yield from self.folder.glob(pattern)
