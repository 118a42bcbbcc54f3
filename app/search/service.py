"""Searching: results in groups, each hit with its title and the words around what was found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.content.catalogue import Catalogue
from app.search.documents import GROUPS, documents
from app.search.index import Document, Index, ScoredDocument
from app.search.snippets import Piece, highlight, snippet

LONGEST_TEXT = 200  # characters of a query
IN_A_GROUP = 6


@dataclass(frozen=True)
class Hit:
    """One result."""

    document: Document
    title: list[Piece]
    snippet: list[Piece]


@dataclass(frozen=True)
class Group:
    """Results of one sort; `count` is how many there are in all."""

    key: str
    title: str
    hits: list[Hit]
    count: int


@dataclass(frozen=True)
class Results:
    """What a query found, the group with the best hit first. `read_as` has the words that nothing has, and as which
    others they were read."""

    query: str
    groups: list[Group]
    read_as: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(group.count for group in self.groups)


_built: list[tuple[Catalogue, Index]] = []


def build_index(catalogue: Catalogue) -> Index:
    """The index of everything the product knows; the last catalogue's is kept."""
    if not _built or _built[0][0] is not catalogue:
        _built[:] = [(catalogue, Index(tuple(documents(catalogue))))]
    return _built[0][1]


def search(index: Index, text: str, limit: int = IN_A_GROUP) -> Results:
    """What `text` finds, at most `limit` of each group."""
    query = text[:LONGEST_TEXT].lstrip()
    by_group: dict[str, list[ScoredDocument]] = {}
    for found in index.search(query):
        by_group.setdefault(found.document.group, []).append(found)
    order = sorted(by_group, key=lambda key: (-by_group[key][0].score, list(GROUPS).index(key)))
    groups = [Group(key, GROUPS[key], list(_hits(by_group[key][:limit])), len(by_group[key])) for key in order]
    return Results(query.strip(), groups, index.read_as(query))


def _hits(matches: Iterable[ScoredDocument]) -> Iterable[Hit]:
    for each in matches:
        document = each.document
        text = f"{document.summary} {document.body}".strip()
        yield Hit(document, highlight(document.title, each.matched), snippet(text, each.matched))


def as_json(results: Results) -> dict[str, object]:
    """The reply of the API: pieces of text, those that were found marked."""
    return {
        "query": results.query,
        "count": results.count,
        "groups": [
            {
                "group": group.key,
                "title": group.title,
                "count": group.count,
                "hits": [
                    {
                        "key": hit.document.key,
                        "title": hit.document.title,
                        "href": hit.document.href,
                        "note": hit.document.note,
                        "snippet": [{"text": piece.text, "is_hit": piece.is_hit} for piece in hit.snippet],
                    }
                    for hit in group.hits
                ],
            }
            for group in results.groups
        ],
    }
