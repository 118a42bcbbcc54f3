"""Finding evidence in a reading."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.grading.rubrics.lexicon import ALTERNATIVES, DENIALS, STATEMENT_BREAKS
from app.grading.rubrics.patterns import Atom, Formula, Group, Pattern, Value, Words
from app.grading.rubrics.reading import Reading, Sentence
from app.grading.rubrics.stated_numbers import Number

SLACK = 4  # how many other words may stand among the words of one wording
REACH = 30  # how many words the parts of one piece of evidence may span: long sentences hold many statements
MOST_SPANS = 40
BOUND = 8  # how near a number its subject stands
MOST_CLAUSES = 60  # words; what is longer has lost its punctuation, and its clauses are not known
AROUND = 12  # how near a word must stand to speak of the evidence
# "Not only", "no more than".
_OF_DEGREE = frozenset({"onli", "just", "matter", "mere", "all", "everi", "more", "less", "later"})
# With these begins a condition, or what is said of a thing: "if that is not enough", "a rank that never came".
_SUBORDINATE = frozenset({"if", "unless", "when", "until", "where", "that", "who", "than"})
_JOINING = frozenset({"and", "but", "becaus", "so"})

Span = tuple[int, int]


@dataclass(frozen=True)
class Passage:
    """Where evidence stands: the sentence's number, or the first of two; whether it is called unnecessary there,
    whether it is said there of another subject, and whether what its clause says of it is denied."""

    sentence: int
    text: str
    dismissed: bool = False
    swapped: bool = False
    denied: bool = False


def find(
    pattern: Pattern, reading: Reading, reach: int = REACH, rivals: frozenset[str] = frozenset()
) -> Passage | None:
    """The first place in `reading` that gives the evidence of `pattern`; one that is not against it comes first.

    Where one of `rivals` stands inside, another subject than that of the pattern is spoken of.
    """
    denied = against = None
    for found in _all(pattern, reading, reach, rivals - pattern.stems):
        if found.dismissed or found.swapped:
            against = against or found
        elif found.denied:
            denied = denied or found
        else:
            return found
    return denied or against


def _all(pattern: Pattern, reading: Reading, reach: int, rivals: frozenset[str]) -> Iterator[Passage]:
    first = pattern.places[0]
    for index, sentence in enumerate(reading.sentences):
        span = place(first, sentence, reach) if pattern.may_stand(sentence.stems) else None
        if span is None or _near(pattern.unless, sentence, span) or _names(rivals, sentence, span):
            continue
        dismissed = _is_dismissed(span, sentence, pattern.stems)
        if len(pattern.places) == 1:
            denied = _is_denied(span, pattern, sentence)
            yield Passage(index, sentence.text, dismissed, _is_swapped(pattern, (sentence,)), denied)
            continue
        near = range(max(0, index - 1), min(len(reading.sentences), index + 2))
        second = next((each for each in near if place(pattern.places[1], reading.sentences[each], reach)), None)
        if second is not None:
            both = sorted({index, second})
            swapped = _is_swapped(pattern, (sentence, reading.sentences[second]))
            yield Passage(both[0], " ".join(reading.sentences[each].text for each in both), dismissed, swapped)


def nearly(pattern: Pattern, reading: Reading) -> Passage | None:
    """A sentence that has all parts but one of a pattern that has at least three."""
    if len(pattern.places) > 1 or len(pattern.places[0]) < 3:
        return None
    groups = pattern.places[0]
    for index, sentence in enumerate(reading.sentences):
        if sentence.is_list:
            continue
        if sum(_any(group, sentence) for group in groups) == len(groups) - 1 and not _any(pattern.unless, sentence):
            return Passage(index, sentence.text)
    return None


def other_number(pattern: Pattern, known: Sequence[Value], reading: Reading) -> Passage | None:
    """A sentence that has the words of evidence and works out another number of its kind, none of those `known`."""
    wanted = [each for group in pattern.places[0] for each in group if isinstance(each, Value)]
    words = tuple(part for part in pattern.places[0] if not any(isinstance(each, Value) for each in part))
    kinds = {each.dimension for each in wanted} - {"count"}
    if not kinds or not words:
        return None
    for index, sentence in enumerate(reading.sentences):
        results = [each for each in sentence.numbers if not sentence.refutes and _is_result(each, kinds, sentence)]
        if results and not any(_is_about(each, value) for each in results for value in known):
            span = place(words, sentence)
            if span is not None and any(span[0] - BOUND <= each.at <= span[1] + BOUND for each in results):
                return Passage(index, sentence.text)
    return None


_SAYS_RESULT = frozenset({"=", "≈", "so"})
ROUGH = 0.08  # how far a number may be off and still be meant to be the known one


def _is_result(number: Number, kinds: set[str], sentence: Sentence) -> bool:
    """Whether a sum or a conclusion ends in it, and its unit is one of `kinds`: "35 B" may be bytes or billions."""
    before = sentence.tokens[number.at - 1].stem if number.at else ""
    sure = number.has_unit and not number.denied and not number.texts[0].partition(" ")[2].startswith("B")
    return sure and before in _SAYS_RESULT and any(number.is_a(each) for each in kinds)


def _is_about(number: Number, value: Value) -> bool:
    return number.matches(value.value, value.dimension, value.scale, max(ROUGH, value.tolerance))


def place(groups: tuple[Group, ...], sentence: Sentence, reach: int = REACH) -> Span | None:
    """Where every group stands in the sentence, all of them within reach of each other."""
    found: list[list[Span]] = []
    for group in groups:
        spans = [span for atom in group if _may_stand(atom, sentence) for span in _spans(atom, sentence)][:MOST_SPANS]
        if not spans:
            return None
        found.append(spans)
    anchors, *others = sorted(found, key=len)
    return next((span for anchor in anchors if (span := _within_reach(anchor, others, reach)) is not None), None)


def _within_reach(anchor: Span, others: list[list[Span]], reach: int) -> Span | None:
    low, high = anchor
    for spans in others:
        start, end = min(spans, key=lambda span: max(high, span[1]) - min(low, span[0]))
        low, high = min(low, start), max(high, end)
    return (low, high) if high - low <= reach else None


def _is_dismissed(span: Span, sentence: Sentence, own: frozenset[str] = frozenset()) -> bool:
    """Whether what stands there is called unnecessary; evidence that says so itself, in its `own` words, is not, nor is
    what another statement says behind the one that calls something so."""
    return any(
        span[0] - AROUND <= at <= span[1] + AROUND and own.isdisjoint(words) and not _ends(sentence, at, span[0])
        for at, words in sentence.dismissals
    )


def _is_denied(span: Span, pattern: Pattern, sentence: Sentence) -> bool:
    """Whether the one clause in which all words of evidence stand says behind the first of them that something is not
    so, and the evidence does not say that itself. A number is what it is, whatever else is denied."""
    if pattern.denies or pattern.has_numbers or len(sentence.tokens) > MOST_CLAUSES:
        return False
    stems = [token.stem for token in sentence.tokens]
    if not STATEMENT_BREAKS.isdisjoint(stems[span[0] : span[1] + 1]):
        return False
    ends = STATEMENT_BREAKS | _SUBORDINATE
    clause = list(itertools.takewhile(lambda word: word not in ends, stems[span[0] :]))
    own = DENIALS - pattern.stems
    return any(word in own and after not in _OF_DEGREE for word, after in itertools.pairwise([*clause, ""]))


def _ends(sentence: Sentence, start: int, end: int) -> bool:
    """Whether a statement ends between two places: at a comma, and another one begins with a word that joins them."""
    stems = [token.stem for token in sentence.tokens[start:end]]
    return any(one == "," and other in _JOINING for one, other in itertools.pairwise(stems))


def _is_swapped(pattern: Pattern, sentences: Sequence[Sentence]) -> bool:
    """Whether some part of the evidence stands only in clauses about another subject than the one it is evidence of."""
    if pattern.subject is None or any(len(each.tokens) > MOST_CLAUSES for each in sentences):
        return False
    subject, alternatives = pattern.subject
    parts = [(part, each) for parts, each in zip(pattern.places, sentences, strict=False) for part in parts]
    named = frozenset(word for part, each in parts if part is subject for word in each.where)
    own = frozenset(number for number in alternatives if not named.isdisjoint(ALTERNATIVES[number]))
    return bool(own) and any(_is_of_others(part, each, own) for part, each in parts if part is not subject)


def _is_of_others(part: Group, sentence: Sentence, own: frozenset[int]) -> bool:
    about = [sentence.about[start] for atom in part for start, _ in _spans(atom, sentence)]
    return bool(about) and all(each and own.isdisjoint(each) for each in about)


def _near(group: Group, sentence: Sentence, span: Span) -> bool:
    """Whether any of `group` stands in or around `span`; a sentence without punctuation may say much else."""
    return any(
        span[0] - AROUND <= start and end <= span[1] + AROUND
        for atom in group
        for start, end in _spans(atom, sentence, denied_too=True)
    )


def _names(rivals: frozenset[str], sentence: Sentence, span: Span) -> bool:
    return any(span[0] < at < span[1] for rival in rivals for at in sentence.where.get(rival, ()))


def _any(group: Group, sentence: Sentence) -> bool:
    return any(True for atom in group for _ in _spans(atom, sentence))


def _may_stand(atom: Atom, sentence: Sentence) -> bool:
    """Whether the first word of a wording stands in the sentence at all: of most it does not, and to ask is quick."""
    if not isinstance(atom, Words):
        return True
    first = atom.stems[0]
    return first in sentence.where if isinstance(first, str) else not first.isdisjoint(sentence.where)


def _spans(atom: Atom, sentence: Sentence, denied_too: bool = False) -> Iterator[Span]:
    if isinstance(atom, Value):
        for number in sentence.numbers:
            is_it = number.matches(atom.value, atom.dimension, atom.scale, atom.tolerance)
            if is_it and not number.denied and not _is_of_another(number.at, atom, sentence):
                yield number.at, number.at
    elif isinstance(atom, Formula):
        match = atom.pattern.search(sentence.formula)
        if match:  # its place among the tokens is not known: about as far into the sentence
            at = len(sentence.tokens) * match.start() // max(1, len(sentence.formula))
            yield at, at
    else:
        yield from _word_spans(atom, sentence, denied_too)


def _is_of_another(at: int, value: Value, sentence: Sentence) -> bool:
    """Whether a number is said of something else: its rival's name stands nearer, and its own nowhere near."""
    near = {each.stem for each in sentence.tokens[max(0, at - BOUND) : at + BOUND + 1]}
    return bool(near & value.rivals) and not near & value.of


def _word_spans(words: Words, sentence: Sentence, denied_too: bool) -> Iterator[Span]:
    places = [_positions(each, sentence) for each in words.stems]
    if not all(places):
        return
    for start in places[0][: 4 * MOST_SPANS]:
        chosen = [start]
        for word, others in zip(words.stems[1:], places[1:], strict=True):
            allowed = [
                at
                for at in others
                if (at not in chosen or _is_meant(word, at, sentence)) and _may_follow(at, chosen, words, sentence)
            ]
            if not allowed:
                break
            chosen.append(min(allowed, key=lambda at: abs(at - chosen[-1])))
        else:
            denied = any(sentence.tokens[at].denied for at in chosen)
            # what is called unnecessary is found as well, and judged by that
            if denied_too or denied == words.denied or (denied and _is_dismissed((min(chosen), max(chosen)), sentence)):
                yield min(chosen), max(chosen)


def _is_meant(word: str | frozenset[str], at: int, sentence: Sentence) -> bool:
    """Whether a word is not written there but said by what is: both words of "fast link" stand where NVLink does."""
    written = sentence.tokens[at].stem
    return written != word if isinstance(word, str) else written not in word


def _positions(word: str | frozenset[str], sentence: Sentence) -> tuple[int, ...]:
    if isinstance(word, str):
        return sentence.where.get(word, ())
    return tuple(sorted(at for each in word for at in sentence.where.get(each, ())))


_ARTICLES = frozenset({"the", "a", "an", "it", "their", "all", "our"})  # as stems


def _may_follow(at: int, chosen: list[int], words: Words, sentence: Sentence) -> bool:
    if words.ordered:
        between = sentence.tokens[chosen[-1] + 1 : at]
        return at >= chosen[-1] and len(between) <= 2 and all(each.stem in _ARTICLES for each in between)
    length = len(words.stems) + SLACK
    return max(*chosen, at) - min(*chosen, at) <= length
