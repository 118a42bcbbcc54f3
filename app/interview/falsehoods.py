"""What was said that is false, and how its candidate took to being asked about words, as a letter tells it. Pure.

Only what a known falsehood proves is called wrong. What a reply does is told in its own words: who reads them knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.interview.challenging import LEFT_OPEN, SAID_AGAIN, STILL_WRONG, STOOD_BY, TAKEN_BACK, WITHDRAWN
from app.interview.replying import is_an_answer, stands_by, takes_back
from app.interview.rows import NO_ANSWER, Challenged, Pushed, Row
from app.reveal.words import sentences
from app.words import capital, number_in_words

LONGEST_QUOTE = 40  # words
SHORTEST_QUOTE = 6  # below which words say little without their answer
LONGEST_REPLY = 25  # words of a reply that are quoted
MOST_KEPT = 2  # of what was heard as the opposite of a point and kept, that is quoted
MOST_FALSE = 3  # of what was said that is false, that is quoted
_INNER = str.maketrans("“”", "‘’")  # quotation marks within quotation marks
_AROUND = "“”\"' "


def false_words(asked: Sequence[Row]) -> Iterator[str]:
    """What was said that is false, in its own words: what was held on to comes first, what was taken back last."""
    told = [(row, each) for row in asked for each in row.challenged]
    told.sort(key=lambda each: (each[1].is_taken_back, not each[1].is_held_on))
    told = list({(row.id, each.quote): (row, each) for row, each in reversed(told)}.values())[::-1]  # a sentence once
    where = ""
    for row, each in told[:MOST_FALSE]:
        said = quoted(each.quote) if is_quotable(each.quote) else f"something about {each.topic}"
        they = "They also said there" if row.title == where else f"In “{row.title}” they said"
        where = row.title
        yield f"{they} {said}, which is wrong{_when_asked(each)}."
    if more := told[MOST_FALSE:]:
        say, are = ("sentence", "is") if len(more) == 1 else ("sentences", "are")
        yield f"{capital(number_in_words(len(more)))} more {say} of theirs {are} wrong as well."


def _when_asked(false: Challenged) -> str:
    """What became of it when it was asked about, as the sentence goes on."""
    if false.outcome == SAID_AGAIN:
        return ", and said it again when I asked"
    if false.outcome == TAKEN_BACK:
        return ", and took it back when I asked"
    if false.outcome == WITHDRAWN:
        return ", and took it back when I asked, without saying what is so"
    if false.outcome == NO_ANSWER:
        return "; they gave no reply when I asked"
    if false.outcome in (STOOD_BY, LEFT_OPEN, STILL_WRONG) and false.reply:
        also = ", which is wrong as well" if false.outcome == STILL_WRONG else ""
        return f"; asked about it, they answered {quoted(beginning(false.reply))}{also}"
    return ""


def kept_when_asked(asked: Sequence[Row]) -> Iterator[str]:
    """What was heard as the opposite of a point and kept when it was asked about, in its own words."""
    kept = [(row, point, reply) for row in asked for point, reply in row.kept if row.told_by(point)]
    told = [each for each in kept if is_quotable(each[0].told_by(each[1]))]
    told.sort(key=lambda each: -each[1].weight)
    for row, point, reply in told[:MOST_KEPT]:
        said, then = quoted(row.told_by(point)), quoted(beginning(reply), ends=True)
        heard = "the opposite of what is so as I heard it"
        yield f"In “{row.title}” they said {said}, {heard}, and kept to it when I asked: {then}"


def to_go_back_to(asked: Sequence[Row], *, also_denied: bool = True) -> Iterator[str]:
    """The heaviest sentence that is another answer than a point, or was heard as its opposite where that is
    `also_denied`, and that a reply did not make right: it may be meant otherwise, so that both are quoted, and not
    called wrong."""
    found = []
    for row in asked:
        replies = {each.point: each.said for each in row.pushed if is_an_answer(each.said)}
        for point in row.rubric:
            is_open = (also_denied and point.is_denied) or (point.otherwise and not point.counts)
            words = row.told_by(point)
            if is_open and point.id in replies and is_a_sentence(words):
                worth = row.points * point.weight / sum(each.weight for each in row.rubric)
                found.append((worth, row, words, replies[point.id]))
    kept = {row.told_by(point) for row in asked for point, _ in row.kept}
    found = [each for each in found if each[2] not in each[1].false_words | kept]
    if found:
        _, row, words, reply = max(found, key=lambda each: each[0])
        said, then = quoted(words), quoted(beginning(reply), ends=True)
        yield f"What I would come back to was said in “{row.title}”: {said}; asked about it, they answered {then}"


def held_and_taken_back(asked: Sequence[Row]) -> Iterator[str]:
    """What a candidate who was asked further said to hold on or to take something back, each once; what came of
    something false is told with it."""
    told = {each.reply for row in asked for each in row.challenged}
    replies = [(row, each.said) for row in asked for each in row.pushed if each.point and each.said not in told]
    for does, says in ((takes_back, "took something back"), (stands_by, "held on")):
        first = next(((row, said) for row, said in replies if does(said)), None)
        if first:
            row, said = first
            yield f"Asked further in “{row.title}”, they {says}: {quoted(beginning(said), ends=True)}"


def asked_in_vain(row: Row, point: str) -> bool:
    """Whether a point was asked for, and the reply has no answer."""
    return any(_has_none(each) for each in row.pushed if each.point == point)


def _has_none(pushed: Pushed) -> bool:
    return not is_an_answer(pushed.said)


def is_quotable(words: str) -> bool:
    """Whether words are few enough to be quoted."""
    return len(words.split()) <= LONGEST_QUOTE


def is_a_sentence(words: str) -> bool:
    """Whether words stand by themselves, and can be quoted."""
    return len(words.split()) >= SHORTEST_QUOTE and is_quotable(words) and words[:1] == words[:1].upper()


def beginning(text: str) -> str:
    """As many sentences of a text as can be quoted, or the beginning of the first one."""
    found: list[str] = []
    for each in sentences(text):
        has_said = len(" ".join(found).split()) >= SHORTEST_QUOTE
        if has_said and len(" ".join((*found, each)).split()) > LONGEST_REPLY:
            break
        found.append(each)
    words = " ".join(found).split()
    return " ".join(words) if len(words) <= LONGEST_REPLY else f"{' '.join(words[:LONGEST_REPLY]).rstrip(',;:')} …"


def quoted(words: str, *, ends: bool = False) -> str:
    """Words in quotation marks, without the mark that ends them; with one where they end the sentence."""
    said = words.strip().rstrip(".;:,").strip(_AROUND).translate(_INNER)
    return f"“{said}.”" if ends and said[-1:] not in "?!…" else f"“{said}”"
