# mistake: passed-on-too-early
def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank - root) % n
    left, right = (rank - 1) % n, (rank + 1) % n
    if me == 0:
        send(x, right)
    elif me % 2 == 0:
        send(x, right) if me < n - 1 else None
        recv(x, left)
    else:
        recv(x, left)
        if me < n - 1:
            send(x, right)
