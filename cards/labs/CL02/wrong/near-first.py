# mistake: leaf-first
def tree_broadcast(x, root, rank, n, send, recv):
    me, bit = (rank - root) % n, 1
    while bit < n and not me & bit:
        bit *= 2
    if me:
        recv(x, (rank - bit) % n)
    child = 1
    while child < bit:
        if me + child < n:
            send(x, (rank + child) % n)
        child *= 2
