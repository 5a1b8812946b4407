"""An imported network against the reference that its folder was written from."""

import random
from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.exchange.imports.imported import ImportedModel
from model.nn.transformer import Transformer
from support.huggingface import Comparison, Generated, bodies, generation_config
from support.made_imports import all_reads

MAX_LENGTH = 14


def loaded(imported: ImportedModel) -> Transformer:
    """The network with its weights, once every tensor has been read."""
    assert imported.unused == ()
    transformer = Transformer(imported.network)
    state = all_reads(imported)
    assert {name: value.shape for name, value in state.items()} == {
        name: tensor.shape for name, tensor in imported.tensors.items()
    }
    transformer.load_state_dict(state)
    return transformer.eval()


def check_logits(reference: PreTrainedModel, imported: ImportedModel) -> None:
    """Encoder output and logits under teacher forcing, of padded batches."""
    transformer, pad_id = loaded(imported), imported.tokens.pad_id
    generator = torch.Generator().manual_seed(1)
    size = min(imported.network.vocab_size, imported.network.output_size)
    length = 60 if imported.network.position == "learned" else 150  # past T5's last bucket
    source = torch.randint(3, size, (3, length), generator=generator)
    target = torch.randint(3, size, (3, length - 10), generator=generator)
    source[1, 5:], source[2, 1:] = pad_id, pad_id
    is_real = source != pad_id
    with torch.no_grad():
        expected = reference(
            input_ids=source,
            attention_mask=is_real.long(),
            decoder_input_ids=target,
            use_cache=False,
        )
        encoded, logits = transformer.encode(source), transformer(source, target)
    memory = expected.encoder_last_hidden_state
    torch.testing.assert_close(encoded[is_real], memory[is_real], atol=1e-5, rtol=1e-5)
    assert expected.logits.std() > 0.2
    scale = float(expected.logits.abs().max())
    torch.testing.assert_close(logits, expected.logits, atol=1e-5 * scale, rtol=0)


def check_hypotheses(
    reference: PreTrainedModel,
    imported: ImportedModel,
    *,
    beam_size: int,
    num_sentences: int = 12,
    has_cache: bool = True,
) -> None:
    """What a session finds is what `generate` finds, and has the same scores.

    `generate` runs with its cache unless `has_cache` is false: that of T5 is wrong where encoder
    and decoder have different numbers of layers, and without it FSMT sees what comes next.
    """
    search = SearchConfig(
        beam_size=beam_size, num_hypotheses=beam_size, stopping="heuristic", max_length=MAX_LENGTH
    )
    chance = random.Random(9)
    requests = [_request(imported, search, chance) for _ in range(num_sentences)]
    limits = SessionLimits(
        max_rows=num_sentences * beam_size,
        max_slots=num_sentences,
        max_source_length=40,
        max_target_length=MAX_LENGTH + 2,
    )
    session = DecodingSession(loaded(imported), tokens=imported.tokens, limits=limits)
    slots, done = session.admit(requests), {}
    while not session.is_idle:
        done |= {finished.slot_id: finished.hypotheses for finished in session.step()}
    comparison = Comparison()
    for number, (slot, request) in enumerate(zip(slots, requests, strict=True)):
        comparison.add(
            str(number), done[slot], _generated(reference, imported, request, has_cache=has_cache)
        )
    assert comparison.differences == []
    assert len(comparison.ties) <= 1
    lengths = {len(hypothesis.token_ids) for slot in slots for hypothesis in done[slot]}
    assert len(lengths) > 1


def _request(imported: ImportedModel, search: SearchConfig, chance: random.Random) -> DecodeRequest:
    """Random pieces between what the tokenizer puts around them."""
    pair = chance.choice(imported.pairs)
    source = imported.tokenizer.tables()[0]
    target = imported.tokenizer.tables()[1]
    specials = {imported.tokens.pad_id, imported.tokens.eos_id, imported.tokens.unk_id}
    ids = [index for index in source.values() if index not in specials]
    body = chance.choices(ids, k=chance.randint(1, 20))
    start = [source[piece] for piece in pair.source_start]
    prefix = [imported.tokens.start_id, *(target[piece] for piece in pair.target_prefix)]
    return DecodeRequest(
        source_ids=(*start, *body, imported.tokens.eos_id), prefix_ids=tuple(prefix), search=search
    )


@torch.inference_mode()
def _generated(
    reference: PreTrainedModel,
    imported: ImportedModel,
    request: DecodeRequest,
    *,
    has_cache: bool,
) -> Sequence[Generated]:
    search, tokens = request.search, imported.tokens
    more = {"use_cache": has_cache, "max_length": None, "output_logits": True}
    source = torch.tensor([request.source_ids])
    output = reference.generate(
        source,
        attention_mask=torch.ones_like(source),
        decoder_input_ids=torch.tensor([request.prefix_ids]),
        generation_config=generation_config(search, tokens, **more),
    )
    start = len(request.prefix_ids)
    if search.beam_size == 1:
        scores = [_greedy_score(output.sequences[0, start:], output.logits, search)]
    else:
        scores = output.sequences_scores.tolist()
    found = bodies(output, tokens, start=start)
    return [Generated(ids, score) for ids, score in zip(found, scores, strict=True)]


def _greedy_score(ids: torch.Tensor, logits: Sequence[torch.Tensor], search: SearchConfig) -> float:
    """The mean log-probability, which `generate` does not give for one beam."""
    chosen = [
        float(step[0].log_softmax(dim=-1)[index]) for step, index in zip(logits, ids, strict=True)
    ]
    if len(chosen) == search.max_length:
        chosen[-1] = 0.0  # an end that is forced is free
    return sum(chosen) / len(chosen)
