"""The roles that a generated sitting can be for, `cards/roles.yaml`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from app.content.schemas import Slug, Strict, Text, all_different

ROLES = "roles.yaml"


class Role(Strict):
    """Somebody who is interviewed, and the concepts that such a person is asked about before others."""

    id: Slug
    title: Text
    about: Text
    concepts: Annotated[tuple[Slug, ...], Field(min_length=1)]


class RolesFile(Strict):
    """All roles, in the order in which they are offered."""

    roles: tuple[Role, ...] = ()

    @model_validator(mode="after")
    def _are_different(self) -> RolesFile:
        all_different([role.id for role in self.roles], "id")
        return self
