"""How each lab's function is called: one module a lab, with `run(learner, desk)`."""
