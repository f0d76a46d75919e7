#!/usr/bin/python3
"""Draws the memory of a step over time: reads memory.json of a run folder (tessera-run --memory-snapshot), writes
memory.png. With --viewer it writes a snapshot for PyTorch's memory viewer (pytorch.org/memory_viz) instead, in which
each block has the name of its value.

Examples: tools/plot-memory.py runs/demo
          tools/plot-memory.py runs/demo --viewer
"""
import argparse
import bisect
import json
import os
import pickle

from plots import fail, pyplot, save


ALIGNED = 1 << 30  # addresses of arenas are multiples of it: made up, they only have to lie apart


def read_snapshot(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}; tessera-run writes it with --memory-snapshot")
    except (ValueError, RecursionError):
        fail(f"'{path}' is not JSON")


def curves(snapshot, path):
    """(milliseconds, {class: MiB}, MiB reserved, MiB at the peak, step) of a snapshot."""
    try:
        times = [float(point["seconds"]) * 1e3 for point in snapshot["points"]]
        classes = {name: [point["by_class"][name] / 2**20 for point in snapshot["points"]]
                   for name in snapshot["points"][0]["by_class"]}
        return times, classes, snapshot["reserved"] / 2**20, snapshot["peak"] / 2**20, snapshot["step"]
    except (KeyError, TypeError, IndexError, ValueError):
        fail(f"'{path}' is not a memory snapshot")


def viewer_snapshot(snapshot):
    """What torch.cuda.memory._snapshot() would give of the step: arenas are segments, slots are blocks of them. Blocks that
    live through the whole step were allocated before it."""
    points, addresses, free = snapshot["points"], [], ALIGNED
    instructions = [point["instruction"] for point in points[:-1]]
    for arena in snapshot["arenas"]:
        addresses.append(free)
        free += -(-(arena["bytes"] + 1) // ALIGNED) * ALIGNED

    def point_of(instruction):
        """The number of the first point at an instruction or behind it; None at the end."""
        at = bisect.bisect_left(instructions, instruction)
        return at if at < len(instructions) else None

    def event(action, at, place):
        return {"action": action, **place, "time_us": round(points[at]["seconds"] * 1e6)}

    events, blocks = [], [[] for _ in addresses]
    for slot in sorted(snapshot["slots"], key=lambda slot: slot["offset"]):
        if snapshot["arenas"][slot["arena"]]["kind"] == "host":
            continue
        frames = [{"name": slot["name"], "filename": slot["class"], "line": 0}]
        place = {"addr": addresses[slot["arena"]] + slot["offset"], "size": slot["bytes"], "stream": 0, "frames": frames}
        begin, end = point_of(slot["first_instruction"]), point_of(slot["last_instruction"] + 1)
        if begin == end is not None:  # between two points, at none
            continue
        # At one point what ends comes before what begins in its place.
        if end is not None:
            events += [(end, 0, event(action, end, place)) for action in ("free_requested", "free_completed")]
        if slot["first_instruction"] > 0 and begin is not None:
            events.append((begin, 1, event("alloc", begin, place)))
        if end is None:
            blocks[slot["arena"]].append((slot, frames))
    segments = []
    for address, arena, living in zip(addresses, snapshot["arenas"], blocks):
        if arena["kind"] == "host":
            continue
        segment = {"device": 0, "address": address, "total_size": arena["bytes"], "stream": 0, "segment_type": "large", "frames": [],
                   "allocated_size": sum(slot["bytes"] for slot, _ in living), "blocks": []}
        segment |= {"active_size": segment["allocated_size"], "requested_size": segment["allocated_size"]}
        at = 0
        for slot, frames in [*living, ({"offset": arena["bytes"], "bytes": 0}, [])]:
            if slot["offset"] > at:
                segment["blocks"].append({"address": address + at, "size": slot["offset"] - at, "requested_size": 0,
                                          "state": "inactive", "frames": []})
            if slot["bytes"]:
                segment["blocks"].append({"address": address + slot["offset"], "size": slot["bytes"],
                                          "requested_size": slot["bytes"], "state": "active_allocated", "frames": frames})
            at = slot["offset"] + slot["bytes"]
        segments.append(segment)
    events.sort(key=lambda each: each[:2])
    return {"segments": segments, "device_traces": [[each for *_, each in events]], "allocator_settings": {},
            "external_annotations": []}


def write_viewer_snapshot(snapshot, path, source):
    """Writes what the viewer opens: a pickle of lists, dictionaries, texts and numbers."""
    try:
        made = viewer_snapshot(snapshot)
    except (KeyError, TypeError, IndexError, ValueError, OverflowError):
        fail(f"'{source}' is not a memory snapshot with slots; tessera-run writes it with --memory-snapshot")
    try:
        with open(path, "wb") as file:
            pickle.dump(made, file, protocol=4)
    except OSError as error:
        fail(f"cannot write '{path}': {error.strerror}")
    print(f"{len(made['device_traces'][0])} events of {len(snapshot['slots'])} blocks in {path}, for pytorch.org/memory_viz")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder of the run")
    parser.add_argument("--output", help="file to write (default: memory.png in the folder, of --viewer memory.pickle)")
    parser.add_argument("--viewer", action="store_true", help="write a snapshot for PyTorch's memory viewer")
    arguments = parser.parse_args()
    path = os.path.join(arguments.folder, "memory.json")
    snapshot = read_snapshot(path)
    if arguments.viewer:
        write_viewer_snapshot(snapshot, arguments.output or os.path.join(arguments.folder, "memory.pickle"), path)
        return
    times, classes, reserved, peak, step = curves(snapshot, path)
    used = {name: values for name, values in classes.items() if any(values)}
    if not used:
        fail(f"'{path}' has no memory to draw")
    figure, axes = pyplot().subplots(figsize=(8, 4.5))
    axes.stackplot(times, used.values(), labels=used.keys(), step="post", linewidth=0)
    axes.axhline(reserved, color="black", linestyle="--", linewidth=1, label=f"reserved {reserved:.1f} MiB")
    axes.set_xlabel(f"time in step {step} (ms)")
    axes.set_ylabel("memory of one rank (MiB)")
    axes.set_title(f"peak {peak:.1f} MiB of {reserved:.1f} MiB reserved")
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.legend(loc="lower right", fontsize="small")
    output = arguments.output or os.path.join(arguments.folder, "memory.png")
    save(figure, output)
    print(f"peak {peak:.1f} MiB of {reserved:.1f} MiB reserved; curve in {output}")


if __name__ == "__main__":
    main()
