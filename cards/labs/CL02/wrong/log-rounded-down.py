# mistake: powers-of-two-alone
import math


def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank - root) % n
    for level in range(int(math.log2(n))):
        reach = 2**level
        if me < reach and me + reach < n:
            send(x, (me + reach + root) % n)
        elif reach <= me < 2 * reach:
            recv(x, (me - reach + root) % n)
