# a generator with iterators for both directions
from itertools import islice


def _actions(rank, p, m):
    forward = (f"F{i}" for i in range(m))
    backward = (f"B{i}" for i in range(m))
    yield from islice(forward, p - rank - 1)
    for action in forward:
        yield action
        yield next(backward)
    yield from backward


def schedule_1f1b(rank, p, m):
    return list(_actions(rank, p, m))
