"""One step of a run, rank by rank: as a film strip with what one of them held meanwhile, and as strips to compare."""

from app.content.film.shown import COMPONENTS, Film, Reel
from app.lab.film.lanes import TERMS, Strip, strip_beside
from app.lab.film.pieces import step_of
from app.lab.film.reel import film_of

__all__ = ["COMPONENTS", "TERMS", "Film", "Reel", "Strip", "film_of", "step_of", "strip_beside"]
