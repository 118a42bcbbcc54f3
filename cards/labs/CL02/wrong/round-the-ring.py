# mistake: received-twice, also leaf-first, passed-along, root-sends-all
def tree_broadcast(x, root, rank, n, send, recv):
    if rank != root:
        recv(x, (rank - 1) % n)
    send(x, (rank + 1) % n)
    if rank == root:
        recv(x, (rank - 1) % n)
