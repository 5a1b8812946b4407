import pytest
import torch

from model.decode.backends.cuda.output import OutputProduct
from support.search_cases import small_transformer


@pytest.mark.parametrize(
    "shape", [{}, {"tie_output": False}, {"output_bias": False}, {"vocab_size": 64}],
    ids=["tied", "separate", "without-bias", "whole-chunks"],
)  # fmt: skip
def test_the_product_is_that_of_the_plain_network_and_padding_has_no_probability(
    shape: dict[str, object],
) -> None:
    has_bias = shape.pop("output_bias", True)
    transformer = small_transformer(**shape)
    if not has_bias:
        transformer.output_bias = None
    hidden = torch.randn(5, 16, dtype=torch.float64)
    with torch.inference_mode():
        product = OutputProduct(transformer, score_dtype=torch.float64)
        logits, without_bias = product(hidden), product(hidden, with_bias=False)
        expected = transformer.project(hidden)
    size = expected.shape[1]
    bias = 0.0 if transformer.output_bias is None else transformer.output_bias.detach()
    torch.testing.assert_close(without_bias[:, :size] + bias, expected, rtol=0, atol=1e-12)
    assert logits.shape == (5, 64)
    torch.testing.assert_close(logits[:, :size], expected, rtol=0, atol=1e-12)
    assert (logits[:, size:] == -torch.inf).all()
    torch.testing.assert_close(
        logits.log_softmax(-1)[:, :size], expected.log_softmax(-1), rtol=0, atol=1e-12
    )


def test_in_half_precision_products_are_summed_in_the_precision_of_scores() -> None:
    transformer = small_transformer(dtype=torch.bfloat16)
    hidden = torch.randn(3, 16).bfloat16()
    with torch.inference_mode():
        logits = OutputProduct(transformer, score_dtype=torch.float32)(hidden)
        expected = transformer.float().project(hidden.float())
    torch.testing.assert_close(logits[:, :23], expected, rtol=0, atol=1e-5)
