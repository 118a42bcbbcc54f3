"""One step of a run, rank by rank: as a film strip with what one of them held meanwhile, and as lanes to compare."""

from app.content.film.shown import COMPONENTS, Film, Reel
from app.lab.film.lanes import draw_step
from app.lab.film.pieces import step_of
from app.lab.film.reel import film_of

__all__ = ["COMPONENTS", "Film", "Reel", "draw_step", "film_of", "step_of"]
