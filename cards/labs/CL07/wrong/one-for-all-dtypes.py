# mistake: mixed-dtypes, also half-empty
def make_buckets(parameters, cap_bytes):
    """Fill one open bucket of each dtype, from the last parameter to the first."""
    buckets, open_of, size_of = [], {}, {}
    for parameter in reversed(list(dict.fromkeys(parameters))):
        if not parameter.requires_grad:
            continue
        dtype, size = None, parameter.numel() * parameter.element_size()
        if dtype not in open_of or size_of[dtype] + size > cap_bytes:
            open_of[dtype], size_of[dtype] = [], 0
            buckets.append(open_of[dtype])
        open_of[dtype].append(parameter)
        size_of[dtype] += size
    return buckets
