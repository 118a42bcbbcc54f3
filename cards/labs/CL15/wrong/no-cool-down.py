# mistake: missing, also longer-bubble
def schedule_1f1b(rank, p, m):
    warm_up = min(p - rank - 1, m)
    actions = [f"F{i}" for i in range(warm_up)]
    for i in range(m - warm_up):
        actions += [f"F{warm_up + i}", f"B{i}"]
    return actions
