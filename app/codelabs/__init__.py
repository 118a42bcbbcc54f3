"""Code labs: write the parallelism yourself, judged by what it does on real ranks (`labs.code`)."""
