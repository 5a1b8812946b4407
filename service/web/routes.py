"""Routes of the web page: `/` and `/assets/NAME`.

Owns how its files are answered: the policy that a browser holds the page to, and caching by entity
tags. The files are read once, when the router is made; a name that is none of theirs is a 404, so
no path leads out of their folder. `/docs` shares its script and style sheet with the page.
"""

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.http.headers import PAGE_POLICY
from service.web.static_files import PAGE_NAME, StaticFile, load_static_files

# A browser keeps a file, and asks whether it has changed before it uses it.
_CACHING = "no-cache"


def build_router(*, has_page: bool) -> APIRouter:
    """The routes of the page.

    Args:
        has_page: Whether there is a page at `/`; what `/docs` needs is there in any case.
    """
    router = APIRouter()
    every = load_static_files()
    page = every.pop(PAGE_NAME)

    if has_page:

        @router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
        async def index(request: Request) -> Response:
            return _answer(request, page, {"content-security-policy": PAGE_POLICY})

    @router.api_route("/assets/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def asset(request: Request, name: str) -> Response:
        if name not in every:
            raise HTTPException(404)
        return _answer(request, every[name], {})

    return router


def _answer(request: Request, file: StaticFile, headers: Mapping[str, str]) -> Response:
    """The file, or a 304 to a browser that has it."""
    headers = {"cache-control": _CACHING, "etag": file.etag, **headers}
    if _has_it(request.headers.get("if-none-match", ""), file.etag):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


def _has_it(if_none_match: str, etag: str) -> bool:
    """Whether one of the tags is that of the file (RFC 9110, section 13.1.2: weak ones count)."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags
