# mistake: unknown-action, also longer-bubble, too-many-alive
def schedule_1f1b(rank, p, m):
    warm_up = p - rank - 1
    actions = [f"F{i}" for i in range(warm_up)]
    for i in range(m - warm_up):
        actions += [f"F{warm_up + i}", f"B{i}"]
    return actions + [f"B{i}" for i in range(max(m - warm_up, 0), m)]
