"""The experiments that are not a training run: one file a program, its options beside it in `labs.spec.programs`."""
