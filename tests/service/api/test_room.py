"""What a server answers that has no room for another translation, with a real engine."""

import asyncio
from pathlib import Path

from support.served_front import QUERY, Served
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

GLOSSARY = {
    "name": "n",
    "source_lang": "en",
    "target_lang": "zh",
    "entries": "cat\tQīng",
    "entries_format": "tsv",
}


def test_lists_counts_and_glossaries_need_no_room(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint, max_requests=1)
        async with served.client() as client:
            with served.front.in_flight.holding({}, "bulk"):
                paths = "/v2/languages", "/v3/languages?resource=glossary", "/v2/usage"
                for path in (*paths, "/v2/glossaries", "/v2/glossary-language-pairs"):
                    reply = await client.get(path)
                    assert reply.status_code == 200, (path, reply.text)
                made = await client.post("/v2/glossaries", json=GLOSSARY)
                assert made.status_code == 201, made.text
                gone = await client.delete(f"/v2/glossaries/{made.json()['glossary_id']}")
                assert gone.status_code == 204
                for path in ("/translate", "/detect"):
                    assert (await client.post(path, json=QUERY)).status_code == 429, path

    asyncio.run(scenario())
