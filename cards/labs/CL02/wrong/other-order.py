# mistake: wrong-signature
def tree_broadcast(x, rank, n, root, send, recv):
    me = (rank - root) % n
    reach = 1
    while reach < n:
        if me < reach and me + reach < n:
            send(x, (me + reach + root) % n)
        elif reach <= me < 2 * reach:
            recv(x, (me - reach + root) % n)
        reach *= 2
