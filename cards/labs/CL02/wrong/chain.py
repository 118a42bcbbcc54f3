# mistake: passed-along, also leaf-first
def tree_broadcast(x, root, rank, n, send, recv):
    if rank != root:
        recv(x, (rank - 1) % n)
    if (rank + 1) % n != root:
        send(x, (rank + 1) % n)
