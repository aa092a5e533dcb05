"""Bridges: series pinned at a few steps, as a comma-separated list such as `S0=95, I0=5, S25=30`.

pin    = target "=" value               (or "==")
target = S25 | S(25) | S@2.5 | S@"1948-03-01" | "two words"(3) | beta
value  = 30 | 30+-2 | 28..32            exactly, within a tolerance, within an interval

`S@2.5` is S at the model time 2.5, `S@"1948-03-01"` on that date, `beta` a column: one number for
each sample, such as a parameter that was drawn. `S25` is split into a name and a
step. If the names of the signals are given, the split must yield one of them. If not, letters and
underscores followed by digits are split between the two; a name with digits inside, `X1_25`, or
without any, `beta`, is kept until the formula is compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from constraints.ast.formulas import Compare, Formula, conjunction
from constraints.ast.printer import number
from constraints.ast.terms import At, Name, Step
from constraints.ast.words import IDENTIFIER
from constraints.errors import Action, FormulaError, Remedy, caret, unknown

MAX_BRIDGE_LENGTH = 20_000  # characters in a bridge
MAX_NAME_LENGTH = 200  # characters in a name
MAX_STEP_DIGITS = 8  # digits of a step
MAX_QUOTED_LENGTH = 60  # characters of the text that an error quotes

_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\"\n]*'")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_RELATION = re.compile(r"==|<=|>=|!=|[=<>≤≥≠]")
_TOLERANCE = re.compile(r"\+-|\+/-|±")
_UNTIL_COMMA = re.compile(r"[^,\n]{1,40}")
_DIGITS = "0123456789"
_BRIDGE_EXAMPLE = 'write one such as "S0=95, S25=30"'


def bridge(text: str, names: Iterable[str] | None = None, columns: Iterable[str] = ()) -> Formula:
    """The conjunction of the pins in `text`, in order; `names` are the series of the data,
    `columns` its signals without steps.

    bridge("S0=95, S25=30, beta=1.5") == parse("S(0) = 95 and S(25) = 30 and beta = 1.5")
    """
    if not isinstance(text, str):
        raise FormulaError(f"a bridge is text, not {text!r}", value=text, remedy=_BRIDGE_EXAMPLE)
    if len(text) > MAX_BRIDGE_LENGTH:
        raise FormulaError(
            f"a bridge has at most {MAX_BRIDGE_LENGTH} characters, not {len(text)}",
            value=len(text),
            remedy="state it as several bridges",
        )
    if not text.strip():
        raise FormulaError("the bridge is empty", value=text, remedy=_BRIDGE_EXAMPLE)
    series = None if names is None else frozenset(names)
    return conjunction(*_PinReader(text, series, frozenset(columns)).pins())


def readings(word: str, names: Iterable[str]) -> list[tuple[str, int]]:
    """The ways to split `S25` into one of the names and a step."""
    known = frozenset(names)
    splits = range(max(1, len(word) - MAX_STEP_DIGITS), len(word))
    return [(word[:i], int(word[i:])) for i in splits if word[:i] in known and _is_step(word[i:])]


def ambiguous(word: str, found: Iterable[tuple[str, int]], *others: str) -> FormulaError:
    """Error for a word with several readings, `others` that are no series at a step."""
    choices = [*(f"{Name(name)}({when})" for name, when in found), *others]
    return FormulaError(f"{word} is ambiguous", value=word, remedy=f"write {' or '.join(choices)}")


class _PinReader:
    """Reads pins from left to right; `start` is the position of the last token."""

    def __init__(self, text: str, names: frozenset[str] | None, columns: frozenset[str]) -> None:
        self.text, self.names, self.columns = text, names, columns
        self.position = self.start = 0

    def pins(self) -> list[Formula]:
        """One comparison for each target; a repeated pin counts once."""
        found: dict[object, Compare] = {}
        while True:
            self.skip_spaces()
            place = self.position
            target = self.target()
            pin = self.value(target)
            first = found.setdefault(target.key, pin)
            if first != pin:
                raise caret(
                    self.text,
                    place,
                    f"{target} is pinned twice, {first} and {pin}",
                    "keep one of them",
                )
            if self.skip_spaces():
                return list(found.values())
            if not self.skip(","):
                raise self.error(
                    f"{self.next()!r} is misplaced", "a comma separates one pin from the next"
                )

    # targets

    def target(self) -> At | Name:
        """A series read at a step; a column; or `X1_25`, split when the formula is compiled."""
        quoted = self.take(_QUOTED)
        word = quoted[1:-1] if quoted else self.take(IDENTIFIER)
        place = self.start
        if word is None:
            raise self.missing_target()
        if len(word) > MAX_NAME_LENGTH:
            problem = f"a name has at most {MAX_NAME_LENGTH} characters, not {len(word)}"
            raise caret(self.text, place, problem, "is a comma missing?", value=len(word))
        try:
            name = Name(word, quoted=quoted is not None)
        except FormulaError as problem:
            raise problem.pointing(self.text, place) from None
        if self.skip("("):
            return At(self.known(name, place), self.step(name))
        if self.skip("@"):
            day = self.take(_QUOTED)
            if day is not None:
                return At(self.known(name, place), self.date(day))
            time = self.number("a model time is a finite number", f"write {name}@2.5")
            return At(self.known(name, place), Step(None, 0, time))
        if word in self.columns:
            found = [] if quoted else readings(word, self.names or ())
            if found:
                raise ambiguous(word, found, f'"{word}"').pointing(self.text, place)
            return name
        if not quoted and word[-1] in _DIGITS and self.next() != ".":
            return self.compact(word, place)
        if self.names is None and self.next() in ("", "=") and not set(word) & set(_DIGITS):
            return name
        self.known(name, place, word.rstrip(_DIGITS))
        raise self.missing_step(name).pointing(self.text, place)

    def missing_target(self) -> FormulaError:
        """Error where no target starts."""
        if self.skip_spaces() or self.next() == ",":
            return self.error("a pin is missing here", "drop the comma, or write S25=30")
        if self.next() in "\"'":
            return self.error("this quotation mark has no partner on its line", "close the name")
        return self.error(
            f"{self.next()!r} does not start the name of a signal",
            'write a pin such as S25=30, S(25)=30, S@2.5=30 or "two words"(3)=4',
        )

    def missing_step(self, name: Name) -> FormulaError:
        """Error for a target without a step."""
        if self.next() == "[":
            return FormulaError(
                f"the step of {name} is in square brackets", remedy=f"write {name}(25)"
            )
        stem = name.name.rstrip(_DIGITS)
        written = name.name[len(stem) :] + (self.take(_NUMBER) or "")
        if written and not name.quoted and (self.names is None or stem in self.names):
            return _not_a_step(Name(stem), written)
        return _no_step(name)

    def known(self, name: Name, place: int, *others: str) -> Name:
        """The name, if it (or one of `others`) is a signal."""
        if self.names is not None and self.names.isdisjoint((name.name, *others)):
            every = (*self.names, *self.columns)
            raise unknown("signal", name.name, every).pointing(self.text, place)
        return name

    def step(self, name: Name) -> Step:
        """The step in `S(25)`, its closing bracket included."""
        written = self.take(_NUMBER)
        if written is None:
            problem = f"a step is a whole number, not {self.next()!r}"
            raise self.error(problem, f"write {name}(25)")
        if not _is_step(written):
            raise _not_a_step(name, written).pointing(self.text, self.start)
        if not self.skip(")"):
            raise self.error("a closing bracket is missing", f"write {name}({written})")
        return Step(None, int(written))

    def date(self, written: str) -> Step:
        """The date in `S@"1948-03-01"`."""
        try:
            return Step(None, 0, written[1:-1])
        except FormulaError as problem:
            raise problem.pointing(self.text, self.start) from None

    def compact(self, word: str, place: int) -> At | Name:
        """`S25`, split by the names if they are given, else at its digits."""
        stem = word.rstrip(_DIGITS)
        digits = word[len(stem) :]
        if self.names is None:
            if any(letter.isdigit() for letter in stem):
                return Name(word)
            found = [(stem, int(digits))] if _is_step(digits) else []
        else:
            found = readings(word, self.names)
        if len(found) == 1:
            return At(Name(found[0][0]), Step(None, found[0][1]))
        if found:
            raise ambiguous(word, found).pointing(self.text, place)
        name = self.known(Name(stem), place, word)
        if self.names is not None and word in self.names:
            raise _no_step(Name(word)).pointing(self.text, place)
        raise _not_a_step(name, digits).pointing(self.text, place)

    # values

    def value(self, target: At | Name) -> Compare:
        """The equality of a target with its value, from the sign on."""
        sign = self.take(_RELATION)
        if sign is None:
            found = "ends" if self.skip_spaces() else f"is followed by {self.next()!r}"
            raise self.error(
                f"{target} {found} where = and a value are expected", f"write {target}=30"
            )
        if sign not in ("=", "=="):
            raise caret(
                self.text,
                self.start,
                f"{sign} is not a pin",
                (
                    "for inequalities use ",
                    Action(f'where="{target} {sign} 30"', f'--where "{target} {sign} 30"'),
                    f", or an interval: {target}=28..32",
                ),
            )
        examples = f"write {target}=30, {target}=30+-2 or {target}=28..32"
        value = self.number("the value is a finite number", examples)
        if self.take(_TOLERANCE):
            remedy = f"write {target}=30+-2"
            tolerance = self.number("a tolerance is a number >= 0", remedy)
            if tolerance < 0:
                problem = f"a tolerance is a number >= 0, not {number(tolerance)}"
                raise caret(self.text, self.start, problem, remedy, value=tolerance)
            return target.equals(value, tolerance)
        if self.skip(".."):
            high = self.number("the end of an interval is a number", f"write {target}=28..32")
            if high < value:
                raise caret(
                    self.text,
                    self.start,
                    f"the interval {number(value)}..{number(high)} is empty",
                    f"did you mean {number(high)}..{number(value)}?",
                )
            return target.between(value, high)
        return target.equals(value)

    def number(self, expected: str, remedy: str) -> float:
        """A finite number; if there is none, an error that states what is expected."""
        written = self.take(_NUMBER)
        if written is None:
            found = _UNTIL_COMMA.match(self.text, self.position)
            bad = f"not {found[0].strip()!r}" if found else "and none is here"
            raise self.error(f"{expected}, {bad}", remedy)
        value = float(written) + 0.0  # -0 is 0
        if not math.isfinite(value):
            problem = f"{expected}, not {_shortened(written)}"
            raise caret(self.text, self.start, problem, remedy, value=written)
        return value

    # tokens

    def take(self, pattern: re.Pattern[str]) -> str | None:
        """The next token if it matches, after spaces."""
        self.skip_spaces()
        found = pattern.match(self.text, self.position)
        if found is None:
            return None
        self.start, self.position = found.span()
        return found[0]

    def skip(self, mark: str) -> bool:
        """Whether the text goes on with `mark`, which is then read."""
        self.skip_spaces()
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        return True

    def skip_spaces(self) -> bool:
        """Skip spaces; whether the text ends there."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.position == len(self.text)

    def next(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.position : self.position + 1]

    def error(self, problem: str, remedy: Remedy = ()) -> FormulaError:
        """An error at the current position."""
        return caret(self.text, self.position, problem, remedy)


def _is_step(written: str) -> bool:
    return written.isascii() and written.isdecimal() and len(written) <= MAX_STEP_DIGITS


def _no_step(name: Name) -> FormulaError:
    return FormulaError(
        f"{name} does not say when",
        value=name.name,
        remedy=f"write {name}(0)=... for a step, {name}@2.5=... for a model time",
    )


def _not_a_step(name: Name, written: str) -> FormulaError:
    """Error for a number that cannot be a step."""
    shown, time = _shortened(written), _shortened(written.lstrip("+"))
    if written.startswith("-"):
        problem = f"{name} has no step {shown}"
        remedy = f"steps are counted from 0, as in {name}(0)"
    elif written.isdecimal():
        problem, remedy = f"step {shown} is beyond any grid", "is a comma missing?"
    elif time.isdecimal():
        problem, remedy = f"the step {shown} has a sign", f"write {name}({time})"
    else:
        problem = f"{shown} is not a step, which is a whole number"
        remedy = f"for the model time write {name}@{time}"
    return FormulaError(problem, value=written, remedy=remedy)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_QUOTED_LENGTH else text[: MAX_QUOTED_LENGTH - 3] + "..."
