"""Bridges: series pinned at a few steps, as a comma-separated list such as `S0=95, I0=5, S25=30`.

pin    = target "=" value               (or "==")
target = S25 | S(25) | S@2.5 | "odd name"(3)
value  = 30 | 30+-2 | 28..32            exactly, within a tolerance, within an interval

`S@2.5` is the model time 2.5. `S25` is cut into a name and a step: where the names of the signals
are known, by the one cut that fits them. Where they are not, letters and underscores followed by
digits are cut between the two; a name with digits inside, `X1_25`, stays as it is until the
formula is compiled, when the layout cuts it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from constraints.ast.formulas import Compare, Formula, conjunction
from constraints.ast.printer import number
from constraints.ast.terms import At, Name, Step
from constraints.errors import Action, FormulaError, caret, unknown

MAX_BRIDGE_LENGTH = 20_000  # characters in a bridge
MAX_NAME_LENGTH = 200  # characters in a name
MAX_STEP_DIGITS = 8  # in a step

_WORD = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\"\n]*'")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_RELATION = re.compile(r"==|<=|>=|!=|[=<>≤≥≠]")
_TOLERANCE = re.compile(r"\+-|\+/-|±")
_UNTIL_COMMA = re.compile(r"[^,\n]{1,40}")
_DIGIT = "0123456789"


def bridge(text: str, names: Iterable[str] | None = None) -> Formula:
    """The conjunction of the pins in `text`, in order; `names` are the signals of the data.

    bridge("S0=95, S25=30") == parse("S(0) = 95 and S(25) = 30")
    """
    if not isinstance(text, str):
        raise FormulaError(f'a bridge is text such as "S0=95, S25=30", not {text!r}')
    if len(text) > MAX_BRIDGE_LENGTH:
        raise FormulaError(f"a bridge has at most {MAX_BRIDGE_LENGTH} characters, not {len(text)}")
    if not text.strip():
        raise FormulaError('the bridge is empty; write one such as "S0=95, S25=30"')
    return conjunction(*_Reader(text, None if names is None else frozenset(names)).pins())


def readings(word: str, names: Iterable[str]) -> list[tuple[str, int]]:
    """The ways to cut `S25` into one of the names and a step."""
    known = frozenset(names)
    cuts = range(max(1, len(word) - MAX_STEP_DIGITS), len(word))
    return [
        (word[:cut], int(word[cut:])) for cut in cuts if word[:cut] in known and _whole(word[cut:])
    ]


def ambiguous(word: str, found: Iterable[tuple[str, int]]) -> FormulaError:
    """Error for a word with several readings."""
    choices = " or ".join(f"{Name(name)}({when})" for name, when in found)
    return FormulaError(f"{word} is ambiguous: write {choices}", value=word)


class _Reader:
    """Reads pins from left to right; `start` is where the last piece read began."""

    def __init__(self, text: str, names: frozenset[str] | None) -> None:
        self.text, self.names = text, names
        self.position = self.start = 0

    def pins(self) -> list[Formula]:
        """One comparison a target; a pin that is repeated counts once."""
        found: dict[object, Compare] = {}
        while True:
            self.done()
            place = self.position
            target = self.target()
            pin = self.value(target)
            first = found.setdefault(target.key, pin)
            if first != pin:
                raise caret(
                    self.text,
                    place,
                    f"{target} is pinned twice, {first} and {pin}; keep one of them",
                )
            if self.done():
                return list(found.values())
            if not self.skip(","):
                raise self.error(
                    f"{self.next()!r} is misplaced; a comma separates one pin from the next"
                )

    # targets

    def target(self) -> At | Name:
        """A series read at a step; or `X1_25`, to be cut when the signals are known."""
        quoted = self.take(_QUOTED)
        word = quoted[1:-1] if quoted else self.take(_WORD)
        place = self.start
        if word is None:
            raise self.error(self.missing())
        if len(word) > MAX_NAME_LENGTH:
            what = f"a name has at most {MAX_NAME_LENGTH} characters, not {len(word)}"
            raise caret(self.text, place, f"{what}; is a comma missing?")
        try:
            name = Name(word, quoted=quoted is not None)
        except FormulaError as problem:
            raise problem.pointing(self.text, place) from None
        if self.skip("("):
            return At(self.known(name, place), self.step(name))
        if self.skip("@"):
            time = self.number(f"a model time is a finite number, as in {name}@2.5")
            return At(self.known(name, place), Step(None, 0, time))
        if not quoted and word[-1] in _DIGIT and self.next() != ".":
            return self.compact(word, place)
        self.known(name, place, word.rstrip(_DIGIT))
        raise caret(self.text, place, self.timeless(name))

    def missing(self) -> str:
        """What is wrong where no target starts."""
        if self.done() or self.next() == ",":
            return "a pin is missing here: drop the comma, or write one such as S25=30"
        if self.next() in "\"'":
            return "this quotation mark has no partner on its line"
        return (
            f"{self.next()!r} does not start the name of a signal; pins look like S25=30, "
            'S(25)=30, S@2.5=30, "odd name"(3)=4'
        )

    def timeless(self, name: Name) -> str:
        """What is wrong with a target that has no step."""
        if self.next() == "[":
            return f"a step stands in round brackets: {name}(25)"
        stem = name.name.rstrip(_DIGIT)
        written = name.name[len(stem) :] + (self.take(_NUMBER) or "")
        if written and not name.quoted and (self.names is None or stem in self.names):
            return _not_a_step(Name(stem), written)
        return _no_step(name)

    def known(self, name: Name, place: int, *others: str) -> Name:
        """The name, if it (or another) is a signal."""
        if self.names is not None and self.names.isdisjoint((name.name, *others)):
            raise unknown("signal", name.name, self.names).pointing(self.text, place)
        return name

    def step(self, name: Name) -> Step:
        """The step in `S(25)`, its closing bracket included."""
        written = self.take(_NUMBER)
        if written is None:
            raise self.error(f"a step is a whole number, as in {name}(25), not {self.next()!r}")
        if not _whole(written):
            raise caret(self.text, self.start, _not_a_step(name, written))
        if not self.skip(")"):
            raise self.error(f"a closing bracket is missing: write {name}({written})")
        return Step(None, int(written))

    def compact(self, word: str, place: int) -> At | Name:
        """`S25`: by the names if they are known, else by its digits."""
        stem = word.rstrip(_DIGIT)
        digits = word[len(stem) :]
        if self.names is None:
            if any(letter.isdigit() for letter in stem):
                return Name(word)
            found = [(stem, int(digits))] if _whole(digits) else []
        else:
            found = readings(word, self.names)
        if len(found) == 1:
            return At(Name(found[0][0]), Step(None, found[0][1]))
        if found:
            raise ambiguous(word, found).pointing(self.text, place)
        name = self.known(Name(stem), place, word)
        if self.names is not None and word in self.names:
            raise caret(self.text, place, _no_step(Name(word)))
        raise caret(self.text, place, _not_a_step(name, digits))

    # values

    def value(self, target: At | Name) -> Compare:
        """What the target is pinned to, with the sign before it."""
        sign = self.take(_RELATION)
        if sign is None:
            found = "stops here" if self.done() else f"goes on with {self.next()!r}"
            raise self.error(f"{target} {found} where = and a value are wanted: {target}=30")
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
        wanted = (
            f"the value is a finite number, as in {target}=30, {target}=30+-2 or {target}=28..32"
        )
        value = self.number(wanted)
        if self.take(_TOLERANCE):
            tolerance = self.number(f"a tolerance is a number >= 0, as in {target}=30+-2")
            if tolerance < 0:
                raise caret(self.text, self.start, f"a tolerance is >= 0, not {number(tolerance)}")
            return target.equals(value, tolerance)
        if self.skip(".."):
            high = self.number(f"an interval ends in a number, as in {target}=28..32")
            if high < value:
                raise caret(
                    self.text,
                    self.start,
                    f"the interval {number(value)}..{number(high)} is empty; did you mean "
                    f"{number(high)}..{number(value)}?",
                )
            return target.between(value, high)
        return target.equals(value)

    def number(self, wanted: str) -> float:
        """A finite number; `wanted` says what it is for."""
        written = self.take(_NUMBER)
        if written is None:
            found = _UNTIL_COMMA.match(self.text, self.position)
            raise self.error(
                f"{wanted}, not {found[0].strip()!r}" if found else f"{wanted}; none is here"
            )
        value = float(written) + 0.0  # -0 is 0
        if not math.isfinite(value):
            raise caret(self.text, self.start, f"{_short(written)} is not finite; {wanted}")
        return value

    # pieces

    def take(self, pattern: re.Pattern[str]) -> str | None:
        """The next piece if it matches, spaces before it skipped."""
        self.done()
        found = pattern.match(self.text, self.position)
        if found is None:
            return None
        self.start, self.position = found.span()
        return found[0]

    def skip(self, mark: str) -> bool:
        self.done()
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        return True

    def done(self) -> bool:
        """Whether only spaces are left; skips them."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.position == len(self.text)

    def next(self) -> str:
        return self.text[self.position : self.position + 1]

    def error(self, message: str) -> FormulaError:
        return caret(self.text, self.position, message)


def _whole(written: str) -> bool:
    return written.isascii() and written.isdecimal() and len(written) <= MAX_STEP_DIGITS


def _no_step(name: Name) -> str:
    return f"{name} does not say when: write {name}(0)=... or {name}@2.5=..."


def _not_a_step(name: Name, written: str) -> str:
    """Why what stands for a step is none, and what to write."""
    if written.startswith("-"):
        return f"{name} has no step {_short(written)}: steps are counted from 0, as in {name}(0)"
    if written.isdecimal():
        return f"step {_short(written)} is beyond any grid"
    time = _short(written.lstrip("+"))
    if time.isdecimal():
        return f"a step has no sign: write {name}({time})"
    return f"{_short(written)} is not a step, which is a whole number; model time is {name}@{time}"


def _short(word: str) -> str:
    return word if len(word) <= 60 else word[:57] + "..."
