# mistake: leaf-first
def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank - root) % n
    if me == 0:
        for other in {1, n - 1}:
            send(x, (root + other) % n)
    elif me in (1, n - 1):
        recv(x, root)
        if me == n - 1 and n > 3:
            send(x, (root + 2) % n)
    else:
        recv(x, (root + n - 1) % n)
