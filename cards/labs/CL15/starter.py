def schedule_1f1b(rank, p, m):
    """The actions of stage `rank` of `p` for `m` micro-batches, such as ["F0", "F1", "B0", ...]."""
