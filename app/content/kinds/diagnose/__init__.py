"""A symptom of a running job: what causes it, and what to do."""

from app.content.kinds.kind import CardKind


class Diagnose(CardKind):
    name, seconds, place = "diagnose", 45, 5


KIND = Diagnose()
