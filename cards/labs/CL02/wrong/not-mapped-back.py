# mistake: root-ignored
def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank - root) % n
    reach = 1
    while reach < n:
        if me < reach and me + reach < n:
            send(x, me + reach)
        elif reach <= me < 2 * reach:
            recv(x, me - reach)
        reach *= 2
