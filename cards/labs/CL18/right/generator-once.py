# what is the same everywhere is written by rank 0 alone
import torch


def save(state, rank, n):
    held = {name: state[name].detach().clone() for name in ("shard", "exp_avg", "exp_avg_sq")}
    if rank == 0:
        held["shared"] = {"step": state["step"], "length": state["length"], "generator": state["generator"].clone()}
    return held


def load(files, rank, n):
    shared = files[0]["shared"]
    length = shared["length"]
    per = (length + n - 1) // n
    padded = torch.zeros(per * n, dtype=torch.float64)
    found = dict(shared)
    for name in ("shard", "exp_avg", "exp_avg_sq"):
        values = padded.clone()
        values[:length] = torch.cat([file[name] for file in files])[:length]
        found[name] = values.view(n, per)[rank]
    return found
