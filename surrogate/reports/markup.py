"""HTML by construction: an element escapes every text it is given that is not HTML itself.

So a file from a stranger can put words on a page, never elements. What nonetheless came to be
there could load nothing: the page's own policy forbids it everything but its inline pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

VOID = ("img", "meta")  # elements without content
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | Html | Iterable["str | Html"] | None


def element(name: str, /, *content: Content, **attributes: object) -> Html:
    """<name attribute="...">content</name>; `class_` is class, None leaves an attribute out."""
    given = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(joined(each) for each in content)
    opened = f"<{name}{''.join(given)}>"
    return Html(opened if name in VOID else f"{opened}{inside}</{name}>")


def joined(content: Content) -> Html:
    """Pieces one after the other, what is not HTML escaped."""
    if content is None:
        return Html("")
    if isinstance(content, str):
        return content if isinstance(content, Html) else Html(escape(content))
    return Html("".join(joined(piece) for piece in content))


def table(rows: Iterable[Iterable[str]], header: Iterable[str] = (), class_: str = "") -> Html:
    """Rows of cells, the first of which names the row."""
    head = [element("th", cell, scope="col") for cell in header]
    body = []
    for first, *rest in rows:
        cells = [element("td", cell) for cell in rest]
        body.append(element("tr", element("th", first, scope="row"), cells))
    top = element("thead", element("tr", head)) if head else None
    inside = element("table", top, element("tbody", body), class_=class_ or None)
    return element("div", inside, class_="scroll")


def figure(source: str, alt: str, caption: str | None = None, class_: str | None = None) -> Html:
    """A picture with what it shows in words, and how to read it."""
    below = element("figcaption", caption) if caption else None
    return element("figure", element("img", src=source, alt=alt), below, class_=class_)


def document(title: str, body: Content) -> str:
    """A page that needs nothing but itself."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        element("title", title),
        element("style", Html(STYLE)),
    )
    whole = element("html", head, element("body", element("main", body)), lang="en")
    return f"<!doctype html>\n{whole}\n"


def section(title: str, *content: Content) -> list[Html]:
    return [element("section", element("h2", title), *content)]


STYLE = """
:root { color-scheme: light dark; --ink: #1d2b3a; --soft: #5b6b7b; --line: #dde3ea;
  --paper: #ffffff; --card: #f6f8fa; --accent: #2d6a9f; --good: #2e7d4f; --care: #9a6700;
  --poor: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4eaf1; --soft: #9fb0c1; --line: #33414f;
  --paper: #141b22; --card: #1c252e; --accent: #7db4e6; --good: #6fcf97; --care: #e3b341;
  --poor: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: .2rem 0 1rem; letter-spacing: -.01em;
  overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 3rem 0 .6rem; padding-top: 1.2rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p { max-width: 46rem; }
.over { color: var(--accent); font-weight: 600; margin: 0; }
.lead { font-size: 1.15rem; }
ul.asked { list-style: none; padding: 0; margin: 1rem 0; max-width: 46rem; }
ul.asked li { padding: .3rem 0 .3rem 1rem; border-left: 3px solid var(--accent);
  margin-bottom: .35rem; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: .8rem;
  margin: 1.5rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: .8rem 1rem; }
.tile b { display: block; font-size: 1.5rem; line-height: 1.25; font-weight: 650; }
.tile span { color: var(--soft); font-size: .85rem; display: block; }
.verdict { border: 1px solid var(--line); border-left: 6px solid var(--soft); border-radius: 8px;
  padding: .7rem 1.1rem; margin: 1.2rem 0; background: var(--card); }
.verdict p { margin: .2rem 0; font-weight: 650; }
.verdict ul { margin: .3rem 0; padding-left: 1.2rem; }
.verdict.good { border-left-color: var(--good); } .verdict.good p { color: var(--good); }
.verdict.care { border-left-color: var(--care); } .verdict.care p { color: var(--care); }
.verdict.poor { border-left-color: var(--poor); } .verdict.poor p { color: var(--poor); }
.fans { display: grid; grid-template-columns: repeat(auto-fit, minmax(290px, 1fr)); gap: .6rem; }
figure { margin: .8rem 0; } .fans figure { margin: 0; }
figure img { max-width: 100%; height: auto; display: block; }
figure.wide { overflow-x: auto; } figure.wide img { width: 100%; min-width: 660px; }
figcaption, .note { color: var(--soft); font-size: .9rem; max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums;
  margin: .6rem 0; min-width: 50%; }
th, td { text-align: left; padding: .38rem .9rem .38rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
thead th { color: var(--soft); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 500; } table.facts th { color: var(--soft); width: 15rem; }
table.rules td { vertical-align: middle; } table.rules { width: 100%; }
.bar { background: var(--line); border-radius: 4px; height: 12px; width: 150px; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--good); }
.bar i.part { background: var(--care); }
svg.margins { width: 150px; height: 30px; display: block; }
svg.margins .met { fill: var(--good); } svg.margins .missed { fill: var(--poor); }
svg.margins line { stroke: var(--soft); stroke-dasharray: 2 2; }
code, pre { font: .88em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .7rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media print { :root { color-scheme: light; } main { max-width: none; padding: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  figure, .verdict, .tile, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
  figure.wide img { min-width: 0; } }
"""
