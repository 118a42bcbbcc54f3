# mistake: root-sends-all, also leaf-first
def tree_broadcast(x, root, rank, n, send, recv):
    if rank != root:
        recv(x, root)
        return
    for other in range(n):
        if other != root:
            send(x, other)
