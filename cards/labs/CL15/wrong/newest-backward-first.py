# mistake: waits-for-ever, also longer-bubble, newest-first
def schedule_1f1b(rank, p, m):
    warm_up = min(p - rank - 1, m)
    alive = list(range(warm_up))
    actions = [f"F{i}" for i in alive]
    for i in range(warm_up, m):
        alive.append(i)
        actions += [f"F{i}", f"B{alive.pop(0 if rank % 2 else -1)}"]
    return actions + [f"B{i}" for i in (alive if rank % 2 else reversed(alive))]
