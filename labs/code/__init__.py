"""Code labs: what a learner wrote runs on real ranks in sandboxes, and is judged from outside.

`inside/` is what runs in a sandbox beside the learner's code, and is trusted with nothing. All else runs outside:
`switch` carries every tensor from rank to rank and so knows what was sent, `running` follows one run of n ranks,
`graders/` say what goes in and what must come out, `grading` makes the verdict of it.
"""
