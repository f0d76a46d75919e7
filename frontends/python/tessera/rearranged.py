"""Tensors that know where each of their elements comes from: operators that only move elements are run on them, and tell what
goes where. No element is computed, so that a tensor of any size is a few numbers."""

import dataclasses
import math

import torch


class NotMoved(Exception):
    """An operator does something else than move elements, or moves them as the pieces here cannot say."""


@dataclasses.dataclass(frozen=True)
class Loop:
    """One loop over elements of a piece. size: how often; stride, source_stride: elements from one turn to the next in the
    tensor and in the source, both in row-major order."""
    size: int
    stride: int
    source_stride: int


@dataclasses.dataclass(frozen=True)
class Piece:
    """Elements of a tensor that are elements of a source: those that nested loops visit in both at once. offset, source_offset:
    the first of them; loops: the largest stride in the tensor first."""
    source: str
    offset: int
    source_offset: int
    loops: tuple

    @property
    def elements(self):
        return math.prod(loop.size for loop in self.loops)

    def inverted(self, name):
        """(the source, the piece of it that is elements of the tensor `name`)."""
        loops = [Loop(loop.size, loop.source_stride, loop.stride) for loop in self.loops]
        return self.source, simplified(Piece(name, self.source_offset, self.offset, tuple(loops)))


def simplified(piece):
    """The same elements in as few loops as can be."""
    made = []
    for loop in sorted((loop for loop in piece.loops if loop.size > 1), key=lambda loop: -loop.stride):
        if made and made[-1].stride == loop.stride * loop.size and made[-1].source_stride == loop.source_stride * loop.size:
            loop = Loop(made.pop().size * loop.size, loop.stride, loop.source_stride)
        made.append(loop)
    return dataclasses.replace(piece, loops=tuple(made))


def row_major(shape):
    """Strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


@dataclasses.dataclass(frozen=True)
class AxisLoop:
    """A loop along one axis of the tensor. step: indices of the axis from one turn to the next."""
    axis: int
    size: int
    step: int
    source_stride: int


def along_axes(piece, shape):
    """(index of the first element, [AxisLoop]) of a piece of a tensor of this shape. Raises NotMoved."""
    strides = row_major(shape)
    first, rest = [], piece.offset
    for stride in strides:
        first.append(rest // stride)
        rest %= stride
    found = []

    def place(size, stride, source_stride):
        axis = max((at for at in range(len(shape)) if shape[at] > 1 and strides[at] <= stride), key=strides.__getitem__,
                   default=None)
        if axis is None or stride % strides[axis]:
            raise NotMoved("elements that lie across dimensions")
        step = stride // strides[axis]
        turns = shape[axis] // step
        if size > turns:  # it goes on along the axis before
            if shape[axis] % step or size % turns:
                raise NotMoved("elements that lie across dimensions")
            place(size // turns, stride * turns, source_stride * turns)
            size = turns
        if size > 1:
            found.append(AxisLoop(axis, size, step, source_stride))

    for loop in piece.loops:
        if loop.size > 1:
            place(loop.size, loop.stride, loop.source_stride)
    for axis, size in enumerate(shape):
        if first[axis] + sum((loop.size - 1) * loop.step for loop in found if loop.axis == axis) >= size:
            raise NotMoved("elements that lie across dimensions")
    return first, found


def from_axes(source, source_offset, first, loops, shape):
    """The piece of a tensor of this shape whose first element has the index `first`."""
    strides = row_major(shape)
    return simplified(Piece(source, sum(at * stride for at, stride in zip(first, strides)), source_offset,
                            tuple(Loop(loop.size, loop.step * strides[loop.axis], loop.source_stride) for loop in loops)))


def within(first, source_offset, loops, axis, begin, end):
    """[(first, source_offset, loops)]: the parts of a piece whose indices of the axis are in [begin, end)."""
    own = sorted((loop for loop in loops if loop.axis == axis), key=lambda loop: -loop.step)
    last = first[axis] + sum((loop.size - 1) * loop.step for loop in own)
    if begin <= first[axis] and last < end:
        return [(first, source_offset, loops)]
    if last < begin or end <= first[axis]:
        return []
    outer = own[0]
    inner = sum((loop.size - 1) * loop.step for loop in own[1:])
    others = [loop for loop in loops if loop is not outer]
    whole = [at for at in range(outer.size)
             if begin <= first[axis] + at * outer.step and first[axis] + at * outer.step + inner < end]
    turns = [(whole[0], len(whole))] if whole else []
    turns += [(at, 1) for at in range(outer.size) if at not in range(whole[0], whole[-1] + 1)] if whole else \
             [(at, 1) for at in range(outer.size)]
    parts = []
    for at, count in sorted(turns):
        moved = [*first]
        moved[axis] += at * outer.step
        kept = [*others] + ([dataclasses.replace(outer, size=count)] if count > 1 else [])
        parts += within(moved, source_offset + at * outer.source_stride, kept, axis, begin, end)
    return parts


class Rearranged(torch.Tensor):
    """A tensor without values, made of `pieces`. Only operators that move elements take it; others raise NotMoved."""

    @staticmethod
    def __new__(cls, shape, dtype, pieces):
        made = torch.Tensor._make_wrapper_subclass(cls, tuple(shape), dtype=dtype, device="meta")
        made.pieces = list(pieces)
        return made

    @staticmethod
    def of(source, shape, dtype=torch.float32):
        """All of the tensor `source`, in its order."""
        elements = math.prod(shape)
        pieces = [Piece(source, 0, 0, (Loop(elements, 1, 1),) if elements > 1 else ())] if elements else []
        return Rearranged(shape, dtype, pieces)

    def __repr__(self, **_):
        return f"Rearranged({tuple(self.shape)}, {self.pieces})"

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        rule = RULES.get(function.overloadpacket)
        if rule is None:
            raise NotMoved(f"the operator {function}")
        return rule(*args, **kwargs)


def same_order(tensor, shape):
    """The same elements in the same order, as another shape."""
    made = torch.empty(tensor.shape, device="meta").reshape(shape)
    return Rearranged(made.shape, tensor.dtype, tensor.pieces)


def permuted(tensor, order):
    order = [axis % tensor.dim() for axis in order]
    shape = [tensor.shape[axis] for axis in order]
    pieces = []
    for piece in tensor.pieces:
        first, loops = along_axes(piece, tensor.shape)
        loops = [dataclasses.replace(loop, axis=order.index(loop.axis)) for loop in loops]
        pieces.append(from_axes(piece.source, piece.source_offset, [first[axis] for axis in order], loops, shape))
    return Rearranged(shape, tensor.dtype, pieces)


def transposed(tensor, one=0, other=1):
    order = list(range(tensor.dim()))
    if order:
        order[one], order[other] = order[other], order[one]
    return permuted(tensor, order)


def narrowed(tensor, axis, begin, end):
    """Indices [begin, end) of an axis."""
    axis %= tensor.dim()
    shape = [*tensor.shape]
    shape[axis] = end - begin
    pieces = []
    for piece in tensor.pieces:
        first, loops = along_axes(piece, tensor.shape)
        for at, source_offset, kept in within(first, piece.source_offset, loops, axis, begin, end):
            at = [*at]
            at[axis] -= begin
            pieces.append(from_axes(piece.source, source_offset, at, kept, shape))
    return Rearranged(shape, tensor.dtype, pieces)


def sliced(tensor, axis=0, begin=None, end=None, step=1):
    if step != 1:
        raise NotMoved("slices with a step")
    begin, end, _ = slice(begin, end).indices(tensor.shape[axis])
    return narrowed(tensor, axis, begin, max(begin, end))


def split(tensor, sizes, axis=0):
    whole = tensor.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, whole - begin) for begin in range(0, whole, sizes)]
    parts, begin = [], 0
    for size in sizes:
        parts.append(narrowed(tensor, axis, begin, begin + size))
        begin += size
    return parts


def selected(tensor, axis, index):
    index %= tensor.shape[axis]
    part = narrowed(tensor, axis, index, index + 1)
    return same_order(part, [size for at, size in enumerate(part.shape) if at != axis % tensor.dim()])


def unbound(tensor, axis=0):
    return [selected(tensor, axis, index) for index in range(tensor.shape[axis])]


def squeezed(tensor, axes=None):
    axes = range(tensor.dim()) if axes is None else [axes] if isinstance(axes, int) else axes
    axes = {axis % tensor.dim() for axis in axes}
    return same_order(tensor, [size for at, size in enumerate(tensor.shape) if at not in axes or size != 1])


def unsqueezed(tensor, axis):
    shape = [*tensor.shape]
    shape.insert(axis % (tensor.dim() + 1), 1)
    return same_order(tensor, shape)


def joined(tensors, axis=0):
    """Side by side along an axis. Raises NotMoved if one of them has values of its own."""
    if not all(isinstance(tensor, Rearranged) for tensor in tensors):
        raise NotMoved("elements that are in no file")
    axis %= tensors[0].dim()
    shape = [*tensors[0].shape]
    shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
    pieces, begin = [], 0
    for tensor in tensors:
        for piece in tensor.pieces:
            first, loops = along_axes(piece, tensor.shape)
            first[axis] += begin
            pieces.append(from_axes(piece.source, piece.source_offset, first, loops, shape))
        begin += tensor.shape[axis]
    return Rearranged(shape, tensors[0].dtype, pieces)


def stacked(tensors, axis=0):
    axis %= tensors[0].dim() + 1
    if not all(isinstance(tensor, Rearranged) for tensor in tensors):
        raise NotMoved("elements that are in no file")
    return joined([unsqueezed(tensor, axis) for tensor in tensors], axis)


def unchanged(tensor, *_, **__):
    """A copy, also to another type or device."""
    return Rearranged(tensor.shape, tensor.dtype, tensor.pieces)


RULES = {
    **dict.fromkeys((torch.ops.aten.view, torch.ops.aten._unsafe_view, torch.ops.aten.reshape), same_order),
    **dict.fromkeys((torch.ops.aten.clone, torch.ops.aten.contiguous, torch.ops.aten.detach, torch.ops.aten.alias,
                     torch.ops.aten._to_copy, torch.ops.aten.lift_fresh), unchanged),
    torch.ops.aten.permute: permuted,
    torch.ops.aten.transpose: transposed,
    torch.ops.aten.t: transposed,
    torch.ops.aten.slice: sliced,
    torch.ops.aten.split: split,
    torch.ops.aten.split_with_sizes: split,
    torch.ops.aten.select: selected,
    torch.ops.aten.unbind: unbound,
    torch.ops.aten.squeeze: squeezed,
    torch.ops.aten.unsqueeze: unsqueezed,
    torch.ops.aten.cat: joined,
    torch.ops.aten.stack: stacked,
}
