# sort all actions by when they happen in a tick table
def schedule_1f1b(rank, p, m):
    moments = []
    for i in range(m):
        # the F of a micro-batch goes before the B that makes room for it
        moments.append((max(i, 2 * i - (p - rank - 1)), 0, f"F{i}"))
        moments.append((p - rank - 1 + 2 * i, 1, f"B{i}"))
    return [action for _, _, action in sorted(moments)]
