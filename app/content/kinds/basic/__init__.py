"""A question and an answer, which the learner judges."""

from app.content.kinds.kind import CardKind, Own


class Basic(CardKind):
    name, seconds, place = "basic", 30, 1
    own = Own("Question and answer", needs_answer=True)


KIND = Basic()
