# mistake: powers-of-two-alone
def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank - root) % n
    reach = 1
    while reach < n:
        if me < reach:
            send(x, (me + reach + root) % n)
        elif me < 2 * reach:
            recv(x, (me - reach + root) % n)
        reach *= 2
