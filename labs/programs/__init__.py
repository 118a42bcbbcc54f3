"""The experiments that are not a training run: a file or folder for each, its options in `labs.spec.programs`."""
