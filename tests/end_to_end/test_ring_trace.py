"""A ring's communication: what a run does in which order is what the schedule says, and what it sends is what the cost model counts."""

import collections
import json
import os
import re
import subprocess

import launchers
from harness import Golden, ToolTest, run_command

STEP = 2  # the one that is traced
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute")
ROUNDING = 2e-3  # microseconds, of times in a trace


def exposed_seconds(events):
    """Of one rank: when its compute stream waits, or runs a collective itself; overlaps count once."""
    total, end = 0.0, 0.0
    for begin, duration in sorted((event["ts"], event["dur"]) for event in events
                                  if event["tid"] == 0 and event["cat"] in ("wait", *COLLECTIVES)):
        total += max(0.0, begin + duration - max(begin, end))
        end = max(end, begin + duration)
    return total / 1e6


class RingTrace(ToolTest):
    def compile(self, ranks, *flags):
        golden = Golden("llama")
        flags = [*golden.compile_flags(), "--mesh", f"seq={ranks}", "--attention", "ring", *flags]
        self.succeed("tessera-compile", *flags, "-o", "ring.tessera", "--report=report.json")
        dump = json.loads(self.succeed("tessera-dump", "ring.tessera", "--schedule", "--collectives", "--json"))
        with open(self.path("report.json")) as file:
            return dump["schedule"], dump["collectives"]["list"], json.load(file)

    @staticmethod
    def run_flags(out):
        return ["ring.tessera", "--data", Golden("llama").data, "--steps", STEP, "--trace-steps", STEP, "--no-export", "--threads", 1,
                "--out", out]

    def events(self, *names):
        """By rank, in the order of their begin."""
        ranks = collections.defaultdict(list)
        for name in names:
            with open(self.path(name)) as file:
                for event in json.load(file)["traceEvents"]:
                    if event["ph"] == "X" and event["args"]["step"] == STEP:
                        ranks[event["pid"]].append(event)
        return ranks

    def passes(self, schedule):
        """For each permute beside an attention: its number, that of the attention, and of the wait for what arrives."""
        waits = {}  # by permute
        records = {}
        last = {}  # instruction by stream
        for row in schedule:
            event = re.match(r"event (\d+)", row["operands"])
            if row["kind"] == "record":
                records[event[1]] = last.get(row["stream"])
            elif row["kind"] == "wait" and row["stream"] == "compute" and records[event[1]] is not None:
                waits.setdefault(records[event[1]], row["number"])
            if row["kind"] in COLLECTIVES:
                last[row["stream"]] = row["number"]
        # The event behind the last permute of several in one queue tells of all.
        numbers = [row["number"] for row in schedule if row["kind"] == "permute"]
        found = []
        attentions = [row["number"] for row in schedule if row["kind"].startswith("attention")]
        for number in numbers:
            wait = min(waits[later] for later in numbers if later >= number and later in waits)
            found.append((number, [attention for attention in attentions if number < attention < wait], wait))
        return found

    def check(self, ranks, *traces):
        schedule, sent, report = self.schedule, self.sent, self.report
        passes = self.passes(schedule)
        layers = 2
        # Forward keys and values go on n - 1 times; backward too, and their gradients n times.
        self.assertEqual(len(passes), layers * (4 * (ranks - 1) + 2 * ranks))
        beside = [entry for entry in passes if entry[1]]
        # All of keys and values travel beside the attention of the block in front of them.
        self.assertGreaterEqual(len(beside), layers * 4 * (ranks - 1))
        permutes = {row["number"]: row for row in sent if row["kind"] == "permute"}
        self.assertEqual(sorted(permutes), [number for number, _, _ in passes])
        model = next(row for row in report["collectives"] if row["kind"] == "permute")
        self.assertEqual(model["count"], len(permutes))
        self.assertEqual(model["wire_bytes_per_rank"], sum(row["sent_per_rank"] for row in permutes.values()))

        events = self.events(*traces)
        self.assertEqual(sorted(events), list(range(ranks)))
        for rank, own in events.items():
            by_number = {event["args"]["instruction"]: event for event in own}
            ran = {event["args"]["instruction"]: event["args"]["bytes"] for event in own if event["cat"] == "permute"}
            self.assertEqual(ran, {number: row["bytes"] for number, row in permutes.items()})
            end = {number: event["ts"] + event["dur"] for number, event in by_number.items()}
            computes = [event["args"]["instruction"] for event in own if event["tid"] == 0]
            self.assertEqual(computes, sorted(computes), "one stream runs in order")
            self.assertEqual([number for number in ran], sorted(ran), "and so do permutes")
            for number, attentions, wait in beside:
                self.assertGreater(attentions[0], number)  # it was issued before the attention
                # Its end is waited for when the attention is over, and what follows waits for it.
                for attention in attentions:
                    self.assertLessEqual(end[attention], by_number[wait]["ts"] + ROUNDING)
                self.assertLessEqual(end[number], end[wait] + ROUNDING)
        return events

    def check_exposed(self, out, events):
        """What metrics.jsonl says is the time in which ranks wait, of the same intervals; the model divides a step alike."""
        record = next(record for record in self.metrics(out) if record["step"] == STEP)
        mean = sum(map(exposed_seconds, events.values())) / len(events)
        self.assertAlmostEqual(record["exposed_communication_seconds"], mean, delta=1e-9 * sum(map(len, events.values())) + 1e-6)
        step = self.report["step"]
        self.assertAlmostEqual(step["seconds"], step["compute_seconds"] + step["exposed_communication_seconds"],
                               delta=1e-9 * step["seconds"])
        self.assertGreater(step["hidden_communication_seconds"], 0)

    def test_ranks_as_threads(self):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                self.schedule, self.sent, self.report = self.compile(ranks)
                self.succeed("tessera-run", *self.run_flags(f"run-{ranks}"))
                self.check_exposed(f"run-{ranks}", self.check(ranks, f"run-{ranks}/trace.json"))

    def test_ranks_as_processes(self):
        self.schedule, self.sent, self.report = self.compile(2)
        port = launchers.free_port()
        runs = [subprocess.Popen(run_command(*self.run_flags("run")), cwd=self.path(), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, env={**os.environ, **launchers.tcp_environment(rank, 2, port)})
                for rank in range(2)]
        for run in runs:
            text = run.communicate(timeout=300)[0]
            self.assertEqual(run.returncode, 0, text)
        self.check(2, "run/trace.json", "run/trace-1.json")
