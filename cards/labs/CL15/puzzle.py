ROWS = ()  # arranged


def schedule_1f1b(rank, p, m):
    """The row of so many stages behind this one; further up, a forward pass more for each stage between."""
    behind = p - rank - 1
    row = ROWS[-1 - min(behind, len(ROWS) - 1)]
    passes = "F" * (behind - len(ROWS) + 1) + row + row[-2:] * m
    forwards, backwards = (iter(range(m)) for _ in "FB")
    actions = []
    for each in passes:
        micro_batch = next(forwards if each == "F" else backwards, None)
        if micro_batch is not None:
            actions.append(f"{each}{micro_batch}")
    return actions + [f"F{i}" for i in forwards] + [f"B{i}" for i in backwards]
