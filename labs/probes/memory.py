"""Where a rank's memory is, byte by byte, at any moment of a step.

A process's resident size says next to nothing (allocators keep what is freed), and a GPU's statistics know
no names. So we follow the storages themselves: a *storage* is the block of memory behind one or more
tensors. `MemoryTracker` is told of every tensor an operation returns, remembers its storage by a weak
reference, and so notices when the storage is freed. Each storage belongs to one component:

  parameters   of the model, as this rank keeps them: its share under FSDP, everything under DDP
  gradients    what `.grad` points to: under DDP the buckets, which exist all the time
  optimizer    the optimizer's state (AdamW: two moments, and a 4-byte step counter for each parameter)
  activations  what autograd has saved for backward, but for parameters
  temporary    everything else that is alive: gathered parameters, gradients that are not yet reduced,
               communication buffers, intermediate results, the batch

Sizes are bytes of storage. Not seen: scratch space that a kernel or the communication library allocates for
itself (gloo's reduce-scatter copies its input, for one), and what allocators round up or keep in reserve.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from labs.parallel.buckets import local
from labs.probes.history import History, Life
from labs.spec.events import Bytes, Component

COMPONENTS: tuple[Component, ...] = ("parameters", "gradients", "optimizer", "activations", "temporary")
_MODEL_STATE: tuple[Component, ...] = ("parameters", "gradients", "optimizer")


@dataclass(slots=True)
class _Block:
    """One storage that is alive."""

    reference: weakref.ref[torch.UntypedStorage]
    size_bytes: int
    owner: Component | None = None  # a component it belongs to for good
    gathered: bool = False  # a parameter, but not one this rank keeps
    saved: int = 0  # how many tensors that autograd has saved point to it
    born: float = 0.0  # when it got its memory, in a step whose history is written; 0 before that
    life: Life | None = None  # of a block that is followed

    @property
    def component(self) -> Component:
        if self.owner is not None:
            return self.owner
        return "activations" if self.saved and not self.gathered else "temporary"


class MemoryTracker:
    """The live storages of one device, by component, and the moment when they were largest."""

    def __init__(self, device: torch.device) -> None:
        self._device_type = device.type
        self._blocks: dict[int, _Block] = {}  # by the storage's address
        self._bytes: dict[Component, int] = dict.fromkeys(COMPONENTS, 0)
        self._lock = threading.RLock()  # gloo's threads, too, drop the last reference to a tensor now and then
        self.new_blocks_belong_to: Component | None = None
        self._born: list[_Block] | None = None  # blocks that came into being while we are `keeping`
        self._history: History | None = None
        self.phase = ""  # what the step is doing, in its own words
        self._peak_is_now()
        self.activation_peak = self.now()

    def now(self) -> Bytes:
        return _with_total(self._bytes)

    def start(self) -> None:
        """Begin a step: sizes may have changed unseen since the last one, and the peak starts anew."""
        for block in list(self._blocks.values()):
            storage = block.reference()
            self._resize(block, storage.nbytes() if storage is not None else 0)
        self._peak_is_now()
        self.activation_peak = self.now()

    @contextmanager
    def writing(self, history: History) -> Iterator[None]:
        """While this is entered `history` is told of every change, and blocks can be followed."""
        for block in list(self._blocks.values()):
            block.born, block.life = 0.0, None
        self._history = history
        history.note(tuple(self._bytes.values()))
        try:
            yield
        finally:
            self._history = None
            history.note(tuple(self._bytes.values()))

    def follow(self, tensors: Iterable[Tensor]) -> list[Life]:
        """The lives of the storages of `tensors` in the step whose history is written; none if none is."""
        if self._history is None:
            return []
        blocks = {id(block): block for tensor in tensors if (block := self._block_of(tensor)) is not None}
        return [self._life_of(block) for block in blocks.values()]

    def _life_of(self, block: _Block) -> Life:
        if block.life is None or block.life.end is not None:
            block.life = Life(block.component, block.size_bytes, block.born)
        return block.life

    def _peak_is_now(self) -> None:
        self.peak: Bytes = self.now()
        self.peak_phase = self.phase

    def _note_peaks(self) -> None:
        if self._history is not None:
            self._history.note(tuple(self._bytes.values()))
        if sum(self._bytes.values()) > self.peak["total"]:
            self._peak_is_now()
        if self._bytes["activations"] > self.activation_peak["activations"]:
            self.activation_peak = self.now()

    # --- what is told to the tracker

    def see(self, value: object) -> None:
        """An operation returned `value`: a tensor, or a sequence with tensors in it."""
        if isinstance(value, Tensor):
            self._block_of(value)
        elif isinstance(value, list | tuple):
            for item in value:
                self.see(item)

    @torch.no_grad()
    def assign(self, tensors: Iterable[Tensor], owner: Component) -> None:
        """From now on the storages of `tensors` belong to `owner`."""
        for tensor in tensors:
            block = self._block_of(tensor)
            if block is not None:
                with self._moving(block):
                    block.owner = owner

    def disown(self) -> None:
        """No storage seen so far belongs to anything for good."""
        for block in list(self._blocks.values()):
            with self._moving(block):
                block.owner = None

    def note_gathered(self, parameters: Iterable[Tensor]) -> None:
        """A module is about to compute with `parameters`. Those this rank does not keep are gathered ones."""
        for parameter in parameters:
            block = self._block_of(parameter)
            if block is not None and block.owner is None:
                with self._moving(block):
                    block.gathered = True

    def save(self, tensor: Tensor) -> SavedTensor:
        """Autograd saves `tensor` for backward: it is an activation until autograd lets go of it.

        We hold it detached, as autograd itself does where an operation saves its own result: the result knows the
        operation, and if that in turn held it, a graph of which backward leaves a part, as one in two passes does,
        would never be freed.
        """
        block = self._block_of(tensor)
        tensor = tensor if tensor.is_leaf else tensor.detach()
        if block is not None:
            with self._moving(block):
                block.saved += 1
        return SavedTensor(tensor, self, block)

    def let_go(self, block: _Block) -> None:
        with self._moving(block):
            block.saved -= 1

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """What comes into being inside and is still there at the end was kept for backward: autograd's own hooks do
        not say so of what activation checkpointing keeps and recomputes."""
        born: list[_Block] = []
        self._born = born
        try:
            yield
        finally:
            self._born = None
            for block in born:
                if block.reference() is not None:
                    with self._moving(block):
                        block.saved += 1

    def resized(self, storage: torch.UntypedStorage) -> None:
        """FSDP frees a gathered parameter by shrinking its storage to nothing, past every tensor operation."""
        # a dry run's storages are on no device, whatever device their tensors claim to be on
        if storage.device.type in (self._device_type, "meta"):
            self._resize(self._block_of_storage(storage), storage.nbytes())

    # --- keeping the books

    def _block_of(self, tensor: Tensor) -> _Block | None:
        here = local(tensor)
        if here.device.type != self._device_type:
            return None
        return self._block_of_storage(here.untyped_storage())

    def _block_of_storage(self, storage: torch.UntypedStorage) -> _Block:
        key = storage._cdata
        block = self._blocks.get(key)
        if block is not None and block.reference() is storage:
            return block
        self._forget(key)
        reference = weakref.ref(storage, lambda dead: self._forget(key, dead))
        block = self._blocks[key] = _Block(reference, 0, self.new_blocks_belong_to)
        self._resize(block, storage.nbytes())
        if self._born is not None:
            self._born.append(block)
        return block

    def _forget(self, key: int, dead: weakref.ref[torch.UntypedStorage] | None = None) -> None:
        block = self._blocks.get(key)
        if block is None or (dead is not None and block.reference is not dead):
            return  # the address was given to a new storage before we heard of the old one's end
        self._resize(block, 0)
        del self._blocks[key]

    def _resize(self, block: _Block, size_bytes: int) -> None:
        with self._lock:
            if self._history is not None:
                _note_life(block, size_bytes)
            self._bytes[block.component] += size_bytes - block.size_bytes
            block.size_bytes = size_bytes
            self._note_peaks()

    @contextmanager
    def _moving(self, block: _Block) -> Iterator[None]:
        """A change that may move a block from one component to another; the total stays."""
        with self._lock:
            self._bytes[block.component] -= block.size_bytes
            yield
            self._bytes[block.component] += block.size_bytes
            self._note_peaks()


def _note_life(block: _Block, size_bytes: int) -> None:
    """A block gets its memory or loses it."""
    if block.size_bytes == 0:
        block.born = time.time()
    elif size_bytes == 0 and block.life is not None:
        block.life.component, block.life.end = block.component, time.time()


class SavedTensor:
    """What autograd holds in place of a tensor it saved. It drops this when it drops the tensor."""

    __slots__ = ("_block", "_tracker", "tensor")

    def __init__(self, tensor: Tensor, tracker: MemoryTracker, block: _Block | None) -> None:
        self.tensor = tensor
        self._tracker = tracker
        self._block = block

    def __del__(self) -> None:
        if self._block is not None:
            self._tracker.let_go(self._block)


def model_state(held: Bytes) -> Bytes:
    """What training keeps from step to step, of all that is held."""
    return _with_total({component: held[component] for component in _MODEL_STATE})


def _with_total(by_component: Mapping[Component, int]) -> Bytes:
    held: Bytes = dict(by_component.items())
    return held | {"total": sum(by_component.values())}
