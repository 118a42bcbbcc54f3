"""One step of a run as a film strip: lanes of every rank, and what one of them held meanwhile."""

from app.lab.film.reel import COMPONENTS, Film, Reel, film_of

__all__ = ["COMPONENTS", "Film", "Reel", "film_of"]
