"""A sent form as text by field."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request


async def _form(request: Request) -> dict[str, str]:
    return {key: str(value) for key, value in (await request.form()).items()}


FormData = Annotated[dict[str, str], Depends(_form)]
