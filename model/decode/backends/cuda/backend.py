"""The backend that a session on a GPU has: one grid for each width of beam in use.

Owns which grid a sentence is in. Grids are made when they are first needed, and stay: a service
whose requests all have one beam size has one, and one whose requests alternate records nothing
twice. All of a step counts as "search": the device does not tell its parts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from model.config import SpecialTokens
from model.decode.backends.cuda.grid import Grid
from model.decode.backends.cuda.kernels.opening import open_kernels
from model.decode.backends.cuda.network import GridNetwork
from model.decode.backends.cuda.recording import Recorder
from model.decode.backends.torch_backend import TorchBackend
from model.decode.token_checks import check_tokens
from model.nn.transformer import Transformer
from model.request import DecodeRequest, FinishedSentence, SessionLimits

if TYPE_CHECKING:
    from model.decode.backends.cuda.kernels.launching import Launcher


class GridBackend(TorchBackend):
    """Grids over one network."""

    def __init__(
        self,
        transformer: Transformer,
        *,
        tokens: SpecialTokens,
        limits: SessionLimits,
        recorder: Recorder,
        launcher: "Launcher | None" = None,
    ) -> None:
        """Prepare the network; nothing else is allocated yet.

        Args:
            transformer: The network.
            tokens: The vocabulary's.
            limits: What to allocate for.
            recorder: Of steps.
            launcher: Of Triton's programs; None: steps are torch's operators.

        Raises:
            UnsupportedVariantError: If the network has positions inside attention.
        """
        super().__init__(transformer, tokens=tokens, limits=limits)
        kernels = None if launcher is None else open_kernels(transformer, launcher)
        self._network = GridNetwork(transformer, kernels)
        self._recorder = recorder
        self._grids: dict[int, Grid] = {}
        self._widths: dict[int, int] = {}  # of running sentences, by slot id

    @torch.inference_mode()
    def admit(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> None:
        """Encode sentences, sorted by length; see `Backend.admit`."""
        check_tokens(requests, vocab_size=self._network.config.output_size, tokens=self._tokens)
        pairs = list(zip(slot_ids, requests, strict=True))
        done: list[int] = []
        try:
            for width in sorted({_width(request) for request in requests}):
                chosen = [pair for pair in pairs if _width(pair[1]) == width]
                ids = [slot_id for slot_id, _ in chosen]
                grid = self._grid(width)
                self._num_encoded_tokens += grid.admit(ids, [request for _, request in chosen])
                self._widths.update(dict.fromkeys(ids, width))
                done += ids
        except BaseException:
            for slot_id in done:
                self.release(slot_id)
            raise

    def _grid(self, width: int) -> Grid:
        """The grid of a width. Idle ones stay: where memory runs out, a new session has none."""
        if width not in self._grids:
            narrowest = width // 2 + 1
            self._grids[width] = Grid(
                self._network,
                width=width,
                num_slots=min(self._limits.max_slots, self._limits.max_rows // narrowest),
                tokens=self._tokens,
                limits=self._limits,
                recorder=self._recorder,
            )
        return self._grids[width]

    @torch.inference_mode()
    def step(self) -> list[FinishedSentence]:
        """Start a step of all sentences, and report those that the step before it finished."""
        self._watch.start()
        busy = [grid for grid in self._grids.values() if not grid.is_idle]
        for grid in busy:
            grid.launch()
        finished = [sentence for grid in busy for sentence in grid.collect()]
        for sentence in finished:
            del self._widths[sentence.slot_id]
        self._watch.lap("search")
        return finished

    @torch.inference_mode()
    def release(self, slot_id: int) -> None:
        """Drop a running sentence."""
        self._grids[self._widths.pop(slot_id)].release(slot_id)

    def written(self, slot_id: int) -> list[int]:
        """Tokens of a running sentence's first beam, but for the last step's; of the host's copy.

        See `Backend.written`.
        """
        return self._grids[self._widths[slot_id]].written(slot_id)

    def check_integrity(self) -> None:
        """Assert that grids and slots agree."""
        for grid in self._grids.values():
            grid.check_integrity()


def _width(request: DecodeRequest) -> int:
    """Rows of the grid a sentence goes to: its beam size, rounded up to a power of two."""
    return int(1 << (request.search.beam_size - 1).bit_length())
