# mistake: nothing-sent
def tree_broadcast(x, root, rank, n, send, recv):
    return x
