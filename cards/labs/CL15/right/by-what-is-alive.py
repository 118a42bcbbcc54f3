# one loop that looks at how many are alive
def schedule_1f1b(rank, p, m):
    forward = backward = 0
    actions = []
    while backward < m:
        if forward < m and forward - backward < p - rank:
            actions.append(f"F{forward}")
            forward += 1
        else:
            actions.append(f"B{backward}")
            backward += 1
    return actions
