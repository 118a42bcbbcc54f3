# mistake: unknown-action, also longer-bubble, missing
def schedule_1f1b(rank, p, m):
    warm_up = min(p - rank - 1, m)
    actions = [f"F{i + 1}" for i in range(warm_up)]
    for i in range(m - warm_up):
        actions += [f"F{warm_up + i + 1}", f"B{i + 1}"]
    return actions + [f"B{i + 1}" for i in range(m - warm_up, m)]
