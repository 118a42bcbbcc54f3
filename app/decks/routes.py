"""The pages of own cards: the list, the editor with its preview, and errors found in any card."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.content.kinds import WITH_OPTIONS
from app.content.web import Content
from app.core.errors import DomainError, NotFound, Stale, Violation
from app.core.templating import page
from app.core.web import JsonLines, LearnerId, Now, ReadSession, RowId, WriteSession
from app.decks import service
from app.decks.cards import Stored, make_own_card
from app.decks.drafts import by_field
from app.decks.forms import KIND_LABELS, CardForm
from app.decks.queries import Filter
from app.decks.shelf import find_own_card

router = APIRouter(prefix="/study")

LONGEST_SEARCH = 200
Typed = Annotated[CardForm, Form()]


@router.get("/own", response_class=HTMLResponse)
def list_cards(
    request: Request,
    session: ReadSession,
    learner: LearnerId,
    q: Annotated[str, Query(max_length=LONGEST_SEARCH)] = "",
    deck: Annotated[str, Query(max_length=200)] = "",
    tag: Annotated[str, Query(max_length=200)] = "",
    notice: Annotated[str, Query(max_length=300)] = "",
) -> HTMLResponse:
    wanted = Filter(q.strip(), deck, tag)
    context = {
        "listing": service.list_cards(session, learner, wanted),
        "wanted": wanted,
        "notice": notice,
        "kinds": dict(KIND_LABELS),
    }
    return page(request, "decks/list.html", context)


@router.get("/own/new", response_class=HTMLResponse)
def new_card(
    request: Request,
    session: ReadSession,
    learner: LearnerId,
    deck: Annotated[str, Query(max_length=200)] = "",
    added: Annotated[str, Query(max_length=20)] = "",
) -> HTMLResponse:
    card = find_own_card(session, learner, added) if added else None
    return _editor(request, session, learner, CardForm.fresh(deck), added=card)


@router.post("/own", response_class=HTMLResponse)
def add_card(request: Request, session: WriteSession, learner: LearnerId, now: Now, form: Typed) -> Response:
    try:
        row = service.add(session, learner, form.draft, now, form.guid or None)
    except DomainError as error:
        return _editor(request, session, learner, form, error=error)
    return RedirectResponse(f"/study/own/new?{urlencode({'deck': row.deck, 'added': row.card_id})}", 303)


@router.post("/own/preview", response_class=HTMLResponse)
def preview(
    request: Request,
    session: ReadSession,
    learner: LearnerId,
    form: Typed,
    card_id: Annotated[str, Query(max_length=20)] = "",
) -> HTMLResponse:
    """The editor with the card as it would look. Nothing is stored."""
    return _editor(request, session, learner, form, card_id=card_id, previewed=True)


@router.post("/own/decks/delete")
def delete_deck(
    session: WriteSession, learner: LearnerId, deck: Annotated[str, Form()], cards: Annotated[int, Form(ge=0)]
) -> Response:
    count = service.remove_deck(session, learner, deck, cards)
    return _to_list(f"{count} {'card' if count == 1 else 'cards'} of {deck} deleted.")


@router.get("/own/{card_id}", response_class=HTMLResponse)
def edit_card(
    request: Request, session: ReadSession, learner: LearnerId, card_id: str, saved: bool = False
) -> HTMLResponse:
    stored = service.stored_of(service.find(session, learner, card_id))
    return _editor(request, session, learner, CardForm.of(stored), card_id=card_id, saved=saved)


@router.post("/own/{card_id}", response_class=HTMLResponse)
def save_card(
    request: Request, session: WriteSession, learner: LearnerId, now: Now, card_id: str, form: Typed
) -> Response:
    try:
        service.edit(session, learner, card_id, form.draft, form.version, now, anew=form.anew)
    except NotFound:
        raise
    except Stale as error:
        current = service.find(session, learner, card_id)
        newer = form.model_copy(update={"version": current.version})
        return _editor(request, session, learner, newer, card_id=card_id, error=error)
    except DomainError as error:
        return _editor(request, session, learner, form, card_id=card_id, error=error)
    return RedirectResponse(f"/study/own/{card_id}?saved=true", 303)


@router.post("/own/{card_id}/delete")
def delete_card(session: WriteSession, learner: LearnerId, card_id: str) -> Response:
    title = service.remove(session, learner, card_id)
    return _to_list(f"Deleted: {title}")


def _to_list(notice: str) -> Response:
    return RedirectResponse(f"/study/own?{urlencode({'notice': notice[:300]})}", 303)


def _editor(
    request: Request,
    session: Session,
    learner: int,
    form: CardForm,
    *,
    card_id: str = "",
    error: DomainError | None = None,
    previewed: bool = False,
    saved: bool = False,
    added: Card | None = None,
) -> HTMLResponse:
    stored, wrong = service.preview(form.draft)
    told = error.violations if error else wrong if previewed else []
    begun = bool(stored.draft.sections["Question"])
    context = {
        "form": form,
        "card_id": card_id,
        "error": error,
        "errors": by_field(told, _said),
        "saved": saved,
        "added": added,
        "kinds": KIND_LABELS,
        "kind_with_options": WITH_OPTIONS,
        "shown": _shown(stored) if begun else None,
        "decks": list(service.list_cards(session, learner, Filter()).decks),
    }
    return page(request, "decks/edit.html", context, status=error.status if error else 200)


def _shown(stored: Stored) -> Card:
    return make_own_card(stored)


def _said(violation: Violation) -> str:
    return f"{violation.message} Accepted: {violation.accepted}."


@router.get("/reports", response_class=HTMLResponse)
def list_reports(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, noted: bool = False
) -> HTMLResponse:
    reports = service.list_reports(session, learner)
    cards = {each.card_id: _find_card(session, learner, content, each.card_id) for each in reports}
    context = {"reports": reports, "cards": cards, "noted": noted}
    return page(request, "decks/reports.html", context)


@router.get("/reports.jsonl")
def export_reports(session: ReadSession, learner: LearnerId) -> Response:
    text = service.reports_text(service.list_reports(session, learner))
    headers = {"Content-Disposition": 'attachment; filename="rankzero-card-errors.jsonl"', "Cache-Control": "no-store"}
    return JsonLines(text, headers=headers)


@router.get("/reports/new", response_class=HTMLResponse)
def new_report(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, card_id: str
) -> HTMLResponse:
    return _report_page(request, _known_card(session, learner, content, card_id))


@router.post("/reports", response_class=HTMLResponse)
def report_error(
    request: Request,
    session: WriteSession,
    content: Content,
    learner: LearnerId,
    now: Now,
    card_id: Annotated[str, Form()],
    revision: Annotated[int, Form(ge=1, le=10**6)],
    text: Annotated[str, Form()] = "",
) -> Response:
    card = _known_card(session, learner, content, card_id)
    try:
        service.report_error(session, learner, card.id, revision, text, now)
    except DomainError as error:
        return _report_page(request, card, text, error)
    return RedirectResponse("/study/reports?noted=true", 303)


@router.post("/reports/{report_id}/delete")
def delete_report(session: WriteSession, learner: LearnerId, report_id: RowId) -> Response:
    service.remove_report(session, learner, report_id)
    return RedirectResponse("/study/reports", 303)


def _report_page(request: Request, card: Card, text: str = "", error: DomainError | None = None) -> HTMLResponse:
    context = {"card": card, "text": text, "error": error, "said": _said, "longest": service.LONGEST_REPORT}
    return page(request, "decks/report.html", context, status=error.status if error else 200)


def _find_card(session: Session, learner: int, content: Catalogue, card_id: str) -> Card | None:
    return content.cards.get(card_id) or find_own_card(session, learner, card_id)


def _known_card(session: Session, learner: int, content: Catalogue, card_id: str) -> Card:
    card = _find_card(session, learner, content, card_id)
    if card is None:
        raise NotFound(f"There is no card {card_id!r}.")
    return card
