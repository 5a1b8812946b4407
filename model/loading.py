"""Loading of a checkpoint for decoding, in the arithmetic that is best here.

Owns the choice between int8 and float. The one place of loading where torch is loaded late: int8
needs none; floats are `model.float_loading`. Training, export and whatever else needs the weights
themselves calls `model.checkpoint.weights.load_checkpoint`.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from model.arithmetic import ComputeReason, ComputeType
from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.checksums import fingerprint, unreplaced
from model.checkpoint.manifest import Manifest
from model.checkpoint.shortlist import read_shortlist
from model.checkpoint.tensors.mapped import mapped_weights
from model.checkpoint.tensors.weight_header import check_tensors
from model.checkpoint.tokenizer import load_tokenizer
from model.decode.backends.opening import Network
from model.decode.footprint import weight_bytes
from model.errors import UnsupportedVariantError
from model.honoured import unsupported_fields
from model.native import kernels
from model.native.matrices import Matrices, PackedHere
from model.native.network import INT8_FIELDS, Int8Network, pack
from model.native.packed_folder import PackedFolder
from model.shortlist import Shortlist
from model.system.allocator import give_back_freed_memory
from model.system.cores import default_num_threads
from model.system.devices import device_type
from model.system.shortage import check_memory, reporting_shortage
from model.text.subwords.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch

_BLOCK_BYTES = 66 * 2**20
"""Address space that packed weights take at least (`native/src/weight_memory.cpp`)."""

Device: TypeAlias = "str | torch.device"
ChosenType = Literal["int8", "float32", "bfloat16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """A checkpoint that can be decoded with.

    Attributes:
        manifest: Its description.
        network: Packed int8, or a float network.
        tokenizer: Its tokenizer.
        shortlist: What sentences may choose, if that was asked for; None: all target tokens.
        compute_type: The arithmetic that was chosen.
        compute_reason: Why it has the arithmetic that it has.
        compute_problem: What stands in the way of int8, in words; empty if nothing does.
    """

    manifest: Manifest
    network: Network
    tokenizer: Tokenizer
    compute_type: ChosenType
    shortlist: Shortlist | None = None
    compute_reason: ComputeReason = "best"
    compute_problem: str = ""

    @property
    def instruction_set(self) -> str:
        """What the int8 kernels are compiled for; empty of a float network."""
        return self.network.instruction_set if isinstance(self.network, Int8Network) else ""


def load_for_decoding(
    directory: Path,
    *,
    device: Device = "cpu",
    compute_type: ComputeType = "auto",
    num_threads: int | None = None,
    with_shortlist: bool = False,
    packed_folder: PackedFolder | None = None,
) -> Runnable:
    """Load a checkpoint for decoding.

    Args:
        directory: What `save_checkpoint` wrote.
        device: Where the network goes.
        compute_type: Which arithmetic; int8 is there on CPUs only, bfloat16 on GPUs only.
        num_threads: Threads of the network; those of a float network are torch's, and so the
            process's. None: of int8 as many as there are cores for, of floats what torch has.
        with_shortlist: Whether sentences choose from the lists that the checkpoint has of their
            source tokens; on a CPU only.
        packed_folder: Where int8 weights are kept packed, for all processes that use this
            checkpoint; None packs them for this one.

    Raises:
        CheckpointError: A file is missing, damaged or inconsistent, or there is no shortlist.
        UnsupportedVariantError: What is asked for cannot be had here.
        MemoryShortageError: There is no memory for it.
    """
    with unreplaced(directory):
        manifest = read_manifest(directory)
        least = max(_BLOCK_BYTES, weight_bytes(manifest, "int8"))
        with reporting_shortage(directory, least, device=device):
            shortlist = read_shortlist(directory, manifest) if with_shortlist else None
            runnable = _load(
                directory,
                manifest,
                device=device,
                compute_type=compute_type,
                num_threads=num_threads,
                packed_folder=packed_folder,
            )
    return replace(runnable, shortlist=shortlist)


def _load(
    directory: Path,
    manifest: Manifest,
    *,
    device: Device,
    compute_type: ComputeType,
    num_threads: int | None,
    packed_folder: PackedFolder | None,
) -> Runnable:
    problem = find_int8_problem(manifest, device)
    if compute_type == "int8" and problem is not None:
        raise UnsupportedVariantError(f"compute type is 'int8', but {problem}")
    is_cpu = device_type(device) == "cpu"
    if compute_type == "bfloat16" and is_cpu:
        raise UnsupportedVariantError(
            "compute type is 'bfloat16', which is for GPUs; on a CPU it is 'int8' or 'float32'"
        )
    if compute_type in ("float32", "bfloat16") or problem is not None:
        from model.float_loading import load_floats  # noqa: PLC0415  # loads torch

        is_whole = is_cpu or compute_type == "float32"
        least = weight_bytes(manifest, "float32") // (1 if is_whole else 2)
        if is_cpu:
            check_memory(directory, least)
        reason = _float_reason(manifest, device) if compute_type == "auto" else "asked_for"
        is_in_the_way = reason not in ("best", "asked_for")
        with reporting_shortage(directory, least, device=device):
            return load_floats(
                directory,
                manifest,
                device=device,
                compute_type="float32" if is_whole else "bfloat16",
                compute_reason=reason,
                compute_problem=problem or "" if is_in_the_way else "",
                num_threads=num_threads,
            )
    tokenizer = load_tokenizer(directory, manifest)
    check_tensors(directory, manifest)
    packed = _packed(directory, manifest, num_threads or default_num_threads(), packed_folder)
    give_back_freed_memory()  # holes of several megabytes that nobody fills again
    return Runnable(
        manifest=manifest,
        network=packed,
        tokenizer=tokenizer,
        compute_type="int8",
        compute_reason="best" if compute_type == "auto" else "asked_for",
    )


def _packed(
    directory: Path, manifest: Manifest, num_threads: int, folder: PackedFolder | None
) -> Int8Network:
    """The network with matrices of a folder; they are put there if they are not there yet."""
    module = kernels.load()

    def packed(matrices: Matrices) -> Int8Network:
        with mapped_weights(directory / manifest.files.weights, manifest.tensors) as weights:
            return pack(
                manifest.network,
                weights,
                max_positions=max_positions(manifest),
                suppressed_ids=manifest.tokens.suppressed_ids,
                num_threads=num_threads,
                matrices=matrices,
            )

    own = PackedHere(module)
    if folder is None:
        check_memory(directory, weight_bytes(manifest, "int8"))
        return packed(own)
    checkpoint = fingerprint(directory)
    kept = folder.find(checkpoint, module)
    if kept is not None:
        try:
            return packed(kept)
        except (KeyError, IndexError) as error:
            folder.remove(checkpoint, module, f"it has other matrices than are asked for: {error}")
    check_memory(directory, weight_bytes(manifest, "int8"))
    network = packed(own)
    if fingerprint(directory) == checkpoint:  # nobody has replaced it meanwhile
        folder.keep(checkpoint, own, module)
        kept = folder.find(checkpoint, module)
    return network if kept is None else packed(kept)


def automatic_compute_type(manifest: Manifest, device: Device) -> ChosenType:
    """The arithmetic that "auto" chooses for a checkpoint, by its description alone."""
    if find_int8_problem(manifest, device) is None:
        return "int8"
    return "float32" if device_type(device) == "cpu" else "bfloat16"


def max_positions(manifest: Manifest) -> int:
    """Positions of the longest source or target, forced prefix and start token included."""
    return max(manifest.limits.max_source_length, manifest.max_target_positions)


def _float_reason(manifest: Manifest, device: Device) -> ComputeReason:
    """Why a float network runs where float32 was not asked for."""
    if device_type(device) != "cpu":
        return "best"
    if unsupported_fields(manifest.network, INT8_FIELDS):
        return "network"
    return "processor" if kernels.missing_flags() else "not_built"


def find_int8_problem(manifest: Manifest, device: Device) -> str | None:
    """Why int8 cannot be had, or None."""
    if device_type(device) != "cpu":
        return f"int8 kernels run on a CPU, not on {device_type(device)}"
    if problems := unsupported_fields(manifest.network, INT8_FIELDS):
        return f"int8 kernels do not run this network: {'; '.join(problems)}"
    return kernels.find_problem()
