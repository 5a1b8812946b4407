"""Attention: the formula, the fused path against it, and what masks do."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from model.config import ModelConfig
from model.nn.attention import (
    MultiHeadAttention,
    cpu_attention,
    fused_attention,
    plain_attention,
)
from model.nn.masks import causal_mask

Attend = Callable[..., Tensor]


def plain_context(*args: Tensor, **options: object) -> Tensor:
    return plain_attention(*args, **options)[0]


FAST_PATHS = [fused_attention, cpu_attention]
EVERY_PATH = pytest.mark.parametrize("attend", [plain_context, *FAST_PATHS])


def heads(*, num_queries: int = 5, num_keys: int = 7, d_k: int = 8, d_v: int = 8) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(num_queries, d_k), (num_keys, d_k), (num_keys, d_v)]
    return [
        torch.randn(2, 3, length, width, generator=generator).requires_grad_()
        for length, width in shapes
    ]


def test_the_worked_example_of_three_queries_and_four_keys() -> None:
    queries, keys, values = (
        torch.tensor(rows)[:, None].expand(-1, 2)[None, None]
        for rows in ([0.3, 0.4, 0.5], [0.4, 0.7, 0.9, 0.4], [0.4, 0.5, 0.7, 0.3])
    )
    context, weights = plain_attention(queries, keys, values, scale=1.0)
    expected_scores = torch.tensor([0.24, 0.42, 0.54, 0.24])
    torch.testing.assert_close((queries @ keys.mT)[0, 0, 0], expected_scores)
    expected_weights = torch.tensor([0.2199, 0.2633, 0.2969, 0.2199])
    torch.testing.assert_close(weights[0, 0, 0], expected_weights, atol=1e-4, rtol=0)
    expected = torch.tensor([0.4934, 0.4997, 0.5060])[:, None].expand(3, 2)
    torch.testing.assert_close(context[0, 0], expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(fused_attention(queries, keys, values, scale=1.0), context)


def test_plain_attention_is_the_formula_entry_by_entry() -> None:
    queries, keys, values = heads(num_queries=2, num_keys=3)
    context, weights = plain_attention(queries, keys, values)
    for query in range(2):
        scores = [(queries[1, 2, query] @ keys[1, 2, key]).item() / 8**0.5 for key in range(3)]
        exponentials = torch.tensor(scores).exp()
        expected = exponentials / exponentials.sum()
        torch.testing.assert_close(weights[1, 2, query], expected)
        torch.testing.assert_close(context[1, 2, query], expected @ values[1, 2])


@pytest.mark.parametrize(
    "mask_shape", [None, (2, 1, 1, 7), (5, 7), (2, 3, 5, 7)], ids=["none", "keys", "rows", "full"]
)
@pytest.mark.parametrize("d_v", [8, 6])
@pytest.mark.parametrize("fast_path", FAST_PATHS)
def test_a_fast_path_equals_the_plain_one_in_value_and_gradient(
    fast_path: Attend, mask_shape: tuple[int, ...] | None, d_v: int
) -> None:
    generator = torch.Generator().manual_seed(1)
    mask = None if mask_shape is None else torch.rand(mask_shape, generator=generator) < 0.4
    results = []
    for attend in (plain_context, fast_path):
        inputs = heads(d_v=d_v)
        context = attend(*inputs, mask=mask)
        context.square().sum().backward()
        results.append([context, *(x.grad for x in inputs)])
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-4)


@EVERY_PATH
def test_is_causal_equals_the_causal_mask(attend: Attend) -> None:
    inputs = heads(num_queries=6, num_keys=6)
    expected = plain_context(*inputs, mask=causal_mask(6))
    torch.testing.assert_close(attend(*inputs, is_causal=True), expected)
    keys = torch.tensor([[True, True, False, True, True, False]])
    expected = plain_context(*inputs, mask=causal_mask(6) & keys)
    torch.testing.assert_close(attend(*inputs, mask=keys, is_causal=True), expected)


@EVERY_PATH
def test_a_query_with_nothing_to_attend_to_gets_zeros_in_value_and_gradient(
    attend: Attend,
) -> None:
    queries, keys, values = heads()
    mask = torch.ones(2, 1, 5, 7, dtype=torch.bool)
    mask[0, 0, 3] = False
    mask[1] = False
    context = attend(queries, keys, values, mask=mask)
    assert not context[0, :, 3].any()
    assert not context[1].any()
    assert context[0, :, 2].all()
    context.square().sum().backward()
    context_of_empty = attend(queries, keys, values, mask=torch.zeros_like(mask))
    for x in (queries, keys, values):
        assert x.grad is not None
        assert x.grad.isfinite().all()
        assert not x.grad[1].any()
    assert queries.grad is not None
    assert not queries.grad[0, :, 3].any()
    assert not context_of_empty.any()


@EVERY_PATH
def test_no_nan_arises_even_inside_the_backward_pass(attend: Attend) -> None:
    with torch.autograd.set_detect_anomaly(True):
        attend(*heads(), mask=torch.zeros(5, 7, dtype=torch.bool)).sum().backward()


def test_the_weights_of_a_query_with_nothing_to_attend_to_are_zero_not_uniform() -> None:
    mask = torch.zeros(5, 7, dtype=torch.bool)
    mask[0] = True
    _, weights = plain_attention(*heads(), mask=mask)
    assert not weights[:, :, 1:].any()
    torch.testing.assert_close(weights[:, :, 0].sum(-1), torch.ones(2, 3))


@EVERY_PATH
def test_masked_keys_have_no_influence_whatever_they_hold(attend: Attend) -> None:
    queries, keys, values = (x.detach() for x in heads())
    mask = torch.tensor([[True] * 4 + [False] * 3])
    expected = attend(queries, keys[:, :, :4], values[:, :, :4])
    keys[:, :, 4:], values[:, :, 4:] = 1e4, -1e4
    torch.testing.assert_close(attend(queries, keys, values, mask=mask), expected)


@EVERY_PATH
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_stays_finite_and_near(attend: Attend, dtype: torch.dtype) -> None:
    inputs = [x.detach() for x in heads()]
    mask = torch.ones(2, 1, 5, 7, dtype=torch.bool)
    mask[:, :, 1] = False
    expected = plain_context(*inputs, mask=mask)
    context = attend(*(x.to(dtype) for x in inputs), mask=mask)
    assert context.dtype is dtype
    torch.testing.assert_close(context.float(), expected, atol=0.03, rtol=0.03)


def test_a_bias_is_added_to_the_scaled_scores() -> None:
    queries, keys, values = heads()
    bias = torch.randn(3, 5, 7)
    _, weights = plain_attention(queries, keys, values, bias=bias)
    expected = (queries @ keys.mT / 8**0.5 + bias).softmax(-1)
    torch.testing.assert_close(weights, expected)


def build(**changes: object) -> MultiHeadAttention:
    torch.manual_seed(0)
    config = ModelConfig(**{"vocab_size": 5, "d_model": 16, "num_heads": 4} | changes)
    attention = MultiHeadAttention(config)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.3)
    return attention


def test_multi_head_attention_is_that_of_torch() -> None:
    attention = build()
    reference = nn.MultiheadAttention(16, 4, batch_first=True)
    inputs = (attention.q_proj, attention.k_proj, attention.v_proj)
    reference.in_proj_weight.data = torch.cat([part.weight for part in inputs])
    reference.in_proj_bias.data = torch.cat([part.bias for part in inputs])
    reference.out_proj.load_state_dict(attention.out_proj.state_dict())
    queries, attended = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    is_padding = torch.arange(7) >= torch.tensor([[7], [4]])
    expected, expected_weights = reference(
        queries, attended, attended, key_padding_mask=is_padding, average_attn_weights=False
    )
    mask = ~is_padding[:, None, None, :]
    maps: list[Tensor] = []
    torch.testing.assert_close(attention(queries, attended, mask=mask), expected)
    torch.testing.assert_close(attention(queries, attended, mask=mask, maps=maps), expected)
    torch.testing.assert_close(maps[0], expected_weights)


def test_head_widths_are_free() -> None:
    attention = build(d_k=3, d_v=5)
    assert attention.q_proj.weight.shape == attention.k_proj.weight.shape == (12, 16)
    assert attention.v_proj.weight.shape == (20, 16)
    assert attention.out_proj.weight.shape == (16, 20)
    queries, attended = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    contexts = []
    for head in range(4):
        q = queries @ attention.q_proj.weight[3 * head : 3 * head + 3].T
        q = q + attention.q_proj.bias[3 * head : 3 * head + 3]
        k = attended @ attention.k_proj.weight[3 * head : 3 * head + 3].T
        k = k + attention.k_proj.bias[3 * head : 3 * head + 3]
        v = attended @ attention.v_proj.weight[5 * head : 5 * head + 5].T
        v = v + attention.v_proj.bias[5 * head : 5 * head + 5]
        contexts.append((q @ k.mT / 3**0.5).softmax(-1) @ v)
    expected = attention.out_proj(torch.cat(contexts, dim=-1))
    torch.testing.assert_close(attention(queries, attended), expected)


def test_projections_have_biases_only_when_asked() -> None:
    attention = build(attention_bias=False)
    parts = (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj)
    assert all(part.bias is None for part in parts)
    assert attention(torch.randn(1, 2, 16), torch.randn(1, 3, 16)).shape == (1, 2, 16)


@pytest.mark.parametrize("with_maps", [False, True])
@pytest.mark.parametrize("mask", [None, torch.tensor([[True] * 5 + [False]])])
def test_attention_weights_are_dropped_in_training_only(
    with_maps: bool, mask: Tensor | None
) -> None:
    attention = build(attention_dropout=0.5)
    x = torch.randn(1, 6, 16)

    def attend() -> Tensor:
        return attention(x, x, mask=mask, maps=[] if with_maps else None)

    assert not torch.equal(attend(), attend())
    attention.eval()
    assert torch.equal(attend(), attend())


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_weights_of_long_sentences_are_not_held_for_the_backward_pass(is_causal: bool) -> None:
    attention = build()
    assert largest_held(attention, 40, is_causal=is_causal) == 4 * 40 * 40
    assert largest_held(attention, 400, is_causal=is_causal) == 400 * 16


def test_weights_that_are_dropped_are_held_once_whatever_the_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Torch's kernel would hold them too, and be slower."""
    monkeypatch.setattr("model.nn.attention.fused_attention", pytest.fail)
    assert largest_held(build(attention_dropout=0.5), 400, is_causal=False) == 4 * 400 * 400


def largest_held(attention: nn.Module, length: int, *, is_causal: bool) -> int:
    """Elements of the largest tensor that is kept for the backward pass."""
    sizes = []
    x = torch.randn(1, length, 16)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda held: sizes.append(held.numel()) or held, lambda held: held
    ):
        attention(x, x, is_causal=is_causal)
    return max(sizes)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["padding", "causal", "empty"])
def test_the_kernels_of_a_gpu_agree_with_the_formula(dtype: torch.dtype, kind: str) -> None:
    inputs = [x.detach() for x in heads(num_queries=9, num_keys=9, d_k=64, d_v=64)]
    mask = torch.rand(2, 1, 9, 9) < 0.6
    mask[1] &= kind != "empty"
    options = {"is_causal": True} if kind == "causal" else {"mask": mask}
    expected = plain_context(*inputs, **options)
    on_device = [x.to("cuda", dtype).requires_grad_() for x in inputs]
    options = {"is_causal": True} if kind == "causal" else {"mask": mask.cuda()}
    context = fused_attention(*on_device, **options)
    context.float().square().sum().backward()
    tolerance = 1e-5 if dtype is torch.float32 else 0.03
    torch.testing.assert_close(context.float().cpu(), expected, atol=tolerance, rtol=tolerance)
    for x in on_device:
        assert x.grad is not None
        assert x.grad.isfinite().all()
