"""The physics of training as pure functions: plain SI floats in and out, the unit in every name.

No session, no clock, no settings. `pipeline`, `collectives`, `planner` and `lab_runs` are rooms with one door each;
`formulas` registers F01–F57, where content, the derivation popover and the API find them. The modules beside them are
the closed forms of one thing each: state, activations, hardware, number formats and so on.
"""
