"""What a run reports: memory by stage and over time, the division of a step's time, TensorBoard's event files."""

import json
import os
import pickle
import pickletools
import subprocess
import sys
import unittest

from harness import ROOT, Golden, ToolTest

TENSORBOARD = os.path.join(ROOT, ".venv-tests", "bin", "python")  # made by tools/setup.sh
# What the viewer reads of pickles (torch/utils/viz/MemoryViz.js of PyTorch).
READ_BY_VIEWER = set("""APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPUT BINUNICODE DICT EMPTY_DICT EMPTY_LIST EMPTY_TUPLE FRAME
LIST LONG1 LONG_BINGET LONG_BINPUT MARK MEMOIZE NEWFALSE NEWTRUE NONE PROTO SETITEM SETITEMS SHORT_BINUNICODE STOP TUPLE TUPLE1 TUPLE2
TUPLE3""".split())
READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""


class Telemetry(ToolTest):
    def setUp(self):
        super().setUp()
        golden = Golden("llama")
        self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "-o",
                     "a.tessera")
        self.flags = ["a.tessera", "--data", golden.data, "--threads", 1, "--out", "run"]

    def test_memory_of_stages_and_times(self):
        said = self.succeed("tessera-run", *self.flags, "--steps", 3, "--log", "memory")
        with open(self.path("run", "metrics.jsonl")) as file:
            records = [json.loads(line) for line in file]
        for stage in ("after data creation", "after model creation", "after warm-up"):
            for rank in range(2):
                self.assertRegex(said, rf"\[rank {rank}\] memory {stage}: allocated \S+ \S+, max allocated \S+ \S+, "
                                       r"reserved \S+ \S+, rss \S+ \S+\n")
        stages = [record for record in records if "stage" in record]
        self.assertEqual([stage["stage"] for stage in stages],
                         ["after data creation", "after model creation", "after warm-up"])
        data, model, warm = (stage["ranks"] for stage in stages)
        self.assertEqual([rank["rank"] for rank in model], [0, 1])
        for rank in range(2):
            self.assertEqual(data[rank]["reserved"], 0)
            self.assertGreater(model[rank]["allocated"], 0)
            self.assertGreater(warm[rank]["peak"], model[rank]["peak"])
            self.assertLessEqual(warm[rank]["peak"], warm[rank]["reserved"])
            self.assertEqual(warm[rank]["reserved"], model[rank]["reserved"], "nothing is reserved in a step")
        for record in records:
            if "stage" not in record:
                parts = [record[name] for name in ("compute_seconds", "exposed_communication_seconds", "host_seconds",
                                                   "data_wait_seconds", "hidden_communication_seconds")]
                self.assertTrue(all(part >= 0 for part in parts), record)
                self.assertLessEqual(sum(parts[:4]), record["step_seconds"] * 1.01 + 1e-3)

    def test_memory_snapshot(self):
        self.succeed("tessera-run", *self.flags, "--steps", 3, "--memory-snapshot")
        with open(self.path("run", "memory.json")) as file:
            snapshot = json.load(file)
        self.assertEqual(snapshot["step"], 2)
        allocated = [point["allocated"] for point in snapshot["points"]]
        self.assertEqual(max(allocated), snapshot["peak"])
        self.assertLessEqual(snapshot["peak"], snapshot["reserved"])
        times = [point["seconds"] for point in snapshot["points"]]
        self.assertEqual(times, sorted(times))
        for point in snapshot["points"]:
            self.assertEqual(point["allocated"], sum(point["by_class"].values()))
        plot = os.path.join(ROOT, "tools", "plot-memory.py")
        done = subprocess.run([sys.executable, plot, self.path("run")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if "matplotlib is missing" in done.stdout:
            self.skipTest("matplotlib is not installed")
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(self.path("run", "memory.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_snapshot_for_pytorchs_viewer(self):
        """Its events bring the bytes of the plan, from what was there before the step to what is there after it."""
        self.succeed("tessera-run", *self.flags, "--steps", 2, "--memory-snapshot")
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "plot-memory.py"), self.path("run"), "--viewer"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(self.path("run", "memory.json")) as file:
            plan = json.load(file)
        with open(self.path("run", "memory.pickle"), "rb") as file:
            data = file.read()
        snapshot = pickle.loads(data)
        self.assertLessEqual({code.name for code, *_ in pickletools.genops(data)}, READ_BY_VIEWER)
        self.assertEqual(sum(segment["total_size"] for segment in snapshot["segments"]), plan["planned"])
        events = snapshot["device_traces"][0]
        self.assertEqual([event["time_us"] for event in events], sorted(event["time_us"] for event in events))
        live = {block["address"]: block["size"] for segment in snapshot["segments"] for block in segment["blocks"]
                if block["state"] == "active_allocated"}
        self.assertEqual(sum(live.values()), plan["points"][-1]["allocated"])
        most = sum(live.values())
        for event in reversed(events):
            if event["action"] == "alloc":
                self.assertEqual(live.pop(event["addr"]), event["size"])
            elif event["action"] == "free_completed":
                self.assertNotIn(event["addr"], live)
                live[event["addr"]] = event["size"]
            most = max(most, sum(live.values()))
        self.assertEqual(sum(live.values()), plan["points"][0]["allocated"])
        self.assertEqual(most, plan["peak"])
        self.assertTrue(all(event["frames"][0]["name"] for event in events))

    @unittest.skipUnless(os.path.exists(TENSORBOARD), "tools/setup.sh could not install tensorboard from PyPI")
    def test_tensorboard_reads_its_events(self):
        self.succeed("tessera-run", *self.flags, "--steps", 3, "--tensorboard", "--checkpoint-every", 3)
        self.succeed("tessera-run", *self.flags, "--steps", 5, "--tensorboard", "--resume", "run")
        read = subprocess.run([TENSORBOARD, "-c", READ_EVENTS, self.path("run", "tensorboard")], capture_output=True,
                              text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        scalars = json.loads(read.stdout)
        self.assertIn("time/exposed_communication_seconds", scalars)
        got = scalars["train/loss"]
        want = [(record["step"], record["loss"]) for record in self.metrics("run")]
        self.assertEqual([step for step, _ in got], [1, 2, 3, 4, 5])
        for (_, value), (_, loss) in zip(got, want):
            self.assertAlmostEqual(value, loss, places=5)
