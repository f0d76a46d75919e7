"""tools/slurm/train.sbatch on a real Slurm: what ends a job, and whether it goes on. Run by run.sh, since each takes up to two minutes."""

import glob
import json
import os
import shutil
import sys
import tempfile
import unittest

import cluster

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "end_to_end"))
from harness import BIN, ROOT, Golden, ToolTest  # noqa: E402

SCRIPT = os.environ.get("TESSERA_SLURM_SCRIPT", os.path.join(ROOT, "tools", "slurm", "train.sbatch"))
WITHOUT_END = 10 ** 9


@unittest.skipUnless(os.environ.get("TESSERA_TEST_SLURM"), "minutes long: TESSERA_TEST_SLURM=1, or tests/slurm/run.sh")
class SlurmTest(ToolTest):
    """Two nodes, one rank on each; every job has both nodes to itself."""

    @classmethod
    def setUpClass(cls):
        lacks = cluster.missing()
        if lacks:
            raise RuntimeError(lacks)
        cls.home = tempfile.mkdtemp(prefix="tessera-slurm-")
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        cls.slurm = cluster.Cluster(os.path.join(cls.home, "cluster"))
        cls.addClassCleanup(cls.slurm.close)

    def setUp(self):
        super().setUp()
        golden = Golden("gpt")
        self.data = golden.data
        self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "-o", "a.tessera")
        self.jobs = []
        self.addCleanup(self.cancel_jobs)

    def cancel_jobs(self):
        for job in self.jobs:
            self.slurm.command("scancel", job)
        for job in self.jobs:
            cluster.wait_until(lambda job=job: self.slurm.job(job)["JobState"] in ("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "PREEMPTED"),
                               60, lambda: "jobs do not end")
        cluster.wait_until(lambda: all(self.slurm.node_state(node).startswith("IDLE") for node in cluster.NODES), 90, self.slurm.logs)

    def submit(self, *flags, script=(), wrap=""):
        words = ["--parsable", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1", "--exclusive", *flags]
        words += ["--output=" + self.path("%j.log"), *([f"--wrap={wrap}"] if wrap else script)]
        environment = {"PATH": BIN + ":" + os.environ["PATH"], "OMPI_MCA_btl": "self,tcp", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        job = self.slurm.command("sbatch", *words, **environment).strip()
        self.jobs.append(job)
        return job

    def train(self, *flags, steps=WITHOUT_END, data=None):
        return self.submit(*flags, script=[SCRIPT, self.path("a.tessera"), "--data", data or self.data, "--out", self.path("out"),
                                           "--steps", str(steps), "--weights", "fresh", "--log-every", "0"])

    def steps_done(self):
        try:
            with open(self.path("out", "metrics.jsonl")) as file:
                return [record["step"] for record in map(json.loads, filter(lambda line: line.endswith("\n"), file)) if "loss" in record]
        except OSError:
            return []

    def log(self, job):
        with open(self.path(f"{job}.log"), errors="replace") as file:
            return file.read()

    def describe(self, job):
        return f"{self.slurm.job(job)}\n{self.log(job)}\n{self.slurm.logs()}"

    def wait_for_steps(self, job, least=1, seconds=90):
        cluster.wait_until(lambda: self.steps_done() and self.steps_done()[-1] >= least, seconds,
                           lambda: f"no step {least}: {self.describe(job)}")

    def assert_goes_on(self, job, restarts="1", seconds=150):
        """The job runs anew, and from where it was: no step is done twice."""
        before = self.steps_done()[-1]
        cluster.wait_until(lambda: self.slurm.job(job)["Restarts"] == restarts and self.slurm.job(job)["JobState"] == "RUNNING",
                           seconds, lambda: f"does not go on: {self.describe(job)}")
        self.wait_for_steps(job, before + 2)
        return before

    def assert_no_step_twice(self):
        steps = self.steps_done()
        self.assertEqual(steps, list(range(1, len(steps) + 1)))

    def assert_stays_ended(self, job, **wanted):
        self.slurm.wait_for(job, **wanted)
        self.assertEqual(self.slurm.job(job)["Restarts"], "0", self.describe(job))
        self.assertTrue(glob.glob(self.path("out", "checkpoints", "ckpt-*", "manifest.json")), self.describe(job))

    def test_signal_ahead_of_the_time_limit(self):
        job = self.train("--time=1", "--signal=USR1@20")
        self.wait_for_steps(job)
        self.assert_goes_on(job)
        self.assert_no_step_twice()

    def test_signal_by_hand(self):
        job = self.train()
        self.wait_for_steps(job)
        self.slurm.command("scancel", "--signal=USR1", job)
        self.assert_goes_on(job)
        self.assert_no_step_twice()

    def test_preemption(self):
        for partition in ("low", "cancelled"):
            with self.subTest(partition):
                shutil.rmtree(self.path("out"), ignore_errors=True)
                job = self.train("--partition=" + partition)
                self.wait_for_steps(job)
                urgent = self.submit("--partition=high", wrap="srun sleep 3")
                self.slurm.wait_for(urgent, JobState="COMPLETED", seconds=90)
                self.assert_goes_on(job)
                self.assert_no_step_twice()
                self.cancel_jobs()

    def test_scancel(self):
        job = self.train()
        self.wait_for_steps(job)
        self.slurm.command("scancel", job)
        self.assert_stays_ended(job, JobState="CANCELLED")

    def test_scancel_after_a_signal(self):
        job = self.train()
        self.wait_for_steps(job)
        self.slurm.command("scancel", "--signal=USR1", job)
        self.slurm.command("scancel", job)
        self.assert_stays_ended(job, JobState="CANCELLED")

    def test_termination_by_hand(self):
        job = self.train()
        self.wait_for_steps(job)
        self.slurm.command("scancel", "--signal=TERM", job)
        self.assert_stays_ended(job, JobState="FAILED", ExitCode="143:0")

    def test_time_limit_without_a_signal(self):
        job = self.train("--time=1", "--signal=CONT@1")
        self.wait_for_steps(job)
        self.assert_goes_on(job)
        self.assert_no_step_twice()

    def test_a_node_is_killed(self):
        for node in cluster.NODES:  # the first runs the script
            with self.subTest(node):
                shutil.rmtree(self.path("out"), ignore_errors=True)
                job = self.train()
                self.wait_for_steps(job, 600)  # behind the first checkpoint
                self.slurm.kill_node(node)
                self.slurm.command("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=drill")
                self.slurm.wait_for(job, JobState="PENDING")
                self.slurm.start_node(node)
                self.slurm.command("scontrol", "update", f"NodeName={node}", "State=RESUME")
                self.assert_goes_on(job)
                self.cancel_jobs()

    def test_end_and_error(self):
        job = self.train(steps=5)
        self.slurm.wait_for(job, JobState="COMPLETED")
        self.assertEqual(self.steps_done(), [1, 2, 3, 4, 5])
        job = self.train(data=self.path("none.safetensors"))
        self.slurm.wait_for(job, JobState="FAILED", ExitCode="1:0")
        self.assertEqual(self.slurm.job(job)["Restarts"], "0")


if __name__ == "__main__":
    unittest.main()
