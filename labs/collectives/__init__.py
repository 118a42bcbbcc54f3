"""Collectives written out to be read and measured: what a library does behind one call, message by message.

Start with `wire` (how a message is sent, and counted) and `ring`; `tree`, `naive` and `server` are other ways to the
same result, and `library` is what one calls in earnest. `cost` says what the α-β model expects of them.

S is the whole tensor in bytes, n the number of ranks. An all-reduce leaves every rank with the sum of all tensors.
"""
