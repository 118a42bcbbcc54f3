# mistake: order-of-forward
def make_buckets(parameters, cap_bytes):
    buckets = []
    for parameter in reversed(list(dict.fromkeys(parameters))):
        if parameter.requires_grad:
            for bucket in buckets:
                alike = bucket[0].dtype == parameter.dtype
                if alike and sum(each.nbytes for each in bucket) + parameter.nbytes <= cap_bytes:
                    bucket.append(parameter)
                    break
            else:
                buckets.append([parameter])
    return buckets
