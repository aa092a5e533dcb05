"""Files are whole or absent, and whatever is wrong with one, ModelError names it."""

from __future__ import annotations

import json
import os
import struct
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surrogate.errors import ModelError
from surrogate.io import atomic
from surrogate.io import model_folder as store
from surrogate.io import tensors as tensor_files

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TENSORS = {
    "matrix": torch.arange(12.0).reshape(3, 4),
    "number": torch.tensor(1.5, dtype=torch.float64),
    "nothing": torch.zeros(0, 2),
    "integers": torch.arange(3),
}


def raw(header: object, data: bytes = b"") -> bytes:
    """A safetensors file with any header."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_tensors_are_restored(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    digest = tensor_files.write_tensors(file, TENSORS)
    assert digest == store.digest(file.read_bytes())
    found = tensor_files.read_tensors(file, digest)
    assert found.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert torch.equal(found[name], value)
        assert found[name].dtype == value.dtype
    found["matrix"].add_(1)  # they can be written to


def test_strided_tensors_and_parameters_are_restored(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    turned, weight = TENSORS["matrix"].mT, torch.nn.Parameter(torch.ones(2))
    tensor_files.write_tensors(file, {"turned": turned, "weight": weight})
    found = tensor_files.read_tensors(file)
    assert torch.equal(found["turned"], turned)
    assert torch.equal(found["weight"], weight)


def test_the_same_tensors_give_the_same_bytes(tmp_path: Path) -> None:
    one = tensor_files.write_tensors(tmp_path / "one", TENSORS)
    assert one == tensor_files.write_tensors(tmp_path / "two", dict(reversed(TENSORS.items())))


@given(
    content=st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | NUMBERS | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=8,
        ),
    )
)
@settings(
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_json_is_restored(tmp_path: Path, content: dict[str, object]) -> None:
    store.write_json(tmp_path / "config.json", content)
    assert store.read_json(tmp_path / "config.json") == content


def test_json_has_finite_numbers_only(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    store.write_json(file, {"a": [float("nan"), 1.5], "b": {"c": float("inf")}, "d": (2,)})
    assert store.read_json(file) == {"a": [None, 1.5], "b": {"c": None}, "d": [2]}
    for text in ("NaN", "-Infinity", "1e999"):
        file.write_text(f'{{"a": [{text}]}}', encoding="utf-8")
        with pytest.raises(ModelError, match="not JSON"):
            store.read_json(file)


# --- whole or not at all --------------------------------------------------------------------------


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "config.json"
    store.write_json(target, {"old": 1})
    before = target.read_bytes()

    def fail() -> None:
        with atomic.atomic_file(target) as part:
            assert part.parent == tmp_path  # where it can be renamed in one go
            part.write_text("half a fi")
            assert target.read_bytes() == before
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        fail()
    assert target.read_bytes() == before
    assert os.listdir(tmp_path) == ["config.json"]


def test_an_interrupt_leaves_no_partial_file(tmp_path: Path) -> None:
    def interrupted() -> None:
        with atomic.atomic_file(tmp_path / "new"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == []


def test_unserialisable_content_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "config.json"
    store.write_json(target, {"old": 1})
    with pytest.raises(TypeError):
        store.write_json(target, {"new": torch.ones(2)})
    assert store.read_json(target) == {"old": 1}


def test_a_write_replaces_the_file(tmp_path: Path) -> None:
    target = tmp_path / "config.json"
    store.write_json(target, {"old": list(range(100))})
    store.write_json(target, {"new": 1})
    assert store.read_json(target) == {"new": 1}
    assert os.listdir(tmp_path) == ["config.json"]
    assert target.stat().st_mode & 0o777 == 0o644


def test_a_target_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.write_json(tmp_path / "absent" / "config.json", {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        store.write_json(tmp_path / "folder", {})
    assert os.listdir(tmp_path) == ["folder"]


def test_a_folder_is_replaced_atomically(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for content in ("one", "two"):
        with store.model_folder(target) as part:
            (part / "config.json").write_text(content)
    assert (target / "config.json").read_text() == "two"

    def fail() -> None:
        with store.model_folder(target) as part:
            (part / "config.json").write_text("thr")
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        fail()
    assert (target / "config.json").read_text() == "two"
    assert os.listdir(tmp_path) == ["model"]
    (tmp_path / "link").symlink_to("model")
    with store.model_folder(tmp_path / "link") as part:
        (part / "config.json").write_text("four")
    assert (target / "config.json").read_text() == "four"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_folder_is_recovered_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Whichever of its steps was the last, one of the two folders is there in the end."""
    target = tmp_path / "model"
    with store.model_folder(target) as part:
        (part / "config.json").write_text("old")
    child = os.fork()
    if not child:
        done, rename = 0, Path.rename

        def counted(self: Path, other: Path) -> Path:
            nonlocal done
            done += 1
            if done == step:
                os._exit(9)
            return rename(self, other)

        monkeypatch.setattr(Path, "rename", counted)
        monkeypatch.setattr(atomic.shutil, "rmtree", lambda *words, **more: None)
        with store.model_folder(target) as part:
            (part / "config.json").write_text("new")
        os._exit(9)
    os.waitpid(child, 0)
    store.settle(target)
    assert (target / "config.json").read_text() == ("new" if step == 3 else "old")
    assert os.listdir(tmp_path) == ["model"]


# --- what can be wrong with a file ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b'{"version": 1', "not JSON"),
        (b'{"version": 1} and more', "not JSON"),
        (b"\xff\xfe\x00garbage", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "not JSON"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "not JSON"),
        (b"[1, 2]", "holds no object"),
        (b"null", "holds no object"),
        (b'"text"', "holds no object"),
    ],
    ids=range(10),
)
def test_damaged_json_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=rf"config\.json is damaged.*{message}"):
        store.read_json(file)


def test_too_large_json_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.json"
    store.write_json(file, {"a": "long" * 100})
    monkeypatch.setattr(store, "MAX_CONFIG_BYTES", 300)
    with pytest.raises(ModelError, match=r"config\.json is too large"):
        store.read_json(file)


@pytest.mark.parametrize("read", [store.read_json, tensor_files.read_tensors])
def test_unreadable_files_are_refused(tmp_path: Path, read: object) -> None:
    assert callable(read)
    with pytest.raises(ModelError, match=r"there is no .*absent"):
        read(tmp_path / "absent")
    with pytest.raises(ModelError, match=r"cannot read .*: Is a directory"):
        read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        struct.pack("<Q", 2**60) + b"{}",
        raw([1, 2]),
        raw({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 8]}}, bytes(8)),
        raw({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)),
        raw({"a": {"dtype": "F32", "shape": [2**62, 8], "data_offsets": [0, 4]}}, bytes(4)),
        raw({"a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}, bytes(2)),
        raw({"a": {"dtype": "text", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    ],
    ids=range(9),
)
def test_damaged_tensors_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "weights.safetensors"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=r"weights\.safetensors is damaged"):
        tensor_files.read_tensors(file)


def test_truncated_tensors_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    digest = tensor_files.write_tensors(file, TENSORS)
    content = file.read_bytes()
    for size in range(0, len(content), 7):
        file.write_bytes(content[:size])
        with pytest.raises(ModelError, match=r"weights\.safetensors is damaged"):
            tensor_files.read_tensors(file)
        with pytest.raises(ModelError, match=r"weights\.safetensors is not the file"):
            tensor_files.read_tensors(file, digest)


def test_tampered_tensors_are_refused(tmp_path: Path) -> None:
    """One bit of the data: only the hash can tell."""
    file = tmp_path / "weights.safetensors"
    digest = tensor_files.write_tensors(file, TENSORS)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    tensor_files.read_tensors(file)
    with pytest.raises(ModelError, match=r"weights\.safetensors is not the file.*hash"):
        tensor_files.read_tensors(file, digest)


@given(place=st.integers(0, 249), byte=st.integers(0, 255))
@settings(
    max_examples=150,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_damage_to_the_header_is_refused(tmp_path: Path, place: int, byte: int) -> None:
    file = tmp_path / "weights.safetensors"
    tensor_files.write_tensors(file, TENSORS)
    content = bytearray(file.read_bytes())
    content[place] = byte
    file.write_bytes(content)
    said = "weights.safetensors is damaged"
    try:
        tensor_files.read_tensors(file)
    except ModelError as problem:
        said = str(problem)
    assert "weights.safetensors is damaged" in said


class Trap:
    """Pickled, it runs code when it is read."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return warnings.warn, ("the file ran code",)  # a warning is an error here


@pytest.mark.parametrize("zipped", [True, False])
def test_pickles_are_refused(tmp_path: Path, zipped: bool) -> None:
    file = tmp_path / "weights.safetensors"
    torch.save({"a": Trap()}, file, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ModelError, match=r"weights\.safetensors is damaged"):
        tensor_files.read_tensors(file)
    with pytest.raises(ModelError, match="not JSON"):
        store.read_json(file)


def test_unknown_versions_are_refused() -> None:
    file = Path("config.json")
    store.check_version({"version": store.FORMAT_VERSION}, file)
    with pytest.raises(ModelError, match=r"config\.json has version 99.*update surrogate-toolkit"):
        store.check_version({"version": 99}, file)
    for bad in ({}, {"version": "1"}, {"version": None}, {"version": True}, {"version": 0}):
        with pytest.raises(ModelError, match=r"config\.json does not say which version"):
            store.check_version(bad, file)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_the_working_directory_is_not_replaced(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "work"
    inner.mkdir()
    (inner / "thesis.txt").write_text("precious")
    monkeypatch.chdir(inner)
    with pytest.raises(ModelError, match="no name for a model"), store.model_folder(Path(name)):
        pass
    assert (inner / "thesis.txt").read_text() == "precious"


def test_foreign_files_and_folders_are_not_replaced(tmp_path: Path) -> None:
    folder, file = tmp_path / "results", tmp_path / "notes"
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")
    file.write_text("precious")
    for target, message in ((folder, "other things in it, such as 'thesis.txt'"), (file, "a file")):
        with pytest.raises(ModelError, match=message), store.model_folder(target):
            pass
    hidden = tmp_path / ".model.old"
    hidden.mkdir()
    (hidden / "mine.txt").write_text("precious")
    (tmp_path / "model").mkdir()
    store.settle(tmp_path / "model")
    for kept in (folder / "thesis.txt", file, hidden / "mine.txt"):
        assert kept.read_text() == "precious"
