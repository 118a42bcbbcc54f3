# mistake: root-ignored, also received-twice
def tree_broadcast(x, root, rank, n, send, recv):
    reach = 1
    while reach < n:
        if rank < reach and rank + reach < n:
            send(x, rank + reach)
        elif reach <= rank < 2 * reach:
            recv(x, rank - reach)
        reach *= 2
