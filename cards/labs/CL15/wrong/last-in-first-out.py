# mistake: newest-first, also longer-bubble
def schedule_1f1b(rank, p, m):
    w = min(m, p - rank)
    a = [f"F{i}" for i in range(w)]
    for i in range(w, m):
        a += [f"B{i - 1}", f"F{i}"]
    return a + [f"B{i}" for i in reversed(range(m)) if f"B{i}" not in a]
