"""An answer in words: evidence is underlined where it stands, and a missed point says why."""

from __future__ import annotations

from app.reveal.words import Finding, Kind, mark, nearest, sentences, why_less

ANSWER = "FSDP frees the weights after forward. Backward gathers 25.3 MB again; that is the second gather.\nIt is free."


def _finding(name: str, kind: Kind | None, *evidence: str) -> Finding:
    return Finding(name, name, "Met", "met", 1.0, 2.0, kind, evidence)


def test_all_of_the_answer_is_there_and_notes_are_numbered_as_they_come() -> None:
    found = [
        _finding("missed", None),
        _finding("free", "no", "It is free."),
        _finding("again", "ok", "backward gathers 25.3 mb again"),  # found in other letters, shown as written
        _finding("nowhere", "ok", "words that do not stand in it"),
    ]
    marked = mark(ANSWER, found)
    assert "".join(each.text for each in marked.pieces) == ANSWER
    assert [(note.number, note.finding.id) for note in marked.notes] == [
        (1, "again"),
        (2, "free"),
        (None, "missed"),
        (None, "nowhere"),
    ]
    underlined = [(each.text, each.kind, each.ends) for each in marked.pieces if each.kind]
    assert underlined == [("Backward gathers 25.3 MB again", "ok", (1,)), ("It is free.", "no", (2,))]


def test_where_evidence_overlaps_what_is_wrong_shows_and_both_are_numbered() -> None:
    marked = mark(ANSWER, [_finding("whole", "ok", ANSWER), _finding("free", "no", "It is free.")])
    assert [(each.kind, each.ends) for each in marked.pieces] == [("ok", ()), ("no", (1, 2))]


def test_sentences_end_at_no_stop_inside_a_number() -> None:
    assert sentences(ANSWER)[1] == "Backward gathers 25.3 MB again;"
    assert "".join(sentences("no stop at all")) == "no stop at all"
    assert sentences("") == []


def test_the_sentence_nearest_to_a_point_has_most_of_its_words() -> None:
    assert nearest("Backward gathers the weights a second time, 25.3 MB.", ANSWER) == "Backward gathers 25.3 MB again;"
    assert nearest("Buckets are all-reduced in order.", ANSWER) is None
    assert nearest("anything", "") is None


def test_of_a_missed_point_nothing_is_said_but_that_it_was_not_heard() -> None:
    assert why_less("missed", 0, "FSDP frees buckets", None, ANSWER) == "Nothing in your words was heard to say it."
    half = why_less("missed", 0, "FSDP frees buckets", "Frees something.", ANSWER)
    assert half == "Not heard. Half of it would be: frees something."
    close = why_less("missed", 0, "Backward gathers the weights a second time, 25.3 MB.", None, ANSWER)
    assert close == "Nearest to it is “Backward gathers 25.3 MB again”, but not heard to say it."


def test_half_a_point_says_the_rule_for_half_and_names_no_number_as_lacking() -> None:
    point, answer = "16 bytes per parameter, 208 GB: weights 26 GB.", "16 bytes: weights, gradients and 26 GB of them."
    ruled = why_less("met", 0.5, point, "The total alone.", answer)
    assert ruled == "Half of it was heard. By the rule, half is for: the total alone."
    assert why_less("met", 0.5, point, "ZeRO alone.", answer).endswith("half is for: ZeRO alone.")
    assert why_less("met", 0.5, "The share is 9.874 % here.", None, answer) == "Half of it was heard."
    assert why_less("met", 1, point, None, answer) == ""


def test_a_weight_is_said_in_words() -> None:
    assert _finding("a", "ok").weight == "1 of 2 points"
    assert Finding("a", "a", "Critical", "contra", 0.0, 0.0, "no", ()).weight == ""
