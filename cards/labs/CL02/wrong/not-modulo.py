# mistake: root-ignored
def tree_broadcast(x, root, rank, n, send, recv):
    me = rank - root
    reach = 1
    while reach < n:
        if 0 <= me < reach and me + reach < n:
            send(x, (me + reach + root) % n)
        elif reach <= me < 2 * reach:
            recv(x, (me - reach + root) % n)
        reach *= 2
