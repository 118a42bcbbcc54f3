# sorted by when the last gradient of a bucket is there
class Bucket:
    def __init__(self):
        self.members, self.size, self.ready_at = [], 0, None

    def fits(self, size, cap):
        return not self.members or self.size + size <= cap

    def add(self, parameter, size, moment):
        self.members.append(parameter)
        self.size += size
        self.ready_at = moment


def make_buckets(parameters, cap_bytes):
    seen, unique = set(), []
    for parameter in parameters:
        if id(parameter) not in seen and parameter.requires_grad:
            seen.add(id(parameter))
            unique.append(parameter)
    closed, current = [], {}
    for moment, parameter in enumerate(unique[::-1]):
        size = parameter.data.untyped_storage().nbytes()
        bucket = current.setdefault(parameter.dtype, Bucket())
        if not bucket.fits(size, cap_bytes):
            closed.append(bucket)
            bucket = current[parameter.dtype] = Bucket()
        bucket.add(parameter, size, moment)
    closed.extend(current.values())
    return [tuple(bucket.members) for bucket in sorted(closed, key=lambda bucket: bucket.ready_at)]
