# mistake: no-communication


def average_grads(model):
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= 1
