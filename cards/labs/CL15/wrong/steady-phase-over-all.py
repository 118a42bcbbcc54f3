# mistake: doubled, also longer-bubble, too-many-alive
def schedule_1f1b(rank, p, m):
    warm_up = min(p - rank - 1, m)
    actions = [f"F{i}" for i in range(warm_up)]
    for i in range(m):
        actions += [f"F{min(warm_up + i, m - 1)}", f"B{i}"]
    return actions
