"""What a reply does with what was said before, by its own words alone: it holds on, or takes it back. Pure."""

from __future__ import annotations

import re

SHORTEST_ANSWER = 5  # words
SHORT = 10  # words of a reply that only holds on
_KNOWS_NOT = re.compile(
    r"\b(?:do not|don't|cannot|can't|not) (?:really )?(?:know|say|sure|remember|recall)\b|\bno idea\b", re.IGNORECASE
)
_NOT = r"(?<!n't )(?<!not )(?<!never )(?<!cannot )"
_IT = r"(?:it|that|this|them|my\b|what I (?:said|have|had))"
_HELD = (
    rf"(?:stay|stick|keep|staying|sticking|keeping) (?:with|to) {_IT}"
    rf"|stand(?:ing)? by {_IT}|hold(?:ing)? (?:on )?to {_IT}"
)
_STANDS_BY = re.compile(
    rf"{_NOT}\b(?:"
    rf"{_HELD}"
    r"|I(?:'m| am) (?:(?:quite|very|pretty|absolutely|completely|fairly|still|rather) )?(?:sure|certain|confident)\b"
    r"|I still (?:think|say|believe|hold|maintain)"
    r"|(?:that|this|it) (?:stays|remains) my (?:plan|answer|choice|view|number)"
    r"|I (?:do not|don't|won't|will not|would not|wouldn't) (?:take (?:it|that|this|any of it) back|change my mind)"
    r")",
    re.IGNORECASE,
)
# Who says one of these holds on whatever else they say; who is sure may be sure of what is so.
_HOLDS_ON = re.compile(rf"{_NOT}\b(?:{_HELD})|^(?:(?:well|hm+|no)[\s,.]+)*still\b(?! (?:the )?same)", re.IGNORECASE)
_TAKES_BACK = re.compile(
    rf"{_NOT}\b(?:"
    r"take (?:it|that|this|all of (?:it|that)|that one|what I said) back|take back (?:what|that|my)"
    r"|taking (?:it|that) back|I was wrong|I got (?:it|that|this) wrong|what I said (?:was|is) wrong"
    r"|that was (?:wrong|too strong|nonsense|a mistake)"
    r"|I misspoke|scratch that|my mistake|I stand corrected|I(?: have to| must)? correct myself"
    r")"
    # who begins so turns round
    r"|^(?:oh|ah|hm+|okay|ok|right|well|yes|yeah)?[\s,.!]*"
    r"(?:no|wait|sorry|actually)[\s,.!]+"
    r"(?:wait|sorry|no|actually|you(?:'re| are) right|that's (?:not )?(?:right|true|so))\b",
    re.IGNORECASE,
)
# Who begins so says yes to what was said back, unless they go on by saying that the other is right.
_AFFIRMS = re.compile(
    r"^(?:(?:well|hm+|oh)[\s,.]+)*(?:yes|yeah|yep|yup|indeed|exactly|correct|of course|certainly|definitely|absolutely"
    r"|that's so|that is so)\b(?![\s,.:;!–—-]+(?:but\b|no\b|not\b|wait|sorry|right\b|true\b|I see"
    r"|good (?:point|question)|you(?:'re| are)|I (?:was|am wrong|take|mis|meant)|my mistake|actually|that was))",
    re.IGNORECASE,
)
# What stands before a reply says what is so.
_BACK_FIRST = re.compile(
    r"^(?:(?:oh|ah|no|wait|sorry|right|okay|ok|yes|well)[\s,.!]+)*(?:I take (?:it|that|this) back|I was wrong"
    r"|my mistake|scratch that|I misspoke|I stand corrected)[\s,.:;–—-]+",
    re.IGNORECASE,
)
# A sentence that begins so corrects what came before it.
_CORRECTS = re.compile(
    r"(?:^|[.!?;:]\s+|\n)(?:(?:oh|ah|hm+|well|but|or)[\s,.]+)*"
    r"(?:no|wait|sorry|actually|rather|correction|let me correct|I mean|scratch)\b",
    re.IGNORECASE,
)


def is_an_answer(reply: str) -> bool:
    """Whether a reply says something: who does not know says so in few words."""
    return len(reply.split()) >= SHORTEST_ANSWER and not _KNOWS_NOT.search(reply)


def says_nothing(reply: str) -> bool:
    """Whether a reply is that its author does not know, and no more."""
    return len(reply.split()) < SHORTEST_ANSWER and _KNOWS_NOT.search(_plain(reply)) is not None


def is_short_stand(reply: str) -> bool:
    """Whether a reply says little more than that its speaker holds on to what they said."""
    return len(reply.split()) <= SHORT and stands_by(reply)


def stands_by(reply: str) -> bool:
    """Whether who replies says, in so many words, that they hold on to what they said."""
    plain = _plain(reply)
    return _STANDS_BY.search(plain) is not None and not _TAKES_BACK.search(plain)


def holds_on(reply: str) -> bool:
    """Whether who replies says that they stay with what they said, or begins with that it is still so."""
    plain = _plain(reply)
    return _HOLDS_ON.search(plain) is not None and not _TAKES_BACK.search(plain)


def affirms(reply: str) -> bool:
    """Whether who replies begins by saying yes to what was said back."""
    plain = _plain(reply)
    return _AFFIRMS.search(plain) is not None and not _TAKES_BACK.search(plain)


def beyond_taking_back(reply: str) -> str:
    """What a reply says beyond that it takes something back, where it begins with that."""
    return _BACK_FIRST.sub("", reply)


def corrects(text: str) -> bool:
    """Whether a text begins a sentence as who corrects themselves does, or says that what came before was wrong."""
    return _CORRECTS.search(_plain(text)) is not None or takes_back(text)


def takes_back(reply: str) -> bool:
    """Whether who replies says, in so many words, that what they said was wrong."""
    plain = _plain(reply)
    return _TAKES_BACK.search(plain) is not None and not _STANDS_BY.search(plain)


def _plain(reply: str) -> str:
    return reply.replace("’", "'")
