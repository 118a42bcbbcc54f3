"""The handbook, and formulas as pages, as the panel a live number opens, and as JSON."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request
from fastapi.responses import HTMLResponse, JSONResponse

from app.content.players.catalogue import FIGURES, player
from app.content.web import Content
from app.core.settings import settings
from app.core.templating import environment, page
from app.core.web import CurrentMoment, LearnerId, ReadSession
from app.progress.evidence import FEWEST, by_concept
from app.progress.mistakes import by_idea, mistakes_of
from app.reference import concept_chart, concepts, formula_page, handbook, service, validation
from app.theory.presets import PRESETS

router = APIRouter()
api = APIRouter(prefix="/api/v1", tags=["formulas"])


@router.get("/reference", response_class=HTMLResponse)
def reference(request: Request, content: Content) -> HTMLResponse:
    context = {
        "sections": service.sections(),
        "groups": [(title, handbook.by_subject(content, pages)) for title, pages in handbook.page_groups(content)],
        "content": content,
    }
    return page(request, "reference/index.html", context)


@router.get("/reference/concepts", response_class=HTMLResponse)
def show_concepts(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    to: str | None = None,
) -> HTMLResponse:
    """The map with the way to an idea, and how this learner stands with each."""
    standings = by_concept(session, learner, content, moment.now)
    missed = by_idea(mistakes_of(session, learner, content, moment.now))
    context = {
        "groups": concepts.groups(content),
        "chart": concept_chart.draw(content.concepts),
        "way": concepts.way(content, standings, to),
        "fewest": FEWEST,
        "count": len(content.concepts),
        "standings": standings,
        "missed": missed,
        "ideas": content.concepts,
    }
    return page(request, "reference/concepts.html", context)


@router.get("/reference/glossary", response_class=HTMLResponse)
def glossary(request: Request, content: Content) -> HTMLResponse:
    context = {"subjects": handbook.glossary(content), "content": content, "anchor": handbook.term_anchor}
    return page(request, "reference/glossary.html", context)


@router.get("/reference/errata", response_class=HTMLResponse)
def errata(request: Request, content: Content) -> HTMLResponse:
    topics = handbook.errata(content)
    context = {
        "topics": topics,
        "count": sum(len(entries) for _, _, entries in topics),
        "severities": handbook.SEVERITIES,
        "counted": handbook.count_severities,
        "taught_by": lambda erratum: handbook.taught_by(content, erratum),
    }
    return page(request, "reference/errata.html", context)


@router.get("/reference/validation", response_class=HTMLResponse)
def validate(request: Request) -> HTMLResponse:
    context = {
        "report": validation.report(settings().cards),
        "percent": validation.percent,
        "models": len(PRESETS),
    }
    return page(request, "reference/validation.html", context)


@router.get("/reference/figures", response_class=HTMLResponse)
def figures(request: Request) -> HTMLResponse:
    """Every figure to step through."""
    shown = [(each.finding, player(each.name, {})) for each in FIGURES.values()]
    return page(request, "reference/figures.html", {"shown": shown})


@router.get("/reference/figures/{key}", response_class=HTMLResponse)
def figure(request: Request, key: str) -> HTMLResponse:
    """One of them as it was asked for: where the buttons of a figure lead without its script."""
    made = player(key, dict(request.query_params))
    return page(request, "reference/figures.html", {"shown": [(FIGURES[key].finding, made)]})


@router.get("/reference/figures/{key}/frames")
def frames(request: Request, key: str) -> JSONResponse:
    """All states of a figure, and the figure itself, for its script."""
    made = player(key, dict(request.query_params))
    html = environment().get_template("reference/figure.html").render(p=made)
    return JSONResponse(made.as_json(html), headers={"Cache-Control": "no-cache"})


@router.get("/reference/formulas/{key}", response_class=HTMLResponse)
def formula(request: Request, content: Content, key: str) -> HTMLResponse:
    found = service.find_formula(key)
    derivation = service.derive(found, dict(request.query_params))
    context = {
        "derivation": derivation,
        "doubled": formula_page.doubled(derivation),
        "courses": formula_page.courses(derivation),
        "shown_links": formula_page.MOST_OF_A_KIND,
        "links": formula_page.taught_by(content, found),
    }
    return page(request, "reference/formula.html", context)


@api.get("/formulas")
def list_formulas() -> list[service.Signature]:
    """Every registered formula with its inputs."""
    return [service.describe(each) for each in service.all_formulas()]


@api.post("/formulas/{key}/evaluate")
def evaluate(key: str, inputs: Annotated[dict[str, object], Body(embed=True)]) -> service.Evaluated:
    """A formula's value for `inputs` in SI base units, with where it comes from."""
    return service.evaluate_inputs(key, inputs)


# The last of the room's addresses: any other word below /reference is the name of a page.
@router.get("/reference/{slug}", response_class=HTMLResponse)
def handbook_page(request: Request, content: Content, slug: str) -> HTMLResponse:
    return page(request, "reference/page.html", {"shown": handbook.show_page(content, slug)})
