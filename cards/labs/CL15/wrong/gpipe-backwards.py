# mistake: gpipe, also newest-first, too-many-alive
def schedule_1f1b(rank, p, m):
    return [f"F{i}" for i in range(m)] + [f"B{i}" for i in reversed(range(m))]
