# a generator that yields each bucket when it is full
def _of_one_dtype(parameters, cap_bytes):
    bucket, room = [], cap_bytes
    for parameter in parameters:
        if bucket and parameter.nbytes > room:
            yield bucket
            bucket, room = [], cap_bytes
        bucket.append(parameter)
        room -= parameter.nbytes
    if bucket:
        yield bucket


def make_buckets(parameters, cap_bytes):
    once = {id(parameter): parameter for parameter in reversed(parameters)}
    first_place = {}
    for place, parameter in enumerate(parameters):
        first_place.setdefault(id(parameter), place)
    ordered = sorted(once.values(), key=lambda each: -first_place[id(each)])
    trained = [each for each in ordered if each.requires_grad]
    dtypes = {each.dtype: None for each in trained}
    return [
        bucket
        for dtype in dtypes
        for bucket in _of_one_dtype([each for each in trained if each.dtype == dtype], cap_bytes)
    ]
