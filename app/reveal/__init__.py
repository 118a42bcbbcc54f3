"""A number that somebody said beside the one that came out, the gap between them named. Pure; for every room."""
