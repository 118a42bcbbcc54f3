def tree_broadcast(x, root, rank, n, send, recv):
    """A binomial tree: in every round each rank that has it sends to one that has not."""
    me = (rank - root) % n
    reach = 1
    while reach < n:
        if me < reach and me + reach < n:
            send(x, (me + reach + root) % n)
        elif reach <= me < 2 * reach:
            recv(x, (me - reach + root) % n)
        reach *= 2
