"""The collection inside an .apkg file as RankZero writes it: Anki's schema 11, which every Anki since 2.0 reads. Pure.

Anki: rslib/src/storage/schema11.sql and rslib/src/import_export/package. Ids of ours are fixed, so that Anki knows the
note types again and updates notes in place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

SCHEMA = """
CREATE TABLE col (id integer PRIMARY KEY, crt integer NOT NULL, mod integer NOT NULL, scm integer NOT NULL,
  ver integer NOT NULL, dty integer NOT NULL, usn integer NOT NULL, ls integer NOT NULL, conf text NOT NULL,
  models text NOT NULL, decks text NOT NULL, dconf text NOT NULL, tags text NOT NULL);
CREATE TABLE notes (id integer PRIMARY KEY, guid text NOT NULL, mid integer NOT NULL, mod integer NOT NULL,
  usn integer NOT NULL, tags text NOT NULL, flds text NOT NULL, sfld integer NOT NULL, csum integer NOT NULL,
  flags integer NOT NULL, data text NOT NULL);
CREATE TABLE cards (id integer PRIMARY KEY, nid integer NOT NULL, did integer NOT NULL, ord integer NOT NULL,
  mod integer NOT NULL, usn integer NOT NULL, type integer NOT NULL, queue integer NOT NULL, due integer NOT NULL,
  ivl integer NOT NULL, factor integer NOT NULL, reps integer NOT NULL, lapses integer NOT NULL, left integer NOT NULL,
  odue integer NOT NULL, odid integer NOT NULL, flags integer NOT NULL, data text NOT NULL);
CREATE TABLE revlog (id integer PRIMARY KEY, cid integer NOT NULL, usn integer NOT NULL, ease integer NOT NULL,
  ivl integer NOT NULL, lastIvl integer NOT NULL, factor integer NOT NULL, time integer NOT NULL,
  type integer NOT NULL);
CREATE TABLE graves (usn integer NOT NULL, oid integer NOT NULL, type integer NOT NULL);
CREATE INDEX ix_notes_usn ON notes (usn);
CREATE INDEX ix_cards_usn ON cards (usn);
CREATE INDEX ix_revlog_usn ON revlog (usn);
CREATE INDEX ix_cards_nid ON cards (nid);
CREATE INDEX ix_cards_sched ON cards (did, queue, due);
CREATE INDEX ix_revlog_cid ON revlog (cid);
CREATE INDEX ix_notes_csum ON notes (csum);
"""

FIELDS = ("Question", "Answer", "Shorthand", "Precise", "Trap", "Source", "Id", "Data")
BASIC, CLOZE = 1720000000001, 1720000000002  # the note types' ids, for ever
NAMES = {BASIC: "RankZero", CLOZE: "RankZero cloze"}

FIRST_ID = 1_600_000_000_000  # ids are milliseconds; ours lie in two years of the past that nobody else's fill densely
ID_BITS = 36

_STYLE = """.card { font-family: Georgia, serif; font-size: 19px; line-height: 1.5; text-align: left; max-width: 38rem;
  margin: 0 auto; padding: 0 1rem; }
.cloze { font-weight: 600; }
h4 { margin: 1.2em 0 0; font: 600 13px/1.4 sans-serif; opacity: .75; }
.source { margin-top: 1.6em; font: 13px/1.4 sans-serif; opacity: .6; }
pre { overflow-x: auto; font-size: 14px; }
table { border-collapse: collapse; font-size: 15px; }
th, td { text-align: left; padding: .2em .8em .2em 0; border-bottom: 1px solid; }
"""
_MORE = "".join(
    f"{{{{#{name}}}}}<h4>{label}</h4>{{{{{name}}}}}{{{{/{name}}}}}\n"
    for name, label in (
        ("Shorthand", "In the interview, shorthand"),
        ("Precise", "Precise"),
        ("Trap", "Trap"),
    )
)
_FOOT = '<p class="source">{{Id}} · {{Source}}</p>'


def stable_ids(names: Iterable[str]) -> dict[str, int]:
    """An id for each name that follows from the name alone, save where two of them would be the same."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    for name in sorted(names):
        number = FIRST_ID + (int.from_bytes(sha256(name.encode()).digest()[:8]) >> (64 - ID_BITS))
        while number in taken:
            number += 1
        taken.add(number)
        found[name] = number
    return found


def note_types(modified: int) -> str:
    """Both note types as the `models` column holds them."""
    kinds = {
        BASIC: ("{{Question}}", "{{FrontSide}}<hr id=answer>{{Answer}}\n" + _MORE + _FOOT, 0),
        CLOZE: ("{{cloze:Question}}", "{{cloze:Question}}<hr id=answer>{{Answer}}\n" + _MORE + _FOOT, 1),
    }
    return json.dumps(
        {str(id_): _note_type(id_, front, back, kind, modified) for id_, (front, back, kind) in kinds.items()}
    )


def _note_type(id_: int, front: str, back: str, kind: int, modified: int) -> dict[str, Any]:
    template = {
        "name": "Card 1",
        "ord": 0,
        "qfmt": front,
        "afmt": back,
        "bqfmt": "",
        "bafmt": "",
        "did": None,
        "bfont": "",
        "bsize": 0,
    }
    fields: list[dict[str, Any]] = [
        {
            "name": name,
            "ord": index,
            "sticky": False,
            "rtl": False,
            "font": "Arial",
            "size": 20,
            "media": [],
            "description": "How RankZero knows this card again; leave it as it is." if name == "Data" else "",
            "excludeFromSearch": name == "Data",
            "collapsed": name in ("Id", "Data"),
        }
        for index, name in enumerate(FIELDS)
    ]
    return {
        "id": id_,
        "name": NAMES[id_],
        "type": kind,
        "mod": modified,
        "usn": -1,
        "sortf": 0,
        "did": None,
        "tmpls": [template],
        "flds": fields,
        "css": _STYLE,
        "latexPre": "",
        "latexPost": "",
        "latexsvg": False,
        "req": [[0, "any", [0]]],
        "tags": [],
        "vers": [],
    }


def decks(ids: dict[str, int], modified: int) -> str:
    """The decks as the column of that name holds them. Anki takes them together with its own by name."""
    return json.dumps(
        {str(id_): _deck(id_, name, modified) for name, id_ in {"Default": 1, **ids}.items()}, ensure_ascii=False
    )


def _deck(id_: int, name: str, modified: int) -> dict[str, Any]:
    return {
        "id": id_,
        "mod": modified,
        "name": name,
        "usn": -1,
        "lrnToday": [0, 0],
        "revToday": [0, 0],
        "newToday": [0, 0],
        "timeToday": [0, 0],
        "collapsed": True,
        "browserCollapsed": True,
        "desc": "",
        "dyn": 0,
        "conf": 1,
        "extendNew": 0,
        "extendRev": 0,
    }


DECK_OPTIONS = json.dumps(
    {
        "1": {
            "id": 1,
            "mod": 0,
            "name": "Default",
            "usn": 0,
            "maxTaken": 60,
            "autoplay": True,
            "timer": 0,
            "replayq": True,
            "dyn": False,
            "new": {
                "bury": False,
                "delays": [1.0, 10.0],
                "initialFactor": 2500,
                "ints": [1, 4, 0],
                "order": 1,
                "perDay": 20,
            },
            "rev": {"bury": False, "ease4": 1.3, "ivlFct": 1.0, "maxIvl": 36500, "perDay": 200, "hardFactor": 1.2},
            "lapse": {"delays": [10.0], "leechAction": 1, "leechFails": 8, "minInt": 1, "mult": 0.0},
        }
    }
)


def configuration(minutes_west: int) -> str:
    """The collection's settings: the second scheduler, whose due dates are days of the learner's zone from 04:00."""
    return json.dumps(
        {
            "curDeck": 1,
            "activeDecks": [1],
            "schedVer": 2,
            "creationOffset": minutes_west,
            "rollover": 4,
            "nextPos": 1,
            "sortType": "noteFld",
            "sortBackwards": False,
            "newSpread": 0,
            "collapseTime": 1200,
            "timeLim": 0,
            "estTimes": True,
            "dueCounts": True,
            "curModel": None,
            "addToCur": True,
            "dayLearnFirst": False,
        }
    )


def checksum(first_field: str) -> int:
    """Anki's checksum of a note's first field, by which it finds duplicates."""
    from hashlib import sha1  # noqa: PLC0415 - of this file format, not of ours

    return int(sha1(first_field.encode(), usedforsecurity=False).hexdigest()[:8], 16)
