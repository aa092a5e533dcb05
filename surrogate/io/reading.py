"""How files are read: the options of each kind of data, as fields with their help.

They stand here, apart from the kinds that use them, because the command line makes its options from
them and this module loads neither pandas nor xarray.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields

from surrogate.errors import ModelError
from surrogate.settings import option, options_of

Size = tuple[int, int]  # width, height

_SIZE = re.compile(r"(\d{1,5})(?:x(\d{1,5}))?", re.IGNORECASE)


def _size_in(text: str) -> Size:
    """32 or 32x24 as a width and a height."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ModelError(
            f"{text!r} is no size",
            value=text,
            remedy="give a side, 32, or a width and a height, 32x24",
        )
    return int(found[1]), int(found[2] or found[1])


@dataclass(frozen=True)
class ImageOptions:
    """How files of images are read."""

    array: str | None = option(
        None, help="Read images from the array KEY of an .npz file.", metavar="KEY", type=str
    )
    labels: str | None = option(
        None,
        help="Read labels of images from FILE (IDX, .npy), or from an array of the .npz file "
        "[default: as found].",
        metavar="FILE",
        type=str,
    )
    size: int | Size | None = option(
        None,
        help="Scale images to a size, and crop them around the middle.",
        metavar="32|WxH",
        parse=_size_in,
        type=str,
    )
    grey: bool = option(False, help="Convert images to grey.")
    skip_damaged: bool = option(False, help="Leave out pictures of a folder that cannot be read.")


@dataclass(frozen=True)
class SceneryOptions:
    """What formulas about images may name: see `surrogate.kinds.images.scenery`."""

    pictures: tuple[str, ...] = option(
        (),
        help="Name a picture (.png, .jpg, .npy) in rules; repeatable.",
        metavar="NAME=FILE",
        flag="--picture",
        type=str,
        repeatable=True,
    )
    regions: tuple[str, ...] = option(
        (),
        help="Name pixels of images in rules, eyes=8:14,4:28 or eyes=mask.png (where it is white); "
        "repeatable.",
        metavar="NAME=ROWS,COLUMNS",
        flag="--region",
        type=str,
        repeatable=True,
    )
    classifiers: tuple[str, ...] = option(
        (),
        help="Name a classifier of images in rules [default: class]; repeatable.",
        metavar="[NAME=]FOLDER",
        flag="--classifier",
        type=str,
        repeatable=True,
    )


def pairs_in(texts: Sequence[str]) -> dict[str, str]:
    """B=I, C=R as a mapping of columns to terms."""
    found: dict[str, str] = {}
    for text in texts:
        for each in text.split(","):
            column, sign, term = (part.strip() for part in each.partition("="))
            if not (column and sign and term):
                raise ModelError(
                    f"{each!r} maps no column",
                    value=each,
                    remedy="write COLUMN=VARIABLE, such as B=I",
                )
            if found.get(column, term) != term:
                raise ModelError(
                    f"{column} is mapped twice, to {found[column]} and to {term}",
                    value=column,
                    remedy="keep one of them",
                )
            found[column] = term
    return found


@dataclass(frozen=True)
class ObservationOptions:
    """How observed numbers are read, and what they are observations of."""

    columns: Mapping[str, str] | None = option(
        None,
        help="Take a column of the observed data as values of a variable, or of a term of "
        "variables (B=I, cases=0.5*I); repeatable [default: columns of the same name].",
        metavar="COLUMN=TERM",
        flag="--map",
        parse=pairs_in,
        type=str,
        repeatable=True,
    )
    noise: tuple[str, ...] = option(
        (),
        help="Distribution of observed numbers given the variables, poisson(0.9*I), or of one "
        "column, 'B ~ poisson(0.9*I)'; repeatable [default: they are exact].",
        metavar="DISTRIBUTION",
        type=str,
        repeatable=True,
    )
    time: str | None = option(
        None,
        help="Column of times, dates or steps of the observed data [default: by its name].",
        metavar="COLUMN",
        type=str,
    )
    upto: str | None = option(
        None,
        help="Condition only on what was observed up to this time or date.",
        metavar="TIME",
        type=str,
    )
    every: int = option(
        1, help="Condition on every k-th of the observed times only.", low=1, type=int
    )
    nearest: bool = option(
        False, help="Move observed times to the nearest ones of the model's grid."
    )

    def __post_init__(self) -> None:
        for name, each in options_of(type(self)).items():
            each.check(getattr(self, name))


def names_in(text: str) -> list[str]:
    """A,B as names of columns."""
    return [name.strip() for name in text.split(",")]


@dataclass(frozen=True)
class TableOfRuns:
    """How a table holds trajectories: long (`id`, `time`), a series (`window`), or wide."""

    time: str | None = option(
        None, help="Read times from this column of a table.", metavar="COLUMN", type=str
    )
    id: str | None = option(
        None, help="Tell runs apart by this column of a long table.", metavar="COLUMN", type=str
    )
    wide: bool = option(
        False, help="Read a run from each row of a table, its steps from columns: S0, S1, S2."
    )
    columns: list[str] | None = option(
        None,
        help="Use these columns of a table [default: all others].",
        metavar="A,B",
        type=str,
        parse=names_in,
    )
    window: int | None = option(
        None, help="Cut a long series into windows of this many steps.", type=int
    )
    stride: int | None = option(
        None, help="Steps from one window to the next [default: --window].", type=int
    )
    pool: str | None = option(
        None, help="Take columns as runs of one variable of this name.", metavar="NAME", type=str
    )
    missing: str | None = option(
        None,
        help="Refuse missing values of a table, drop their rows or runs, or model them [default: "
        "model them in rows, refuse them in runs].",
        choices=("refuse", "drop", "model"),
        type=str,
    )
    irregular: str | None = option(
        None,
        help="Refuse times that are not evenly spaced, or take rows as steps [default: refuse; "
        "weekends and holidays of trading days are left out].",
        choices=("refuse", "steps"),
        type=str,
    )
    calendar: str | None = option(
        None,
        help="Learn the place of windows in these cycles of the calendar: year, week, day, several "
        "with commas, or none [default: those that a trial on left-out windows favours].",
        metavar="CYCLES",
        type=str,
    )


SHARED_OPTIONS = ("columns", "missing")  # with tables of rows; the others tell that rows are steps
RUN_OPTIONS = tuple(each.name for each in fields(TableOfRuns) if each.name not in SHARED_OPTIONS)


def says_runs(given: Collection[str]) -> bool:
    """Whether options say that the rows of a table are time steps."""
    return any(name in RUN_OPTIONS for name in given)


def types_in(texts: Sequence[str]) -> dict[str, str]:
    """COLUMN=TYPE texts as {column: type}; a column's name may hold an equals sign itself."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, kind = (part.strip() for part in text.rpartition("="))
        if not equals or not name or not kind:
            raise ModelError(
                f"{text!r} is no type of a column",
                value=text,
                remedy="give COLUMN=TYPE, as in quality=category",
            )
        if found.get(name, kind) != kind:
            raise ModelError(
                f"the type of {name!r} is given as {found[name]} and as {kind}",
                value=(found[name], kind),
                remedy="give one",
            )
        found[name] = kind
    return found


@dataclass(frozen=True)
class TableOptions:
    """How a table of rows is read."""

    columns: list[str] | None = option(
        None,
        help="Use these columns of a table [default: all others].",
        metavar="A,B",
        type=str,
        parse=names_in,
    )
    types: Mapping[str, str] | None = option(
        None,
        help="Learn COLUMN of a table as number, integer, category, boolean or date, or ignore it "
        "[default: by its values]; repeatable.",
        metavar="COLUMN=TYPE",
        flag="--type",
        type=str,
        parse=types_in,
        repeatable=True,
    )
    missing: str | None = option(
        None,
        help="Refuse missing values of a table, drop their rows or runs, or model them [default: "
        "model them in rows, refuse them in runs].",
        choices=("refuse", "drop", "model"),
        type=str,
    )
