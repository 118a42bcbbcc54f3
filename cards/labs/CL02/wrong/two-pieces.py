# mistake: received-twice, also leaf-first
def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank - root) % n
    for part in x.tensor_split(2):
        reach = 1
        while reach < n:
            if me < reach and me + reach < n:
                send(part, (me + reach + root) % n)
            elif reach <= me < 2 * reach:
                recv(part, (me - reach + root) % n)
            reach *= 2
