"""The first minute: one question, the learner's guess, and what was left out of it."""
