"""Files that are not SBML, or mean harm: always an `InputError`, never a crash."""

from __future__ import annotations

import os
import random
import xml.etree.ElementTree as tree
from pathlib import Path

import pytest

pytest.importorskip("libsbml", reason="python-libsbml is optional")

from simulators import InputError
from simulators.sbml import read_sbml
from tests.simulators.sbml import texts as text
from tests.simulators.sbml.texts import document, event, parameter, reaction, reference, species

GOOD = document(
    functions=text.function("f", "lambda(x, y, x*y + 1)")
    + text.function("g", "lambda(x, f(x, x))"),
    species=species("X")
    + species("Y", 'initialConcentration="3"', amount=False)
    + species("Z")
    + species("B", 'initialAmount="0.5" boundaryCondition="true"'),
    parameters=parameter("k", 0.3) + parameter("p", 2, False) + parameter("q", None, False),
    initial=text.initial("k", "2*p"),
    rules=text.rule("Z", "X + Y") + text.rule("q", "piecewise(1, X > 3, 2)"),
    reactions=reaction(
        "k*X*g(Y)",
        reactants=reference("X") + reference("B"),
        products=reference("Y", 'id="s" stoichiometry="2"'),
        local='<localParameter id="k" value="3"/>',
    ),
    events=event("time >= 5 && X < 3", {"X": "X + 1", "p": "p*2"}),
)


def deep(open_tag: str, close_tag: str, depth: int) -> str:
    return open_tag * depth + "<cn>1</cn>" + close_tag * depth


def packaged(name: str, required: str) -> str:
    space = f"http://www.sbml.org/sbml/level3/version1/{name}/version1"
    return document(root=f'xmlns:p="{space}" p:required="{required}"')


HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "the file is empty"),
    "blank": (" \n ", "the file is empty"),
    "words": ("S + I -> 2 I", "not an SBML file: .* line 1"),
    "html": ("<html><body/></html>", "not an SBML file: it begins with <html>"),
    "other namespace": ('<sbml xmlns="http://x"/>', "begins with <sbml> of namespace 'http://x'"),
    "binary": (bytes(range(256)) * 10, "not UTF-8"),
    "compressed": (b"\x1f\x8b\x08\x00" + bytes(100), "not UTF-8"),
    "zeros": (bytes(1000), "not an SBML file"),
    "UTF-16": (document().replace("UTF-8", "UTF-16").encode("utf-16"), "not UTF-8"),
    "Latin-1": (document().replace("UTF-8", "ISO-8859-1"), "line 1: the encoding of SBML is UTF-8"),
    "cut short": (document()[:-30], "not an SBML file: .* line"),
    "no model": (
        f'<sbml xmlns="{text.SPACES[3, 2]}" level="3" version="2"/>',
        "no SBML model|must contain",
    ),
    "entities": (
        document().replace("<sbml", '<!DOCTYPE sbml [<!ENTITY a "b">]>\n<sbml', 1),
        "line 2: a DOCTYPE",
    ),
    "external subset": (
        document().replace("<sbml", '<!DOCTYPE sbml SYSTEM "file:///etc/passwd">\n<sbml', 1),
        "line 2: a DOCTYPE",
    ),
    "deep formula": (
        document(reactions=reaction(deep("<apply><sin/>", "</apply>", 5000))),
        "nested deeper than 200",
    ),
    "deep notes": (
        document(notes="<annotation>" + deep('<a xmlns="x">', "</a>", 5000) + "</annotation>"),
        "nested deeper than 200",
    ),
    "endless sum": (
        document(reactions=reaction(f"<apply><plus/>{'<cn>1</cn>' * 100_000}</apply>")),
        "a formula of more than 10,000 elements",
    ),
    "namespaces": (
        document(notes="<annotation " + "".join(f' xmlns:a{i}="{i}"' for i in range(2000)) + "/>"),
        "more than 1000 XML namespaces",
    ),
    "elements": (
        document(notes=f'<annotation><a xmlns="x">{"<b/>" * 300_000}</a></annotation>'),
        "more than 300,000 elements",
    ),
    "many species": (
        document(species="".join(species(f"X{at}") for at in range(5001))),
        "5,001 of kind species, more than 5,000",
    ),
    "comp": (packaged("comp", "true"), "requires the unsupported package .*/comp/"),
    "unheard-of package": (packaged("unheard", "true"), "unsupported package .*/unheard/"),
    "package of another house": (
        document(root='xmlns:p="http://x" p:required="1"'),
        "unsupported package http://x",
    ),
    "bad attribute": (
        document(parameters=parameter("p", "ten")),
        "line 3: .* must be a double",
    ),
    "undefined element": (document().replace("<model", "<junk/><model"), "line 2: .*'junk'"),
    **{
        f"number {number}": (
            document(reactions=reaction(f"<cn{number}</cn>")),
            "line 3: .* (number|double)",
        )
        for number in (
            ">1,5",
            ">1.5 kg",
            ">ten",
            ">",
            ">0x10",
            ">1e400",
            ">1<sep/>2",
            f">{'1' * 2000}",
            ' type="integer">1.5',
            ' type="rational">1.5<sep/>2',
            ' type="e-notation">2<sep/>3.5',
            ' base="16" type="integer">10',
            ' type="complex-polar">1<sep/>2',
        )
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(tmp_path: Path, name: str) -> None:
    content, reason = HOSTILE[name]
    path = tmp_path / "model.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=rf"model\.xml: (.|\n)*({reason})"):
        read_sbml(path)


def test_paths_that_are_not_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.xml: cannot read the file: No such file"):
        read_sbml(tmp_path / "nowhere.xml")
    with pytest.raises(InputError, match="this is a folder"):
        read_sbml(tmp_path)
    with pytest.raises(InputError, match="cannot read the file"):
        read_sbml("a\0b.xml")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError, match="not a regular file"):
            read_sbml(tmp_path / "pipe")


def test_large_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.xml"
    with path.open("wb") as file:
        file.write(document().encode())
        file.truncate(21_000_000)
    with pytest.raises(InputError, match="larger than 20 MB"):
        read_sbml(path)


def test_optional_packages_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_bytes(b"\xef\xbb\xbf" + packaged("unheard", "false").encode())
    assert list(read_sbml(path).species) == ["X"]


VALUES = [
    "",
    "NaN",
    "INF",
    "1e308",
    "-1",
    "0.5",
    "true",
    "X",
    "k",
    "R",
    "s",
    "f",
    "time",
    "a b",
    "é",
]
TAGS = ["plus", "minus", "times", "root", "log", "and", "not", "xor", "eq", "neq", "piecewise"]
TAGS += ["piece", "otherwise", "cn", "ci", "apply", "lambda", "bvar", "true", "pi", "infinity"]
TAGS += ["factorial", "max", "rem", "csymbol", "math", "rateRule", "species", "event", "delay"]


def mutant(draw: random.Random) -> str:
    """The good file with a few elements moved, renamed, removed or changed."""
    root = tree.fromstring(GOOD.encode())
    for _ in range(draw.choice([1, 1, 2, 4])):
        pairs = [(parent, child) for parent in root.iter() for child in parent]
        parent, child = draw.choice(pairs)
        other, _ = draw.choice(pairs)
        match draw.randrange(5):
            case 0:
                parent.remove(child)
            case 1:
                copy = tree.fromstring(tree.tostring(child))
                other.insert(draw.randrange(len(other) + 1), copy)
            case 2:
                child.tag = child.tag.partition("}")[0] + "}" + draw.choice(TAGS)
            case 3:
                holder = draw.choice([node for node in root.iter() if node.attrib])
                holder.attrib[draw.choice(list(holder.attrib))] = draw.choice(VALUES)
            case 4:
                child.text = draw.choice(VALUES)
    shown = tree.tostring(root, encoding="unicode")
    return shown.replace("ns0:", "").replace("xmlns:ns0", "xmlns")


def readable(path: Path) -> bool:
    """Whether a file is read; if not, the reason must name it."""
    try:
        return bool(str(read_sbml(path)))
    except InputError as problem:
        if not str(problem).startswith(str(path)):
            raise
        return False


def test_damaged_files_never_crash(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(GOOD, encoding="utf-8")
    assert len(read_sbml(path).reactions) == 1
    draw, read = random.Random(1), 0
    for _ in range(300):
        path.write_text(mutant(draw), encoding="utf-8")
        read += readable(path)
    assert read > 10  # some damage does no harm, so the reading itself was reached


def test_scrambled_bytes_never_crash(tmp_path: Path) -> None:
    path, draw = tmp_path / "model.xml", random.Random(2)
    for _ in range(300):
        data = bytearray(GOOD.encode())
        for _ in range(draw.choice([1, 3, 20])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        readable(path)
