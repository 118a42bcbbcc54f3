"""Figures one steps through: frames from the theory library's simulations, drawn here, turned by one script."""
