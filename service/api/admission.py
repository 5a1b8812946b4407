"""What both translation contracts do once a request is understood.

Owns the last check of its texts, the counting, and the wait for its answer beside a client
that may leave.
"""

import dataclasses

from starlette.requests import Request

from service.access.access import Access, Caller
from service.api.checks import check_texts
from service.front import Front
from service.http.disconnect import unless_gone
from service.models.translator import TranslatedText, TranslationRequest
from service.priority import estimated_work, priority_of
from service.telemetry.request_context import record_of


async def translate_for(
    request: Request, front: Front, access: Access, caller: Caller, job: TranslationRequest
) -> list[TranslatedText]:
    """One result per text, in order.

    Raises:
        RequestError: 413, 429, 503 or 504.
        ClientGoneError: The client left first; its work was dropped.
    """
    record = record_of(request)
    record.num_texts = len(job.texts)
    record.served = front.served(job.pair)
    record.num_characters = check_texts(job.texts, front.settings)
    work = estimated_work(job.texts, beam_size=job.beam_size)
    priority = priority_of(work, job.priority)
    record.priority = priority
    job = dataclasses.replace(job, priority=priority, client=hash(caller.who))
    with front.translator(job.pair, priority) as translator:
        await access.spend_characters(caller, record.num_characters)
        front.metrics.characters_accepted(record.num_characters, record.served)
        results = await unless_gone(request, translator.translate(job))
    record.num_segments = sum(len(result.hypotheses) for result in results)
    return results
