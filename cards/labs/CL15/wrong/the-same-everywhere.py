# mistake: same-on-every-stage, also longer-bubble, too-many-alive
def schedule_1f1b(rank, p, m):
    warm_up = min(p - 1, m)
    actions = [f"F{i}" for i in range(warm_up)]
    for i in range(m - warm_up):
        actions += [f"F{warm_up + i}", f"B{i}"]
    return actions + [f"B{i}" for i in range(m - warm_up, m)]
