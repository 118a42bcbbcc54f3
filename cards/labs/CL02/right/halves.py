# the ranks in two halves, again and again
def tree_broadcast(x, root, rank, n, send, recv):
    order = [(root + i) % n for i in range(n)]

    def serve(part):
        if len(part) < 2 or rank not in part:
            return
        middle = (len(part) + 1) // 2
        near, far = part[:middle], part[middle:]
        if rank == near[0]:
            send(x, far[0])
        elif rank == far[0]:
            recv(x, near[0])
        serve(near)
        serve(far)

    serve(order)
