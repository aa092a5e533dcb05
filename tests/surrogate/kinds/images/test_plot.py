"""Contact sheets: where the pictures are, how large, and which have a red frame."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.images.files import from_array
from surrogate.kinds.images.plot import SHEET_MARGIN, VIOLATION_COLOUR, before_after, contact_sheet

RED = tuple(bytes.fromhex(VIOLATION_COLOUR[1:]))


def pixels(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def reds(sheet: object) -> int:
    return int((np.asarray(sheet) == RED).all(-1).sum())


@pytest.mark.parametrize("count", [1, 2, 7, 64, 100])
@pytest.mark.parametrize("side", [8, 28, 64, 200])
def test_sheets_have_about_the_default_width(count: int, side: int) -> None:
    sheet = contact_sheet(pixels(count, side, side))
    assert sheet.width <= max(1.6 * 800, 14 * side + 300)
    assert sheet.width >= min(500, 12 * side)
    assert 0.4 < sheet.height / sheet.width < 2.3


def test_pixels_are_enlarged_to_squares() -> None:
    given = pixels(4, 8, 8)
    sheet = np.asarray(contact_sheet(given, columns=2, scale=3))
    first = sheet[SHEET_MARGIN : SHEET_MARGIN + 24, SHEET_MARGIN : SHEET_MARGIN + 24, 1]
    np.testing.assert_array_equal(first, np.kron(given[0], np.ones((3, 3), np.uint8)))
    corner = 24 + 6 + SHEET_MARGIN
    last = sheet[corner : corner + 24, corner : corner + 24, 0]
    np.testing.assert_array_equal(last, np.kron(given[3], np.ones((3, 3), np.uint8)))


def test_64_images_form_an_8_by_8_grid() -> None:
    sheet = contact_sheet(pixels(64, 28, 28), scale=1)
    assert sheet.width == sheet.height == 2 * SHEET_MARGIN + 8 * (28 + 5) - 5


def test_colours_are_kept_and_images_beyond_the_limit_dropped() -> None:
    colour = pixels(3, 8, 8, 3)
    sheet = np.asarray(contact_sheet(colour, columns=3, scale=1))
    np.testing.assert_array_equal(
        sheet[SHEET_MARGIN : SHEET_MARGIN + 8, SHEET_MARGIN : SHEET_MARGIN + 8], colour[0]
    )
    many = contact_sheet(pixels(1000, 8, 8), scale=1, most=9)
    assert many.size == contact_sheet(pixels(9, 8, 8), scale=1).size


def test_violating_samples_have_a_red_frame() -> None:
    data = from_array(np.zeros((6, 8, 8), np.uint8))
    assert reds(contact_sheet(data)) == 0
    right = data.assign(satisfied=("sample", np.ones(6, bool)))
    assert reds(contact_sheet(right)) == 0
    one = data.assign(satisfied=("sample", np.arange(6) != 2))
    two = data.assign(satisfied=("sample", np.arange(6) > 1))
    assert 0 < 2 * reds(contact_sheet(one)) == reds(contact_sheet(two))


def test_instances_share_a_frame() -> None:
    values = pixels(4, 2, 8, 8)
    pairs = xr.Dataset({"image": (("sample", "instance", "y", "x"), values)})
    sheet = contact_sheet(pairs, columns=2, scale=1)
    flat = contact_sheet(values.reshape(8, 8, 8), columns=2, scale=1, group=2)
    np.testing.assert_array_equal(np.asarray(sheet), np.asarray(flat))
    inner = np.asarray(sheet)[SHEET_MARGIN : SHEET_MARGIN + 8, SHEET_MARGIN : SHEET_MARGIN + 16, 0]
    np.testing.assert_array_equal(inner[:, :8], values[0, 0])
    np.testing.assert_array_equal(inner[:, 9:], values[0, 1][:, 1:])  # beside a thin line


def test_captions_enlarge_the_sheet() -> None:
    given = pixels(4, 8, 8)
    plain = contact_sheet(given, columns=2, scale=4)
    said = contact_sheet(given, columns=2, scale=4, captions=["a", "b", "c", "a long one that is"])
    assert said.width == plain.width
    assert said.height > plain.height
    titled = contact_sheet(given, columns=2, scale=4, title="what was asked")
    assert titled.height > plain.height


def test_columns_of_images_are_arranged_under_captions() -> None:
    truth = pixels(3, 8, 8)
    sheet = before_after({"truth": truth, "given": truth // 2, "sample": truth}, scale=2)
    named = before_after({"truth": truth, "given": truth // 2}, ["one", "two", "three"], scale=2)
    assert sheet.width == 2 * SHEET_MARGIN + 3 * 16 + 2 * 6
    assert named.width > 2 * SHEET_MARGIN + 2 * 16 + 6 + 12
    colour = np.repeat(truth[..., None], 3, -1)
    np.testing.assert_array_equal(
        np.asarray(before_after({"truth": truth})), np.asarray(before_after({"truth": colour}))
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: contact_sheet(np.zeros((3, 8, 8))), "shows bytes"),
        (lambda: contact_sheet(pixels(0, 8, 8)), "shows bytes"),
        (lambda: contact_sheet(pixels(3, 8, 8, 2)), "1 or 3 channels"),
        (lambda: contact_sheet(pixels(3, 8, 8), group=2), "divided into groups of 2"),
        (lambda: contact_sheet(pixels(3, 8, 8), captions=["a"]), "1 captions for 3"),
        (lambda: contact_sheet(pixels(3, 8, 8), scale=0), "1 or more"),
        (lambda: contact_sheet(xr.Dataset()), "no images"),
        (lambda: before_after({}), "no columns"),
        (lambda: before_after({"a": pixels(3, 8, 8), "b": pixels(2, 8, 8)}), "one size"),
        (lambda: before_after({"a": pixels(3, 8, 8)}, ["x"]), "1 captions for 3 rows"),
    ],
)
def test_unusable_images_are_refused(call: object, says: str) -> None:
    assert callable(call)
    with pytest.raises(ModelError, match=says):
        call()
