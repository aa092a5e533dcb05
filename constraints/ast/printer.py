"""The printer: nodes as text that parses back to them, with as few parentheses as possible."""

from __future__ import annotations

from dataclasses import dataclass

from constraints.ast.families import Distribution, Observation
from constraints.ast.formulas import (
    And,
    Annotated,
    Compare,
    Formula,
    Holds,
    Iff,
    Implies,
    Not,
    Or,
    Quantifier,
    Reaches,
    Until,
    Xor,
)
from constraints.ast.lowered import ClassProbability, HasClass, LatentColumn, Pixel, Pixels
from constraints.ast.nodes import Node, as_text
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.words import END, IDENTIFIER, NOW, RESERVED_WORDS, is_built_in

# precedence, loosest first; an operand of lower precedence is written in parentheses
OPEN, IFF, IMPLIES, OR, XOR, AND, UNTIL, PREFIX, COMPARE, SUM, PRODUCT, UNARY, POWER, ATOM = range(
    14
)
_UNTIL = {
    ("exists", False): "until",
    ("forall", False): "release",
    ("exists", True): "since",
    ("forall", True): "trigger",
}


@as_text.register
def text(node: Node) -> str:
    """The node as text."""
    return _Writer(frozenset()).text(node)


def number(value: float) -> str:
    """The shortest text that reads back as `value`."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def name(word: str, quoted: bool = False) -> str:
    """A name, in quotation marks if it is reserved or not an identifier."""
    taken = quoted or word in RESERVED_WORDS or is_built_in(word)
    return word if IDENTIFIER.fullmatch(word) and not taken else f'"{word}"'


@dataclass(frozen=True)
class _Writer:
    """Writes nodes; a signal with the name of a bound variable is written in quotation marks."""

    bound: frozenset[str]

    def text(self, node: Node) -> str:
        return self.show(node)[0]

    def show(self, node: Node) -> tuple[str, int]:
        """The text and its precedence."""
        return self.formula(node) if isinstance(node, Formula) else self.term(node)

    def operand(self, node: Node, level: int) -> str:
        shown, own = self.show(node)
        return shown if own >= level else f"({shown})"

    def name(self, word: str, quoted: bool = False) -> str:
        return name(word, quoted or word in self.bound)

    def formula(self, node: Formula) -> tuple[str, int]:
        match node:
            case And(()):
                return "true", ATOM
            case Or(()):
                return "false", ATOM
            case And(parts):
                return " and ".join(self.operand(part, AND + 1) for part in parts), AND
            case Or(parts):
                return " or ".join(self.operand(part, OR + 1) for part in parts), OR
            case Not(body):
                return f"not {self.operand(body, PREFIX)}", PREFIX
            case Implies(left, right):
                return f"{self.operand(left, OR)} implies {self.operand(right, IMPLIES)}", IMPLIES
            case Iff(left, right):
                return f"{self.operand(left, IFF)} iff {self.operand(right, IMPLIES)}", IFF
            case Xor(left, right):
                return f"{self.operand(left, XOR)} xor {self.operand(right, AND)}", XOR
            case Compare(terms, relations, tolerance):
                shown = self.operand(terms[0], SUM)
                for relation, term in zip(relations, terms[1:], strict=True):
                    shown += f" {relation} {self.operand(term, SUM)}"
                return shown + ("" if tolerance is None else f" +- {number(tolerance)}"), COMPARE
            case Observation(value, distribution):
                return f"{number(value)} ~ {self.text(distribution)}", COMPARE
            case Holds(call):
                return self.show(call)
            case HasClass(chance, positive):
                return self.show(chance) if positive else (f"not {self.text(chance)}", PREFIX)
            case Quantifier():
                return self.quantifier(node)
            case Until(kind, left, right, first, last, past, weak):
                window = f"[{first},{END if last is None else last}]"
                word = ("weak " if weak else "") + _UNTIL[kind, past]
                word += "" if (first, last) == (0, None) else window
                return f"{self.operand(left, PREFIX)} {word} {self.operand(right, PREFIX)}", UNTIL
            case Reaches(body, first, last):
                inside = [self.text(body), *_window(first, last)]
                return self.call("reaches", inside)
            case Annotated(body, k, weight):
                pairs = [("k", k), ("weight", weight)]
                given = ", ".join(f"{key}={number(x)}" for key, x in pairs if x is not None)
                return f"({self.text(body)}) {{{given}}}", ATOM
        raise TypeError(f"{type(node).__name__} is not a formula that prints")

    def quantifier(self, node: Quantifier) -> tuple[str, int]:
        body = _Writer(self.bound | {node.variable}).text(node.body)
        sugar = _sugar(node)
        if sugar is not None:
            return f"{sugar}({body})", PREFIX
        where = ""
        if _region(node.region) is not None:
            where = f" in {self.name(str(_region(node.region)))}"
        elif node.first is not None and node.last is not None:
            where = f" in [{_step(node.first)[0]}, {_step(node.last)[0]}]"
        return f"{node.kind} {node.variable}{where}: {body}", OPEN

    def term(self, node: Node) -> tuple[str, int]:
        match node:
            case Const(value):
                return number(value), ATOM if value >= 0 else UNARY
            case Name(word, instance, quoted):
                return self.name(word, quoted) + ("" if instance is None else f"[{instance}]"), ATOM
            case LatentColumn(signal):
                return self.term(signal)
            case Step():
                return _step(node)
            case Pixels(region):
                return self.name(region or "image"), ATOM
            case Pixel(image, row, column):
                return f"{self.operand(image, ATOM)}({self.text(row)}, {self.text(column)})", ATOM
            case ClassProbability(classifier, image, Const(label), labels) if label in dict(labels):
                word = dict(labels)[int(label)]
                shown = word if word == number(label) else self.name(word, quoted=True)
                return self.call(self.name(classifier), [self.text(image), shown])
            case ClassProbability(classifier, image, label):
                return self.call(self.name(classifier), [self.text(image), self.text(label)])
            case At(series, Step(None, 0, float() | str() as time)):
                return f"{self.operand(series, ATOM)}@{_time(time)}", ATOM
            case At(series, step):
                return f"{self.operand(series, ATOM)}({_step(step)[0]})", ATOM
            case Aggregate(kind, body, first, last, region, parameters):
                name = _region(region)
                where = [] if name is None else [self.name(name)]
                inside = [self.text(body), *map(number, parameters)]
                return self.call(kind, [*inside, *_window(first, last), *where])
            case Count(body, first, last):
                return self.call("count", [self.text(body), *_window(first, last)])
            case Distribution(family, parameters):
                return self.call(family.name, [self.text(each) for each in parameters])
            case Apply("+", arguments):
                return self.sum(arguments), SUM
            case Apply("neg", (body,)):
                return f"-{self.operand(body, UNARY)}", UNARY
            case Apply("*" | "/" as symbol, (left, right)):
                factors = self.operand(left, PRODUCT), self.operand(right, PRODUCT + 1)
                return f"{factors[0]} {symbol} {factors[1]}", PRODUCT
            case Apply("pow", (left, right)):
                return f"{self.operand(left, ATOM)} ^ {self.operand(right, UNARY)}", POWER
            case Apply(function, arguments):
                return self.apply(function, arguments)
        raise TypeError(f"{type(node).__name__} is not a term that prints")

    def call(self, function: str, arguments: list[str]) -> tuple[str, int]:
        return f"{function}({', '.join(arguments)})", ATOM

    def apply(self, function: str, arguments: tuple[Term, ...]) -> tuple[str, int]:
        """A call of a function; numbers that would be parsed as steps get a plus sign."""
        shown = [self.text(argument) for argument in arguments]
        if not is_built_in(function):
            if len(arguments) == 1 and isinstance(arguments[0], (Const, Step)):
                shown = [f"+{self.operand(arguments[0], ATOM)}"]
            return self.call(self.name(function), shown)
        if len(arguments) == 3 and all(_as_step(each) for each in arguments[1:]):
            shown[1] = f"+{self.operand(arguments[1], ATOM)}"
        return self.call(function, shown)

    def sum(self, parts: tuple[Term, ...]) -> str:
        shown = self.operand(parts[0], PRODUCT)
        for part in parts[1:]:
            match part:
                case Const(value) if value < 0:
                    shown += f" - {number(-value)}"
                case Apply("neg", (body,)):
                    shown += f" - {self.operand(body, PRODUCT)}"
                case _:
                    shown += f" + {self.operand(part, PRODUCT)}"
        return shown


def _as_step(argument: Term) -> bool:
    """Whether its text would be parsed as a step."""
    if isinstance(argument, Const):
        return argument.value.is_integer() and argument.value >= 0
    return isinstance(argument, Step)


def _sugar(node: Quantifier) -> str | None:
    """The temporal operator that abbreviates a quantifier over `now`; None if none does."""
    first, last = node.first, node.last
    if node.variable != NOW or first is None or last is None:
        return None
    if first.time is not None or last.time is not None:
        return None
    ahead, behind = ("always", "historically") if node.kind == "forall" else ("eventually", "once")
    a, b = first.offset, last.offset
    match first.base, last.base:
        case "now", "end" if a >= 0 and b == 0:
            return f"{ahead}[{a},end]" if a else ahead
        case "now", "now" if 0 <= a <= b:
            return f"{ahead}[{a},{b}]"
        case "now", "now" if a <= b <= 0:
            return f"{behind}[{-b},{-a}]"
        case None, "now" if a == 0 and b == 0:
            return behind
    return None


def _region(region: str | Node | None) -> str | None:
    return region.region if isinstance(region, Pixels) else None if region is None else str(region)


def _window(first: Step | None, last: Step | None) -> list[str]:
    return [] if first is None or last is None else [_step(first)[0], _step(last)[0]]


def _step(node: Step) -> tuple[str, int]:
    if node.time is not None:
        return f"@{_time(node.time)}", ATOM
    if node.base is None:
        return str(node.offset), ATOM if node.offset >= 0 else UNARY
    if node.offset:
        return f"{node.base} {'+' if node.offset > 0 else '-'} {abs(node.offset)}", SUM
    return node.base, ATOM


def _time(time: float | str) -> str:
    """A model time, or a date in quotation marks."""
    return f'"{time}"' if isinstance(time, str) else number(time)
