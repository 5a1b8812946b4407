"""Every program of the network against the same in torch, in three precisions."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed: pip install 'dragoman[kernels]'")

from model.config import Activation
from model.decode.backends.cuda.kernels.launching import Launcher
from model.decode.backends.cuda.kernels.ops import KernelOps, Linear, NormWeights
from model.decode.backends.cuda.tables import GridTables
from model.nn.layers import ACTIVATIONS
from support.grid_tables import grown_tables

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in exp:RuntimeWarning")
TOLERANCES = {torch.float32: 2e-6, torch.float16: 4e-3}
precisions = pytest.mark.parametrize("dtype", TOLERANCES, ids=["float32", "float16"])


def near(found: Tensor, expected: Tensor) -> None:
    """Equal but for the rounding of sums whose terms are about one."""
    bound = TOLERANCES[found.dtype]
    torch.testing.assert_close(found, expected.to(found.dtype), atol=bound, rtol=4 * bound)


@pytest.fixture
def ops(launcher: Launcher) -> KernelOps:
    return KernelOps(launcher)


@pytest.fixture
def noise(device: torch.device) -> Callable[..., Tensor]:
    generator = torch.Generator().manual_seed(3)

    def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=generator).to(device, dtype)

    return drawn


def norm_weights(noise: Callable[..., Tensor], size: int, dtype: torch.dtype) -> NormWeights:
    return NormWeights(gain=noise(size, dtype=dtype), offset=noise(size, dtype=dtype), epsilon=1e-5)


def normed(x: Tensor, norm: NormWeights) -> Tensor:
    if norm.offset is None:
        return F.rms_norm(x, x.shape[-1:], norm.gain, norm.epsilon)
    return F.layer_norm(x, x.shape[-1:], norm.gain, norm.offset, norm.epsilon)


@precisions
@pytest.mark.parametrize("is_rms", [False, True], ids=["layernorm", "rmsnorm"])
def test_a_product_of_few_rows_normalises_before_and_adds_behind(
    ops: KernelOps, noise: Callable[..., Tensor], dtype: torch.dtype, is_rms: bool
) -> None:
    """Rows, columns and depth that no block divides."""
    x, residual = noise(5, 200, dtype=dtype) / 14, noise(5, 37, dtype=dtype)
    linear = Linear(weight=noise(37, 200, dtype=dtype) / 14, bias=noise(37, dtype=dtype))
    norms = [norm_weights(noise, size, dtype) for size in (200, 37)]
    if is_rms:
        norms = [NormWeights(gain=n.gain, offset=None, epsilon=n.epsilon) for n in norms]
    found = ops.product(x, linear, norm=norms[0], residual=residual, residual_norm=norms[1])
    product = F.linear(normed(x, norms[0]).double(), linear.weight.double(), linear.bias.double())
    near(found, product + normed(residual, norms[1]).double())


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_product_has_every_activation(
    ops: KernelOps, noise: Callable[..., Tensor], activation: Activation
) -> None:
    x, linear = noise(3, 16), Linear(weight=noise(16, 16) * 3, bias=None)
    found = ops.product(x, linear, activation=activation)
    near(found / 10, ACTIVATIONS[activation](F.linear(x, linear.weight)) / 10)


@precisions
def test_a_sum_and_its_norm_are_one_program(
    ops: KernelOps, noise: Callable[..., Tensor], dtype: torch.dtype
) -> None:
    hidden, change = noise(3, 24, dtype=dtype), noise(3, 24, dtype=dtype)
    norm = norm_weights(noise, 24, dtype)
    total, found = ops.add_norm(hidden, change, norm, keeps_total=True)
    assert torch.equal(total, hidden + change)
    near(found, normed(hidden + change, norm))
    same, alone = ops.add_norm(hidden, None, norm, keeps_total=False)
    assert same is hidden
    near(alone, normed(hidden, norm))


@precisions
def test_an_embedding_has_its_position_its_norm_and_a_node_of_its_own(
    ops: KernelOps, noise: Callable[..., Tensor], device: torch.device, dtype: torch.dtype
) -> None:
    tables = grown_tables(noise, dtype, device=device)
    table, positions = noise(23, 16, dtype=dtype), noise(3, 16, dtype=dtype)
    norm = norm_weights(noise, 16, dtype)
    found = ops.embed(tables, 2, table=table, scale=4.0, positions=positions, norm=norm)
    places = tables.positions.clamp(max=2).unsqueeze(1)
    expected = normed(table[tables.tokens] * 4.0 + positions[places], norm)
    near(found, expected.flatten(0, 1))
    for slot, position in enumerate(tables.positions.tolist()):
        assert torch.equal(
            tables.ancestors[slot, :, position], torch.eye(2, dtype=torch.bool, device=device)
        )


def attended(tables: GridTables, projected: Tensor, bias: Tensor | None, scale: float) -> Tensor:
    """Attention over nodes, slot by slot and row by row, in float64."""
    heads, width = tables.growing[0].shape[2], tables.width
    rows = projected.double().view(-1, width, 3 * heads, projected.shape[1] // (3 * heads))
    contexts = []
    for slot, position in enumerate(tables.positions.tolist()):
        keys, values = (table[0, slot].double().clone() for table in tables.growing)  # (H, T, K, d)
        keys[:, position] = rows[slot, :, heads : 2 * heads].transpose(0, 1)
        values[:, position] = rows[slot, :, 2 * heads :].transpose(0, 1)
        for beam in range(width):
            nodes = tables.ancestors[slot, beam].clone()  # (T, K)
            nodes[position:] = False
            nodes[position, beam] = True
            column = nodes.nonzero()[:, 0]
            scores = (keys[:, nodes] @ rows[slot, beam, :heads].unsqueeze(-1)).squeeze(-1) * scale
            if bias is not None:
                scores = scores + bias.double()[:, position - column]
            contexts.append((scores.softmax(-1).unsqueeze(1) @ values[:, nodes]).flatten())
    return torch.stack(contexts)


@precisions
@pytest.mark.parametrize("has_bias", [False, True], ids=["plain", "relative"])
def test_every_row_attends_to_its_ancestors_and_writes_its_node(
    ops: KernelOps,
    noise: Callable[..., Tensor],
    device: torch.device,
    dtype: torch.dtype,
    has_bias: bool,
) -> None:
    """A first step, and a past of several blocks; what is nobody's ancestor is not a number."""
    tables = grown_tables(noise, dtype, device=device)
    alive = tables.ancestors.any(dim=1)[None, :, None, :, :, None]  # (1, S, 1, T, K, 1)
    for table in tables.growing:
        table.masked_fill_(~alive, float("nan"))
    projected = noise(4, 3 * 2 * 6, dtype=dtype)
    bias = noise(2, tables.num_columns, dtype=dtype) if has_bias else None
    expected = attended(tables, projected, bias, 0.4)
    near(ops.attend_past(projected, tables, 0, scale=0.4, bias=bias), expected)
    _, new_keys, new_values = projected.view(2, 2, 3, 2, 6).unbind(2)  # (S, K, H, d)
    for table, new in zip(tables.growing, (new_keys, new_values), strict=True):
        for slot, position in enumerate(tables.positions.tolist()):
            assert torch.equal(table[0, slot, :, position], new[slot].transpose(0, 1))


@precisions
def test_every_row_attends_to_its_own_source_and_no_further(
    ops: KernelOps, noise: Callable[..., Tensor], device: torch.device, dtype: torch.dtype
) -> None:
    tables = grown_tables(noise, dtype, device=device)
    queries, expected = noise(4, 12, dtype=dtype), []
    for slot, length in enumerate(tables.source_lengths.tolist()):
        for cross in (tables.cross_keys, tables.cross_values):
            cross[0, slot, :, length:] = float("nan")
        keys, values = (
            cross[0, slot, :, :length].double()
            for cross in (tables.cross_keys, tables.cross_values)
        )
        heads = queries.double().view(2, 2, 2, 6)[slot].transpose(0, 1)  # (H, K, d)
        context = (heads @ keys.mT * 0.4).softmax(-1) @ values
        expected.append(context.transpose(0, 1).flatten(1))
    near(ops.attend_source(queries, tables, 0, scale=0.4), torch.cat(expected))
