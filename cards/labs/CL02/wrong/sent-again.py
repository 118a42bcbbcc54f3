# mistake: received-twice, also leaf-first, root-sends-all
def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank - root) % n
    reach = 1
    while reach < n:
        if me < reach and me + reach < n:
            send(x, (me + reach + root) % n)
        elif reach <= me < 2 * reach:
            recv(x, (me - reach + root) % n)
        reach *= 2
    if me == 0:
        send(x, (root + 1) % n)
    elif me == 1:
        recv(x, root)
