"""Queue of documents as the settings of a server say: its limits, its folder, its translator.

Owns how they are put together.
"""

from functools import partial

from model.documents.kinds import KINDS
from service.access.access import Access
from service.documents.queue import DocumentQueue
from service.documents.room import QueueLimits
from service.documents.store import JobStore
from service.documents.translating import DocumentTranslator, FindRoutes
from service.front import Front


def document_queue(front: Front, access: Access, find_routes: FindRoutes) -> DocumentQueue | None:
    """The queue of a server; None where documents are off.

    Args:
        front: Of the server.
        access: Counts characters for callers.
        find_routes: What a job's languages mean among those that are served.
    """
    settings = front.settings
    if not settings.documents:
        return None
    limits = QueueLimits(
        max_bytes=settings.documents_max_bytes,
        max_characters=settings.documents_max_characters,
        max_jobs=settings.documents_per_caller,
        max_total_bytes=settings.documents_total_bytes,
        max_working=settings.documents_at_once,
        keep_seconds=settings.documents_keep_seconds,
    )
    front.metrics.documents.kinds_known(KINDS)
    return DocumentQueue(
        partial(JobStore, settings.documents_folder),
        limits,
        DocumentTranslator(front, access, find_routes),
        front.metrics.documents,
    )
