"""The catalogue: every content file read, rendered and frozen once, when the process starts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from app.content.cards import Card, make_card
from app.content.challenges import (
    CHALLENGES,
    Challenge,
    ChallengesFile,
    Misbelief,
    falsehoods,
    make_challenges,
    make_misbeliefs,
)
from app.content.claim_schemas import CLAIMS, ClaimsFile, InterviewClaimsFile
from app.content.code_labs import CodeLab, load_code_lab
from app.content.coding import CodingFile, make_coding_round
from app.content.files import ContentError, Source, read_card, read_yaml, validated
from app.content.handbook import Handbook, load_handbook, mark_terms
from app.content.interview_schemas import Interview
from app.content.kept import kept
from app.content.live import COMPILED, ExpressionError
from app.content.mended import MENDED, Mended
from app.content.pages import Page
from app.content.preparation_schemas import Preparation
from app.content.problem_schemas import Problem
from app.content.recordings import Recording, facts
from app.content.roles import ROLES, Role, RolesFile
from app.content.rounds import NoSuchPart, RoundFile, make_round
from app.content.rubric_schemas import (
    LEXICON,
    MISCONCEPTIONS,
    Knowledge,
    LexiconFile,
    MisconceptionsFile,
    RubricFile,
)
from app.content.schemas import Concept, Deck, Experiment, GivenFigures, Related, Strict
from app.content.statements import STATEMENTS, Statements
from app.core.errors import ContentProblem
from app.core.settings import ROOT, Settings, settings

S = TypeVar("S", bound=Strict)
T = TypeVar("T")
BLOCK_CARDS, BLOCK_NAME_LENGTH = 100, 32


@dataclass(frozen=True)
class Catalogue:
    """All content by id, in the order of introduction, and what was wrong with what is missing."""

    concepts: Mapping[str, Concept] = field(default_factory=dict)
    decks: Mapping[str, Deck] = field(default_factory=dict)
    cards: Mapping[str, Card] = field(default_factory=dict)
    problems: Mapping[str, Problem] = field(default_factory=dict)
    interviews: Mapping[str, Interview] = field(default_factory=dict)
    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    mistakes: tuple[ContentProblem, ...] = ()
    handbook: Handbook = field(default_factory=Handbook)
    given: Mapping[str, str] = field(default_factory=dict)
    rubrics: Mapping[str, RubricFile] = field(default_factory=dict)
    preparation: Preparation = field(default_factory=Preparation)
    statements: Statements = field(default_factory=Statements)
    mended: Mended = field(default_factory=Mended)
    knowledge: Knowledge = field(default_factory=Knowledge)
    challenges: tuple[Challenge, ...] = ()
    labs: Mapping[str, CodeLab] = field(default_factory=dict)
    roles: tuple[Role, ...] = ()

    @cached_property
    def revised_cards(self) -> tuple[str, ...]:
        """The cards whose meaning changed since they were written first."""
        return tuple(card.id for card in self.cards.values() if card.head.revision != 1)

    @cached_property
    def card_blocks(self) -> Mapping[str, tuple[str, ...]]:
        """The ids of the cards in blocks of `BLOCK_CARDS`, by what names exactly these cards."""
        ids = tuple(self.cards)
        blocks = [ids[start : start + BLOCK_CARDS] for start in range(0, len(ids), BLOCK_CARDS)]
        return {sha256(" ".join(block).encode()).hexdigest()[:BLOCK_NAME_LENGTH]: block for block in blocks}

    @property
    def pages(self) -> Mapping[str, Page]:
        """The handbook's pages by slug, in their order."""
        return self.handbook.pages

    def problem(self, key: str) -> Problem | None:
        return _by_id_or_slug(self.problems, key)

    def interview(self, key: str) -> Interview | None:
        return _by_id_or_slug(self.interviews, key)

    def rubric(self, key: str) -> RubricFile | None:
        return _by_id_or_slug(self.rubrics, key)

    def experiment(self, key: str) -> Experiment | None:
        return _by_id_or_slug(self.experiments, key)

    def lab(self, key: str) -> CodeLab | None:
        return _by_id_or_slug(self.labs, key)

    def cards_of(self, slug: str) -> list[Card]:
        """The cards that a handbook page teaches: those it names, then all others of its concepts. Raises KeyError."""
        head = self.pages[slug].head
        concepts, named = set(head.concepts), [self.cards[id_] for id_ in head.related.cards if id_ in self.cards]
        return [
            *named,
            *(each for each in self.cards.values() if concepts & set(each.head.concepts) and each not in named),
        ]

    def related_links(self, related: Related) -> list[dict[str, str]]:
        """Where an item leads, as address, text and note."""
        cards = [
            (f"/study/cards/{id_}", f"{id_}, {self.cards[id_].head.title}", "card")
            for id_ in related.cards
            if id_ in self.cards
        ]
        problems = [
            (f"/practice/{each.slug}", f"{each.id}, {each.title}", "fresh variant")
            for each in map(self.problems.get, related.problems)
            if each
        ]
        rubrics = [
            (f"/rubrics/{each.slug}", f"{each.id}, {each.title}", f"in words, {each.minutes} min")
            for each in map(self.rubrics.get, related.rubrics)
            if each
        ]
        experiments = [
            (f"/lab/experiments/{each.slug}", f"{each.id}, {each.title}", f"{each.minutes} min")
            for each in map(self.experiments.get, related.experiments)
            if each
        ]
        pages = [
            (f"/reference/{each.head.slug}", each.head.title, "handbook")
            for each in map(self.pages.get, related.pages)
            if each
        ]
        found = [*problems, *rubrics, *experiments, *cards, *pages]
        return [{"href": href, "text": text, "note": note} for href, text, note in found]


def source_key(kind: str, identity: str) -> str:
    """What an item's source is kept under. Ids are unique within their kind; rubrics share SP1 to SP5 with problems."""
    return f"rubrics/{identity}" if kind == "rubrics" else identity


def _is_of_an_interview(name: str) -> bool:
    """Whether a file of claims is about an interview's points: it is called by its id, as those of rubrics are."""
    return name.startswith((f"{CLAIMS}/M", f"{CLAIMS}/T"))


def _by_id_or_slug(items: Mapping[str, T], key: str) -> T | None:
    """Stable ids are accepted wherever a slug is."""
    if key.upper() in items:
        return items[key.upper()]
    return next((item for item in items.values() if getattr(item, "slug", None) == key), None)


def load(folder: Path) -> Catalogue:
    """Read every content file below `folder`. Mistakes are collected; what is right is served."""
    loaded, handbook = _Loader(folder).load(), load_handbook(folder)
    titles = {slug: each.head.title for slug, each in handbook.pages.items()}
    cards = {
        id_: replace(
            card,
            sections=mark_terms(card.sections, handbook.marker),
            pages={slug: titles[slug] for slug in card.head.related.pages if slug in titles},
        )
        for id_, card in loaded.cards.items()
    }
    sources, mistakes = {**loaded.sources, **handbook.sources}, (*loaded.mistakes, *handbook.mistakes)
    return replace(loaded, cards=cards, sources=sources, mistakes=mistakes, handbook=handbook)


def catalogue(configuration: Settings | None = None) -> Catalogue:
    """The catalogue of `configuration`, or of the process. Raises ContentError.

    In production a mistake stops the process rather than half-loading.
    """
    chosen = configuration or settings()
    loaded = _load_once(chosen.cards)
    if loaded.mistakes and chosen.environment == "production":
        raise ContentError(list(loaded.mistakes))
    return loaded


@cache
def _load_once(folder: Path) -> Catalogue:
    return read(folder)


def read(folder: Path) -> Catalogue:
    """What `load` gives. Of the content we ship it is kept among our modules, and made anew where anything changed."""
    if folder.resolve() != ROOT / "cards":  # of a stranger's content nothing is kept among our modules
        return load(folder)

    def make() -> Catalogue:
        with COMPILED.keeping():
            return load(folder)

    made_of = (folder, ROOT / "app", ROOT / "labs" / "spec")  # with all code that has a part in it
    return kept(Path(__file__).with_name("__pycache__"), made_of, make, lambda loaded: not loaded.mistakes)


class _Loader:
    """Collects files and mistakes while the folder is walked; gone once the catalogue stands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mistakes: list[ContentProblem] = []
        self.sources: dict[str, Source] = {}

    def load(self) -> Catalogue:
        concepts = self._concepts()
        decks, cards = self._decks()
        challenges = tuple(self._challenges())
        knowledge = replace(self._knowledge(), challenged=falsehoods(challenges))
        problems = self._items("problems/*.yaml", Problem)
        labs = self._labs()
        rubrics = self._rubrics(knowledge)
        misbeliefs = self._misbeliefs(knowledge, rubrics, concepts)
        interviews = {**self._interviews(), **self._rounds(problems, labs)}
        loaded = Catalogue(
            concepts,
            decks,
            cards,
            problems,
            self._read_with(interviews, knowledge, challenges, misbeliefs),
            self._items("experiments/*.yaml", Experiment),
            self.sources,
            given=self._given(),
            rubrics=rubrics,
            preparation=self._single("preparation.yaml", Preparation) or Preparation(),
            statements=self._single(STATEMENTS, Statements) or Statements(),
            mended=self._single(MENDED, Mended) or Mended(),
            knowledge=knowledge,
            challenges=challenges,
            labs=labs,
            roles=(self._single(ROLES, RolesFile) or RolesFile()).roles,
        )
        return replace(loaded, mistakes=tuple(self.mistakes))

    def _labs(self) -> Mapping[str, CodeLab]:
        folders = sorted(path for path in self.folder.glob("labs/*") if path.is_dir())
        found = [self._try(lambda path=path: self._lab(path)) for path in folders]  # type: ignore[misc]
        return {each.id: each for each in found if each is not None}

    def _lab(self, path: Path) -> CodeLab:
        lab = load_code_lab(path, self._shown(path))
        self._claim("labs", lab.id, lab.source)
        return lab

    def _given(self) -> Mapping[str, str]:
        figures = self._single("given.yaml", GivenFigures)
        return figures.given if figures else {}

    def _knowledge(self) -> Knowledge:
        lexicon = self._single(LEXICON, LexiconFile) or LexiconFile()
        false = self._single(MISCONCEPTIONS, MisconceptionsFile) or MisconceptionsFile()
        return Knowledge(lexicon.wordings(), false.misconceptions, claims=self._claims())

    def _claims(self) -> Mapping[str, ClaimsFile]:
        found = [self._single(name, ClaimsFile) for name in self._files_in(CLAIMS) if not _is_of_an_interview(name)]
        return {each.rubric: each for each in found if each is not None}

    def _interview_claims(self, interviews: Collection[str]) -> Mapping[str, InterviewClaimsFile]:
        known: dict[str, InterviewClaimsFile] = {}
        for name in filter(_is_of_an_interview, self._files_in(CLAIMS)):
            file = self._single(name, InterviewClaimsFile)
            if file is not None and file.interview not in interviews:
                self.mistakes.append(self.sources[name].problem(("interview",), f"there is no {file.interview}"))
            elif file is not None:
                known[file.interview] = file
        return known

    def _files_in(self, folder: str) -> list[str]:
        return sorted(f"{folder}/{path.name}" for path in self.folder.glob(f"{folder}/*.yaml"))

    def _interviews(self) -> Mapping[str, Interview]:
        paths = sorted(self.folder.glob("recordings/*.yaml"))
        recordings = [each for each in (self._read(path, Recording) for path in paths) if each is not None]
        recorded = {each.id: facts(each) for each in recordings}
        interviews: dict[str, Interview] = self._items("interviews/*.yaml", Interview)
        for id_, interview in interviews.items():
            try:
                interviews[id_] = interview.hand_out(recorded)
            except ValueError as error:
                self.mistakes.append(self.sources[id_].problem(("recordings",), str(error)))
        return interviews

    def _read_with(
        self,
        interviews: Mapping[str, Interview],
        knowledge: Knowledge,
        challenges: tuple[Challenge, ...],
        misbeliefs: tuple[Misbelief, ...],
    ) -> Mapping[str, Interview]:
        """The interviews and rounds, with what answers in words to them are read with."""
        claims = self._interview_claims(interviews)
        for id_, interview in interviews.items():
            interview.read_with(knowledge.wordings, challenges, claims.get(id_), misbeliefs)
        return interviews

    def _misbeliefs(
        self, knowledge: Knowledge, rubrics: Mapping[str, RubricFile], concepts: Mapping[str, Concept]
    ) -> tuple[Misbelief, ...]:
        titles = {each.id: each.title for each in concepts.values()}
        try:
            return make_misbeliefs(knowledge.misconceptions, rubrics, titles)
        except ExpressionError as error:
            self.mistakes.append(self.sources[MISCONCEPTIONS].problem(error.location, str(error)))
            return ()

    def _challenges(self) -> Iterator[Challenge]:
        homes: dict[str, str] = {}
        for name in self._files_in(CHALLENGES):
            try:
                file = self._single(name, ChallengesFile)
                made = make_challenges(name, file) if file is not None else ()
            except ExpressionError as error:
                self.mistakes.append(self.sources[name].problem(error.location, str(error)))
                continue
            for each in made:
                if (home := homes.setdefault(each.id, name)) != name:
                    reason = f"{each.id} is also in {home}"
                    self.mistakes.append(self.sources[name].problem(("challenges", each.stands[1], "id"), reason))
                yield each

    def _rounds(self, problems: Mapping[str, Problem], labs: Mapping[str, CodeLab]) -> Mapping[str, Interview]:
        """Timed rounds: interviews made of parts of problems, or of code labs."""
        files = sorted(self.folder.glob("rounds/*.yaml"))
        found = [self._try(lambda path=path: self._round(path, problems, labs)) for path in files]  # type: ignore[misc]
        return {each.id: each for each in found if each is not None}

    def _round(self, path: Path, problems: Mapping[str, Problem], labs: Mapping[str, CodeLab]) -> Interview:
        source = read_yaml(path, self._shown(path))
        try:
            if "labs" in source.data:
                made: Interview = make_coding_round(validated(CodingFile, source), labs)
            else:
                made = make_round(validated(RoundFile, source), problems)
        except NoSuchPart as error:
            raise ContentError([source.problem(error.location, str(error))]) from None
        self._claim("rounds", made.id, source)
        return made

    def _rubrics(self, knowledge: Knowledge) -> Mapping[str, RubricFile]:
        rubrics: dict[str, RubricFile] = self._items("rubrics/*.yaml", RubricFile)
        for rubric in rubrics.values():
            rubric.read_with(knowledge)
        return rubrics

    def _single(self, name: str, kind: type[S]) -> S | None:
        """A file of which there is one; None where it is missing or broken. Its source is kept under its name."""
        path = self.folder / name

        def read() -> S:
            source = read_yaml(path, self._shown(path))
            item = validated(kind, source)
            self.sources[name] = source
            return item

        return self._try(read) if path.exists() else None

    def _concepts(self) -> dict[str, Concept]:
        path = self.folder / "concepts.yaml"
        source = self._try(lambda: read_yaml(path, self._shown(path)))
        if source is None:
            return {}
        self.sources["concepts.yaml"] = source
        entries = source.data.get("concepts")
        if not isinstance(entries, list):
            self.mistakes.append(source.problem(("concepts",), "there must be a list of concepts"))
            return {}
        found: dict[str, Concept] = {}
        parts: dict[str, Source] = {}
        for index, entry in enumerate(entries):
            part = replace(source, data=entry, within=("concepts", index))
            concept = self._try(lambda part=part: validated(Concept, part))  # type: ignore[misc]
            if concept is not None and concept.id in found:
                self.mistakes.append(part.problem(("id",), f"there are two concepts {concept.id!r}"))
            elif concept is not None:
                found[concept.id], parts[concept.id] = concept, part
        for concept in found.values():
            for need in concept.needs:
                if need not in found:
                    self.mistakes.append(parts[concept.id].problem(("needs",), f"there is no concept {need!r}"))
        return found

    def _decks(self) -> tuple[dict[str, Deck], dict[str, Card]]:
        decks: list[tuple[Deck, Path]] = []
        for folder in sorted(path for path in self.folder.glob("decks/*") if path.is_dir()):
            deck = self._read(folder / "deck.yaml", Deck)
            if deck is not None:
                decks.append((deck, folder))
        decks.sort(key=lambda pair: int(pair[0].id[2:]))
        cards: dict[str, Card] = {}
        for deck, folder in decks:
            for path in sorted(folder.glob("*.md")):
                card = self._try(lambda path=path, deck=deck: self._card(path, deck))  # type: ignore[misc]
                if card is not None:
                    cards[card.id] = card
        return {deck.id: deck for deck, _ in decks}, cards

    def _card(self, path: Path, deck: Deck) -> Card:
        card = make_card(read_card(path, self._shown(path)), deck, path.stem)
        self._claim("cards", card.id, card.source)
        return card

    def _items(self, pattern: str, kind: type[Strict]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in sorted(self.folder.glob(pattern)):
            item: Any = self._read(path, kind)
            if item is not None:
                found[item.id] = item
        return dict(sorted(found.items(), key=lambda pair: (pair[0][0], int("".join(filter(str.isdigit, pair[0]))))))

    def _read(self, path: Path, kind: type[Any]) -> Any:
        def read() -> Any:
            source = read_yaml(path, self._shown(path))
            item = validated(kind, source)
            self._claim(path.parent.name, item.id, source)
            return item

        return self._try(read)

    def _claim(self, kind: str, identity: str, source: Source) -> None:
        """Ids are unique within their kind: two items must never share a history. The first keeps it."""
        key = source_key(kind, identity)
        if key in self.sources:
            raise ContentError([source.problem(("id",), f"{identity} is also in {self.sources[key].path}")])
        self.sources[key] = source

    def _try(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except ContentError as error:
            self.mistakes += error.problems
        return None

    def _shown(self, path: Path) -> str:
        return f"{self.folder.name}/{path.relative_to(self.folder)}"
