import pytest
import torch

from model.nn.dropout import Dropout, drop

NUM_ELEMENTS = 400_000


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_as_many_are_dropped_as_was_asked_for_and_the_others_keep_the_mean(
    probability: float, dtype: torch.dtype
) -> None:
    torch.manual_seed(5)
    x = torch.ones(NUM_ELEMENTS, dtype=dtype)
    values, counts = drop(x, probability).unique(return_counts=True)
    assert values[0] == 0
    torch.testing.assert_close(values[1].item(), 1 / (1 - probability), rtol=4e-3, atol=0)
    deviation = (probability * (1 - probability) * NUM_ELEMENTS) ** 0.5
    assert abs(counts[0].item() - probability * NUM_ELEMENTS) < 5 * deviation


def test_what_is_kept_is_scaled_by_exactly_what_was_dropped() -> None:
    level = 1 / 2**16
    kept = drop(torch.ones(NUM_ELEMENTS, dtype=torch.float64), 0.3 + level / 3).amax().item()
    num_dropped = round(0.3 / level)
    assert kept == 1 / (1 - num_dropped * level)


def test_neighbours_are_dropped_independently() -> None:
    """Four elements come of one draw: no pair of them may go together."""
    torch.manual_seed(6)
    is_kept = drop(torch.ones(NUM_ELEMENTS // 4, 4, dtype=torch.float64), 0.5).bool()
    together = torch.corrcoef(is_kept.double().T) - torch.eye(4)
    assert together.abs().max() < 5 / (NUM_ELEMENTS // 4) ** 0.5


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.randn(7, 9, requires_grad=True)
    output = drop(x, 0.4)
    output.sum().backward()
    torch.testing.assert_close(x.grad, output.detach() / x.detach())


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 3, 7)])
def test_any_shape_will_do(shape: tuple[int, ...]) -> None:
    output = drop(torch.ones(shape), 0.5)
    assert output.shape == shape
    assert set(output.flatten().tolist()) <= {0.0, 2.0}


def test_the_layout_does_not_matter() -> None:
    x = torch.arange(1.0, 13.0).view(3, 4)
    torch.manual_seed(7)
    transposed = drop(x.T, 0.5)
    assert set((transposed / x.T).flatten().tolist()) == {0.0, 2.0}
    x_row = drop(x[:, 1], 0.5)
    assert set((x_row / x[:, 1]).tolist()) <= {0.0, 2.0}


def test_the_seed_decides() -> None:
    x = torch.ones(100)
    torch.manual_seed(8)
    first, second = drop(x, 0.5), drop(x, 0.5)
    torch.manual_seed(8)
    assert torch.equal(drop(x, 0.5), first)
    assert not torch.equal(first, second)


def test_nothing_is_drawn_where_nothing_is_dropped() -> None:
    x, module = torch.randn(3), Dropout(0.5).eval()
    state = torch.get_rng_state()
    assert drop(x, 0.0) is x
    assert module(x) is x
    assert torch.equal(torch.get_rng_state(), state)


def test_probabilities_near_the_ends_stay_probabilities() -> None:
    x = torch.ones(1000)
    assert torch.equal(drop(x, 1e-7), x)
    assert drop(x, 1 - 1e-7).isfinite().all()


def test_a_module_says_its_probability() -> None:
    assert repr(Dropout(0.25)) == "Dropout(probability=0.25)"


def test_a_compiled_network_drops_too() -> None:
    compiled = torch.compile(lambda x: drop(x, 0.5), backend="eager", fullgraph=True)
    output = compiled(torch.ones(1000))
    assert set(output.tolist()) == {0.0, 2.0}
