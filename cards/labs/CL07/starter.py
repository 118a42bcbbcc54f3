def make_buckets(parameters, cap_bytes):
    """Lists of parameters whose gradients are reduced together, in the order in which they are to be reduced."""
