# recursion: the buckets of the rest, once the first one is filled
def make_buckets(parameters, cap_bytes):
    trained = []
    for parameter in parameters:
        if parameter.requires_grad and not any(parameter is other for other in trained):
            trained.insert(0, parameter)
    return _buckets(trained, cap_bytes)


def _buckets(waiting, cap_bytes):
    if not waiting:
        return []
    dtype, bucket, size, full = waiting[0].dtype, [], 0, False
    for parameter in waiting:
        if parameter.dtype != dtype or full:
            continue
        own = parameter.numel() * dtype.itemsize
        if bucket and size + own > cap_bytes:
            full = True
        else:
            bucket.append(parameter)
            size += own
    rest = [each for each in waiting if not any(each is member for member in bucket)]
    return [bucket, *_buckets(rest, cap_bytes)]
