# the three shards as rows of one tensor, without what fills them up, and where they begin
import torch
import torch.nn.functional as F

NAMES = ["shard", "exp_avg", "exp_avg_sq"]


def save(state, rank, n):
    per = len(state["shard"])
    start = rank * per
    rows = torch.stack([state[name] for name in NAMES])[:, : max(0, state["length"] - start)].clone()
    rest = {name: state[name] for name in ("step", "length")}
    return {"rows": rows, "start": start, "generator": state["generator"].clone(), **rest}


def load(files, rank, n):
    whole = torch.empty(len(NAMES), files[0]["length"], dtype=files[0]["rows"].dtype)
    for file in files:
        whole[:, file["start"] : file["start"] + file["rows"].shape[1]] = file["rows"]
    per = -(-whole.shape[1] // n)
    own = F.pad(whole, (0, per * n - whole.shape[1]))[:, rank * per : (rank + 1) * per]
    state = dict(zip(NAMES, own))
    return {**state, **{name: files[-1][name] for name in ("step", "length", "generator")}}
