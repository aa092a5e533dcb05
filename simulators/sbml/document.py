"""An SBML file as a libsbml document; what would crash libsbml, or be misread, is refused first.

libsbml recurses over nested elements, folds a long sum into a deep tree and reads the number `1,5`
as 1. So a file is first walked by expat, which does not recurse, and only then handed over.
"""

from __future__ import annotations

import re
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any
from xml.parsers import expat

from simulators.errors import Action, InputError, Remedy

MAX_SBML_BYTES = 20_000_000
MAX_XML_NESTING = 200
MAX_XML_ELEMENTS = 300_000
MAX_MATH_ELEMENTS = 10_000  # in one formula
MAX_NAMESPACES = 1_000  # in scope at one place
SIMPLIFY = "simplify the model"
GIVE_SBML: Remedy = (
    "give an SBML file of Level 2 or 3, or a built-in model: ",
    Action("simulators.models.MODELS", "surrogate models"),
    " lists them",
)
_MATHML = "http://www.w3.org/1998/Math/MathML"
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_REAL = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_NUMBER_PATTERNS = {
    "real": (_REAL,),
    "integer": (_INTEGER,),
    "e-notation": (_REAL, _INTEGER),
    "rational": (_INTEGER, _INTEGER),
}
# Packages whose meaning is covered here although they say that it is required.
_UNDERSTOOD = re.compile(r"http://www\.sbml\.org/sbml/level3/version\d+/l3v2extendedmath/.*")


def library() -> Any:
    """libsbml, which is optional and takes a while to load."""
    try:
        return import_module("libsbml")
    except ImportError:
        raise InputError(
            "reading SBML needs python-libsbml",
            remedy="install it: pip install 'surrogate-toolkit[sbml]'",
        ) from None


def read_document(path: str | PathLike[str]) -> Any:
    """The libsbml document of a file; any error in it is an `InputError` with its line."""
    libsbml = library()
    data = _contents(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not an SBML file: it is not UTF-8 text", remedy=GIVE_SBML) from None
    _Guard().check(data)
    document = libsbml.readSBMLFromString(text)
    found = (document.getError(at) for at in range(document.getNumErrors()))
    error = next((e for e in found if not (e.isWarning() or e.isInfo())), None)
    if error is not None:
        raise InputError(
            f"line {error.getLine()}: {' '.join(error.getMessage().split())}",
            value=error.getLine(),
            remedy="mend the file, or export it again from its editor",
        )
    if document.getModel() is None:
        raise InputError("the file holds no SBML model", remedy=GIVE_SBML)
    return document


def _contents(path: str | PathLike[str]) -> bytes:
    try:
        file = Path(path)
        if file.is_dir():
            raise InputError("this is a folder, not an SBML file", value=path, remedy=GIVE_SBML)
        if file.exists() and not file.is_file():  # a pipe or device might never end
            raise InputError("not a regular file", value=path, remedy=GIVE_SBML)
        with file.open("rb") as stream:
            data = stream.read(MAX_SBML_BYTES + 1)
    except (OSError, TypeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        reason = problem.strerror if isinstance(problem, OSError) else None
        raise InputError(
            f"cannot read the file: {reason or problem}", value=path, remedy=GIVE_SBML
        ) from None
    if not data.strip():
        raise InputError("the file is empty", value=path, remedy=GIVE_SBML)
    if len(data) > MAX_SBML_BYTES:
        raise InputError(
            f"the file is larger than {MAX_SBML_BYTES // 1_000_000} MB",
            value=path,
            remedy="make the model smaller",
        )
    return data


class _Guard:
    """One pass over the elements, in constant memory."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.XmlDeclHandler = self._declaration
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartNamespaceDeclHandler = self._open_namespace
        self.parser.EndNamespaceDeclHandler = self._close_namespace
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.depth = self.elements = self.namespaces = self.math = 0
        self.number: list[str] | None = None  # parts of the <cn> being read
        self.number_type = "real"

    def check(self, data: bytes) -> None:
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as problem:
            raise InputError(f"not an SBML file: {problem}", remedy=GIVE_SBML) from None

    def _refuse(self, reason: str, remedy: Remedy) -> InputError:
        line = self.parser.CurrentLineNumber
        return InputError(f"line {line}: {reason}", value=line, remedy=remedy)

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding and encoding.lower() not in ("utf-8", "us-ascii", "ascii"):
            raise self._refuse(
                f"the encoding of SBML is UTF-8, not {encoding}", "save the file as UTF-8"
            )

    def _doctype(self, name: str, system: str | None, public: str | None, subset: int) -> None:
        raise self._refuse("a DOCTYPE or entity declaration is not allowed in SBML", "remove it")

    def _open_namespace(self, prefix: str | None, uri: str | None) -> None:
        self.namespaces += 1
        if self.namespaces > MAX_NAMESPACES:
            raise self._refuse(
                f"more than {MAX_NAMESPACES} XML namespaces at one place", "declare fewer"
            )

    def _close_namespace(self, prefix: str | None) -> None:
        self.namespaces -= 1

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        space, _, tag = name.rpartition(" ")
        if self.depth == 1:
            self._root(space, tag, attributes)
        if self.depth > MAX_XML_NESTING:
            raise self._refuse(f"elements nested deeper than {MAX_XML_NESTING} levels", SIMPLIFY)
        if self.elements > MAX_XML_ELEMENTS:
            raise self._refuse(f"more than {MAX_XML_ELEMENTS:,} elements", SIMPLIFY)
        if space == _MATHML:
            self._start_math(tag, attributes)

    def _root(self, space: str, tag: str, attributes: dict[str, str]) -> None:
        if tag != "sbml" or not space.startswith("http://www.sbml.org/sbml/"):
            of = f" of namespace {space!r}" if tag == "sbml" else ""
            raise self._refuse(f"not an SBML file: it begins with <{tag}>{of}", GIVE_SBML)
        for attribute, value in attributes.items():
            package, _, key = attribute.rpartition(" ")
            required = key == "required" and package and value.strip() in ("true", "1")
            if required and not _UNDERSTOOD.fullmatch(package):
                raise self._refuse(
                    f"the model requires the unsupported package {package}",
                    "export it without that package",
                )

    def _start_math(self, tag: str, attributes: dict[str, str]) -> None:
        self.math = 0 if tag == "math" else self.math + 1
        if self.math > MAX_MATH_ELEMENTS:
            raise self._refuse(f"a formula of more than {MAX_MATH_ELEMENTS:,} elements", SIMPLIFY)
        if tag == "cn":
            self.number, self.number_type = [""], attributes.get("type", "real")
            if attributes.get("base", "10") != "10":
                raise self._refuse("a number in a base other than 10", "write it in base 10")
        elif tag == "sep" and self.number is not None:
            self.number.append("")

    def _text(self, text: str) -> None:
        if self.number is not None:
            self.number[-1] += text
            if len(self.number[-1]) > 1000:
                raise self._refuse("a number of more than 1000 characters", "round it")

    def _end(self, name: str) -> None:
        self.depth -= 1
        if self.number is None or name != f"{_MATHML} cn":
            return
        forms = _NUMBER_PATTERNS.get(self.number_type, ())
        if len(forms) != len(self.number) or not all(
            form.fullmatch(part) for form, part in zip(forms, self.number, strict=True)
        ):
            shown = " ".join(" ".join(self.number).split())
            raise self._refuse(
                f"{shown!r} is not a number of type {self.number_type!r}",
                "write it with a decimal point, or change its type",
            )
        self.number = None
