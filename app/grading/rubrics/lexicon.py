"""The words of the field as data: other spellings, negators, small words, and words that a typo may have hit."""

from __future__ import annotations

import re
from functools import lru_cache

import snowballstemmer

from app.grading.rubrics.words import FUNCTION_WORDS, NEIGHBOURS, VOCABULARY

_STEMMER = snowballstemmer.stemmer("english")

# Applied in this order to lower-case text: what is written on the left is read as the word on the right.
_ALIASES = (
    (r"n't\b", " not"),
    (r"\b(do|does|is|are|was|did|wo|ca|could|should|would|has|have|were)nt\b", r"\1 not"),
    (r"\bcannot\b", "can not"),
    (r"\b(?:do not|not to|never|not) (?:forget|overlook|neglect)\b", "remember"),
    (r"\bw/o\b", "without"),
    (r"\bf s d p\b", "fsdp"),
    (r"\bd d p\b", "ddp"),
    (r"\b(t|p|d) p\b", r"\1p"),
    (r"\bg p us?\b", "gpu"),
    (r"\bm f u\b", "mfu"),
    (r"\bn c c l\b", "nccl"),
    (r"\bno[_ -]?sync\b", "nosync"),
    (r"\b(?:fully[- ]sharded data[- ]parallel(?:ism)?)\b", "fsdp"),
    (
        r"\b(?:distributed|plain|ordinary|vanilla|classic|pure|naive|standard|regular|simple|traditional) "
        r"(?:data[- ]?parallel(?:ism)?|dp)\b",
        "ddp",
    ),
    (r"\bdata[- ]?parallel(?:ism|izm)?\b", "dp"),
    (r"\btensor[- ]?(?:model[- ])?parall?el(?:l?ism)?\b", "tp"),
    (r"\bpipeline[- ]?(?:model[- ])?parall?el(?:l?ism)?\b", "pp"),
    (r"\bsequence[- ]?parallel(?:ism)?\b", "sp"),
    (r"\btensor[- ](?=\d+\b)", "tp "),
    (r"\bpipeline[- ](?=\d+\b)", "pp "),
    (r"\b(?:zero|ds|deepspeed)?[- ]*(?:stage|zero|z)[- ]?([123])\b", r" stage\1 "),
    (r"\bfirst stage\b", "stage1"),
    (r"\ball[- ]?reduc(?:e|es|ed|ing|tions?)\b", "allreduce"),
    (r"\ball[- ]?gather(?:s|ed|ing)?\b", "allgather"),
    (r"\breduce[- ]?scatter(?:s|ed|ing)?\b", "reducescatter"),
    (r"\ball[- ]?to[- ]?alls?\b", "alltoall"),
    (r"\bmicro[- ]?batch(?:e?s)?\b", "microbatch"),
    (r"\btime[- ]?outs?\b", "timeout"),
    (r"\bdata[- ]?load(?:er|ers|ing)\b", "dataloader"),
    (r"\bout[- ]of[- ]memory\b|\booms\b", "oom"),
    (r"\b(?:activations?|gradients?|grad|act)[- ]check[- ]?point(?:ing|s|ed)?\b", "recompute"),
    (r"\b(?:activations?[- ])?(?:re-?comput\w+|rematerial\w+|remat)\b", "recompute"),
    (r"\bcheck[- ]?point(?:s|ing|ed)?\b|\bckpts?\b", "checkpoint"),
    (
        r"\b(?:in|inside|within|intra)[- ](?:a |the |1 |each |single |same |every )?(?:single )?"
        r"(?:node|server|box|machine|nvlink domain)s?\b|\bsame node\b|\bin-node\b",
        "innode",
    ),
    (
        r"\b(?:across|cross|inter|between|over)[- ](?:the |different |several |multiple |many |\d+ )?"
        r"(?:node|server|machine|box)(?:e?s)?\b|"
        r"\bleaves? (?:the|a|one) (?:node|server|machine|box)\b",
        "crossnode",
    ),
    (r"(?<![a-z])(tp|pp|dp|cp|ep)[ _-]?=?[ ]?(\d+)", r" \1 = \2 "),
    (r"\bar\b(?! model)", "allreduce"),
    (r"\bag\b", "allgather"),
    (r"\brs\b", "reducescatter"),
    (r"\bacts\b|\bactivs\b", "activations"),
    (r"\bparms?\b", "parameter"),
    (r"\bfwd\b", "forward"),
    (r"\bbwd\b", "backward"),
    (r"\b(gpu|cpu|tpu|nic)s\b", r"\1"),  # the stemmer takes these plurals for words of their own
    (r"\bf s d p\b", "fsdp"),  # as dictation spells them
    (r"\bd d p\b", "ddp"),
    (r"\bn v ?link\b", "nvlink"),
    (r"\bw/", "with "),
    (r"\bmbs\b", "microbatch"),
    (r"\brank-(?=\d)", "rank "),
    (r"\b1st\b", "first"),
    (r"\b2nd\b", "second"),
    (r"\b3rd\b", "third"),
    (r"\bnr\b", "number"),
    (r"\b(m|b|tr)illions\b", r"\1illion"),
    (r"\bpy[- ]spy\b", "pyspy"),
    (r"\b1 ?f ?1 ?b\b", "onefoneb"),
    (r"\bbus[- ]?bw\b|\bbusbandwidth\b", "bus bandwidth"),
    (r"\bbw\b", "bandwidth"),
    (r"\bcomms?\b", "communication"),
    (r"\bgrads?\b", "gradient"),
    (r"\bparams?\b", "parameter"),
    (r"\bopt\b|\boptimi[sz]er\b", "optimizer"),
    (r"\bseq\b", "sequence"),
    (r"\bmem\b", "memory"),
    (r"\basync\b", "asynchronous"),
    (r"\bconfigs?\b", "configuration"),
    (r"\bpower[- ]?sgd\b", "powersgd"),
    (r"\btop[- ]?k\b", "topk"),
    (r"\biso[- ]?flops?\b", "isoflop"),
    (r"\bmtb?f\b|\bmttf\b|\bmean time (?:between|to) (?:failures?|interruptions?)\b", "mtbf"),
    (r"\bcross[- ]?entropy\b", "crossentropy"),
    (r"\bpre-?fetch(?:es|ed|ing)?\b", "prefetch"),
    (r"\b(?:mid-?|base)lines?\b", "baseline"),
    (r"\bgigs?\b", "gb"),
    (r"\bk\s*=\s*", "k = "),
    (r"\beach\b", "every"),
    (r"\bneighbor", "neighbour"),
    (
        r"\b(re|un|de|mis)?(amort|equal|factor|general|initial|linear|local|material|maxim|minim|normal|optim|organ|parallel"
        r"|priorit|quant|random|real|serial|spars|stabil|standard|summar|synchron|token|util)is(?=e|ing|ation|able)",
        r"\1\2iz",
    ),  # one spelling of both
)


def _begins_with(pattern: str) -> str:
    """The letters that every match of `pattern` begins with; none where it may begin in several ways."""
    outside = re.sub(r"\((?:[^()]|\([^()]*\))*\)", "", pattern)
    found = re.match(r"\\b([a-z]+)([?*{]?)", pattern)
    if "|" in outside or found is None:
        return ""
    return found[1][:-1] if found[2] else found[1]


# To ask whether letters stand in a text is quick, and of most rules they do not.
ALIASES = tuple((_begins_with(pattern), re.compile(pattern), read_as) for pattern, read_as in _ALIASES)

NEGATORS = frozenset({"not", "never", "no", "without", "neither", "nor", "hardly", "instead", "avoid", "nobody"})
NOT_NEGATING = frozenset({"only", "just", "matter", "merely"})  # "not only" affirms what follows
CLAUSE_ENDS = frozenset(
    {"but", "so", "i", "then", "because", "since", "hence", "therefore", "which", "while", "whereas", "although"}
)

# Subjects of the field, as stems: a false statement about one of them does not reach across another.
SUBJECTS = frozenset(
    {"tp", "pp", "dp", "ddp", "fsdp", "sp", "cp", "ep", "stage1", "stage2", "stage3", "pipelin", "tensor"}
)

# What one speaks of instead of another, as stems: what is said of one of them in its clause is not said of the others.
ALTERNATIVES = tuple(
    frozenset(each.split())
    for each in (
        "tp tensor", "pp pipelin", "dp ddp replica", "fsdp stage3", "ep expert", "cp",
        "ring", "tree", "gpipe", "onefoneb", "deepspe infin",
    )
)  # fmt: skip

# Words and signs with which another clause may begin, as stems.
CLAUSE_BREAKS = frozenset({",", "—", "–", "and", "but", "while", "wherea", "although", "though", "unlik"})

# … and with these another statement begins.
STATEMENT_BREAKS = CLAUSE_BREAKS | {":", "(", ")", "becaus", "so", "which", "sinc", "therefor", "henc"}

# What says in a clause that it is not so, as stems; "without" and "instead" say of something else that it is not there.
DENIALS = frozenset({"not", "no", "never", "nobodi"})

# A sentence that says of something that it is wrong does not claim it.
REFUTERS = frozenset(
    {
        "wrong",
        "incorrect",
        "myth",
        "false",
        "mistake",
        "mistaken",
        "misconception",
        "nonsense",
        "untrue",
        "fallacy",
        "disaster",
        "disastrous",
        "catastrophe",
        "catastrophic",
        "hopeless",
        "absurd",
        "naive",
    }
)

# What is called this is not recommended: one word, or two that stand close together, as stems.
DISMISSALS = frozenset(
    {
        "irrelevant",
        "superfluous",
        "unnecessary",
        "pointless",
        "useless",
        "needless",
        "overrated",
        "unimportant",
        "obsolete",
        "academic",
    }
)
DISMISSING_PAIRS = frozenset(
    tuple(each.split())
    for each in (
        "no need", "no point", "not need", "noth need", "no reason", "not necessari", "no use", "not bother",
        "not worth", "no role", "no influenc", "no differ", "no effect", "no impact", "no bear", "not matter",
        "not issu", "no issu", "never issu", "noth do", "add noth", "bring noth", "gain noth", "worth noth",
        "not involv", "not occur", "not happen", "never happen",
    )
)  # fmt: skip

_SHORTEST = 5


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The stem of an English word; digits and signs stay as they are."""
    return str(_STEMMER.stemWord(word)) if word.isalpha() else word


FUNCTION_STEMS = frozenset(map(stem, FUNCTION_WORDS))  # of small words, which say nothing of a subject


def _deletions(word: str) -> set[str]:
    return {word} | {word[:index] + word[index + 1 :] for index in range(len(word))}


def _table() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in sorted(VOCABULARY):
        for shorter in _deletions(word):
            found.setdefault(shorter, []).append(word)
    return found


_BY_DELETION = _table()
_KNOWN_STEMS = frozenset(map(stem, VOCABULARY | NEIGHBOURS))


@lru_cache(maxsize=20_000)
def corrected(word: str) -> str:
    """`word`, or the word of the field that is one letter away: one more, one less, another, or two swapped."""
    if len(word) < _SHORTEST or len(word) > 20 or word in FUNCTION_WORDS or stem(word) in _KNOWN_STEMS:
        return word
    near = {each for shorter in _deletions(word) for each in _BY_DELETION.get(shorter, ()) if _is_slip(word, each)}
    return min(near, default=word)


def _is_slip(typed: str, meant: str) -> bool:
    """Whether one slip of the finger lies between them. The first letter is hardly ever the wrong one."""
    start = 0
    while start < min(len(typed), len(meant)) and typed[start] == meant[start]:
        start += 1
    left, right = typed[start:], meant[start:]
    swapped = len(left) > 1 and left[1::-1] == right[:2] and left[2:] == right[2:]
    return start > 0 and (left[1:] == right[1:] or left == right[1:] or left[1:] == right or swapped)


_LETTERS = re.compile(r"(?<![a-z\d])[a-z]{5,20}(?![a-z])")


def aliased(text: str) -> str:
    """Lower-case `text` with typos corrected and the field's other spellings as one."""
    text = _LETTERS.sub(lambda found: corrected(found.group()), text)
    for beginning, pattern, read_as in ALIASES:
        if beginning in text:
            text = pattern.sub(read_as, text)
    return text
