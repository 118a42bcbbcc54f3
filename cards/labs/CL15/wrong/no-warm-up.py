# mistake: longer-bubble
def schedule_1f1b(rank, p, m):
    return [action for i in range(m) for action in (f"F{i}", f"B{i}")]
