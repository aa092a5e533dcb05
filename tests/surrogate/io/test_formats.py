"""The registry of formats: a new one is one entry, known to sg.read, sg.write and commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import surrogate as sg
from surrogate.errors import ModelError
from surrogate.io import formats
from surrogate.io.formats import TABLE, Format
from tests.cli.small import run


@pytest.fixture
def toy() -> Iterator[Format]:
    """A format of tables: JSON, a list for each column."""
    made = Format(
        "toy JSON",
        (".toy",),
        TABLE,
        read=lambda place, options, say: pd.DataFrame(json.loads(place.read_text())),
        write=lambda table, place: place.write_text(json.dumps(table.to_dict("list"))),
    )
    formats.register(made)
    yield made
    formats.unregister(made)


def table(rows: int = 6) -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(rows) / 2, "word": ["red", "blue"] * (rows // 2)})


@pytest.mark.parametrize("name", ["a.toy", "a.csv", "a.tsv", "a.parquet"])
def test_a_table_is_restored_from_each_format(tmp_path: Path, toy: Format, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    sg.write(table(), tmp_path / name)
    pd.testing.assert_frame_equal(sg.read(tmp_path / name), table(), check_dtype=False)


def test_commands_read_and_write_a_registered_format(
    tmp_path: Path, toy: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sg.write(table(), "a.toy")
    said = run("check", "a.toy", "--where", "x >= 1 and word = red", "-o", "b.toy").stderr
    assert "2 of 6 samples satisfy the rule" in said
    assert sg.read("b.toy")["satisfied"].sum() == 2


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    sg.write(table(), target)
    with pytest.raises(ModelError, match=r"exists; choose another name, or .* force=True"):
        sg.write(table(2), target)
    sg.write(table(2), target, force=True)
    assert len(sg.read(target)) == 2


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    def fails(table: pd.DataFrame, place: Path) -> None:
        place.write_text("half")
        raise OSError("no room")

    broken = Format("broken", (".broken",), TABLE, write=fails)
    formats.register(broken)
    try:
        (tmp_path / "a.broken").write_text("old")
        with pytest.raises(sg.SurrogateError, match="nothing was changed"):
            sg.write(table(), tmp_path / "a.broken", force=True)
    finally:
        formats.unregister(broken)
    assert [each.name for each in tmp_path.iterdir()] == ["a.broken"]
    assert (tmp_path / "a.broken").read_text() == "old"


def test_unknown_suffixes_and_missing_packages_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"must end in \.csv or \.tsv or \.parquet"):
        sg.write(table(), tmp_path / "a.xlsx")
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(ModelError, match=r"cannot read .*a\.xlsx.*\(have: \.nc"):
        sg.read(tmp_path / "a.xlsx")
    absent = Format("absent", (".absent",), TABLE, write=lambda *_: None, package="no_such_package")
    formats.register(absent)
    try:
        with pytest.raises(ModelError, match="pip install no_such_package"):
            sg.write(table(), tmp_path / "a.absent")
    finally:
        formats.unregister(absent)


# --- reading by kind ------------------------------------------------------------------------------


def test_a_table_of_steps_is_read_as_trajectories(tmp_path: Path) -> None:
    long = pd.DataFrame({"run": np.repeat([1, 2, 3], 4), "day": np.tile(range(4), 3)})
    sg.write(long.assign(cases=np.arange(12) ** 2), tmp_path / "runs.csv")
    found = sg.read(tmp_path / "runs.csv", id="run", time="day")
    assert isinstance(found, xr.Dataset)
    assert found["cases"].shape == (3, 4)
    series = sg.read(tmp_path / "runs.csv", id="run", time="day", window=2)
    assert series["cases"].shape == (6, 2)


def test_types_and_missing_values_of_rows_are_applied(tmp_path: Path) -> None:
    rows = pd.DataFrame({"grade": [1, 2] * 40, "x": [0.5, np.nan] * 40, "note": ["a", "b"] * 40})
    sg.write(rows, tmp_path / "rows.csv")
    found = sg.read(tmp_path / "rows.csv", types={"grade": "category", "note": "ignore"})
    assert list(found) == ["grade", "x"]
    assert found["grade"].dtype == "category"
    assert len(sg.read(tmp_path / "rows.csv", missing="drop")) == 40
    with pytest.raises(ModelError, match="missing='drop'"):
        sg.read(tmp_path / "rows.csv", missing="refuse")
    assert list(sg.read(tmp_path / "rows.csv", columns=["x"])) == ["x"]


def test_images_are_written_and_read_with_options(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (5, 8, 8, 3), dtype=np.uint8)
    sg.write(pixels, tmp_path / "a.npz")
    found = sg.read(tmp_path / "a.npz", grey=True, size=4)
    assert found["image"].shape == (5, 4, 4)
    np.testing.assert_array_equal(sg.read(tmp_path / "a.npz")["image"].shape, (5, 3, 8, 8))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"size": 8}, "holds rows; leave out size=..., which is for images"),
        ({"windw": 3}, "did you mean 'window'"),
        ({"columns": ["z"]}, "unknown column 'z'"),
    ],
)
def test_options_of_other_kinds_and_misspelt_ones_are_refused(
    tmp_path: Path, options: dict[str, object], says: str
) -> None:
    sg.write(table(), tmp_path / "a.csv")
    with pytest.raises(ModelError) as problem:
        sg.read(tmp_path / "a.csv", **options)
    assert says in str(problem.value)


def test_pipes_are_not_opened(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(ModelError, match="neither a file nor a folder"):
        sg.read(tmp_path / "a.csv")
