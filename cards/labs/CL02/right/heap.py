# parents and children as in a heap
def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank + n - root) % n
    if me:
        recv(x, ((me - 1) // 2 + root) % n)
    for child in (2 * me + 1, 2 * me + 2):
        if child < n:
            send(x, (child + root) % n)
