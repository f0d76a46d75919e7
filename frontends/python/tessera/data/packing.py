"""Cuts documents into pieces and packs pieces into rows of T positions."""

import numpy

SPAN = 1 << 24  # tokens whose mask is unpacked at a time


def cut(starts, lengths, sequence):
    """(begin, count) of the pieces of documents, in their order: whole documents, and parts of T tokens of longer ones; a last
    part of one token, which has no target, is left out. starts, lengths: int64[documents]; the results: int64[pieces]."""
    parts = numpy.maximum(1, -(-(lengths - 1) // sequence))
    first = numpy.cumsum(parts) - parts
    at = (numpy.arange(parts.sum()) - numpy.repeat(first, parts)) * sequence
    return numpy.repeat(starts, parts) + at, numpy.minimum(numpy.repeat(lengths, parts) - at, sequence)


def windows(starts, lengths, sequence):
    """(begin, count, row, tokens left over) of the pieces of consecutive windows of T tokens over all documents."""
    ends = numpy.cumsum(lengths)
    total = int(ends[-1]) // sequence * sequence if len(ends) else 0
    edges = numpy.union1d(numpy.arange(0, total, sequence), (ends - lengths)[ends - lengths < total])
    count = numpy.diff(edges, append=total)
    document = numpy.searchsorted(ends, edges, "right")
    begin = starts[document] + edges - (ends - lengths)[document]
    return begin, count, edges // sequence, (int(ends[-1]) if len(ends) else 0) - total


def best_fit(count, sequence):
    """The row of each piece, int64[pieces], by best fit in decreasing order: of pieces of the same length the first one comes
    first, each goes into the fullest row that has room, the one opened first of several, else into a new one.

    Pieces of one length are placed at once: rows with room for fewer than two of them take one each, the fullest first; a row
    with more room is the fullest one again after each, so that it takes as many as it holds before the next one."""
    order = numpy.argsort(-count, kind="stable")
    lengths, first, many = numpy.unique(-count[order], return_index=True, return_counts=True)
    placed = numpy.empty(len(count), numpy.int64)
    free, occupied, opened = {}, 0, 0  # free: {room: [rows, …]}, occupied: bit r is set if free[r] is there
    for length, at, left in zip((-lengths).tolist(), first.tolist(), many.tolist()):
        while left:
            above = occupied >> length
            room = length + (above & -above).bit_length() - 1 if above else sequence
            each = room // length
            needed = -(-left // each)
            if above:
                groups = free.pop(room)
                rows = groups[0] if len(groups) == 1 else numpy.sort(numpy.concatenate(groups))
                occupied ^= 1 << room
                if len(rows) > needed:
                    free[room] = [rows[needed:]]
                    occupied |= 1 << room
                    rows = rows[:needed]
            else:
                rows = numpy.arange(opened, opened + needed)
                opened += needed
            taken = min(left, len(rows) * each)
            placed[at:at + taken] = numpy.repeat(rows, each)[:taken]
            full = taken // each
            for part, rest in ((rows[:full], room - each * length), (rows[full:], room - taken % each * length)):
                if len(part) and rest:
                    free.setdefault(rest, []).append(part)
                    occupied |= 1 << rest
            at, left = at + taken, left - taken
    rows = numpy.empty_like(placed)
    rows[order] = placed
    return rows


def targets(shards, begin, count):
    """The number of targets of each piece, int64[pieces]; pieces in ascending order. shards: a Shards."""
    found = numpy.empty(len(begin), numpy.int64)
    at = 0
    while at < len(begin):
        shard_end = shards.begins[numpy.searchsorted(shards.begins, begin[at], "right")]
        limit = min(begin[at] + SPAN, shard_end)
        until = max(at + 1, int(numpy.searchsorted(begin, limit, "left")))
        end = min(begin[until - 1] + count[until - 1] + 1, shard_end)  # the first token of the next shard is no target
        sums = numpy.concatenate([[0], numpy.cumsum(shards.mask(begin[at], end), dtype=numpy.int64)])
        part = slice(at, until)
        low = numpy.minimum(begin[part] + 1, end) - begin[at]
        high = numpy.minimum(begin[part] + count[part] + 1, end) - begin[at]
        found[part] = sums[high] - sums[low]
        at = until
    return found


def pack(packing, shards, starts, lengths, sequence, counts):
    """(first, begin, count, targets) of the rows of documents: first[rows + 1] is the index of each row's first piece, the
    others are of pieces. packing: "best-fit", "windows" or "none"; counts: what is dropped is added there."""
    if packing == "windows":
        begin, count, row, left = windows(starts, lengths, sequence)
        counts["tokens of the last window"] += left
    else:
        begin, count = cut(starts, lengths, sequence)
        counts["cut"] += int((lengths > sequence + 1).sum())
    found = targets(shards, begin, count)
    if packing == "windows":
        kept = numpy.bincount(row, found) > 0
        counts["windows without a target"] += int((~kept).sum())
        good = kept[row]
        row = (numpy.cumsum(kept) - 1)[row[good]]
    else:
        good = found > 0
        counts["pieces without a target"] += int((~good).sum())
    begin, count, found = begin[good], count[good], found[good]
    if packing == "none":
        row = numpy.arange(len(begin))
    if packing == "best-fit":
        row = best_fit(count, sequence)
        order = numpy.lexsort((begin, -count, row))
        begin, count, found, row = begin[order], count[order], found[order], row[order]
    rows = int(row[-1]) + 1 if len(row) else 0
    return numpy.searchsorted(row, numpy.arange(rows + 1)), begin, count, found
