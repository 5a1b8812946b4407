"""What a checkpoint says before anything is checked and tried another way.

Networks that have learnt nothing repeat themselves, so what stands at last is mostly another try.
"""

from dataclasses import replace

from model.config import SearchConfig
from model.offline.translator import Translator
from model.request import DecodeRequest
from model.text.languages.tags import LanguagePair
from model.text.pipeline import segment_cap


def first_draft(translator: Translator, text: str, pair: LanguagePair, search: SearchConfig) -> str:
    pipeline, limits = translator.pipeline, translator.manifest.limits
    prepared = pipeline.prepare(text, pair)
    requests = [
        DecodeRequest(
            source_ids=segment.source_ids,
            prefix_ids=pipeline.prefix_ids(pair),
            search=replace(search, max_length=segment_cap(segment, limits)),
        )
        for segment in prepared.network_segments
    ]
    best = [found[0] for found in translator.search(requests)]
    return pipeline.finish(prepared, best).text
