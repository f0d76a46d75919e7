"""Several hosts, as network namespaces with a link between them: the same bits as threads of one process."""

import os
import shutil
import subprocess
import unittest

from launchers import HAS_MPI, MPI_ENVIRONMENT
from test_launch import LaunchTest


class Hosts(LaunchTest):
    """Two namespaces, made by the test; skipped where the machine does not allow them."""

    def setUp(self):
        super().setUp()
        if not shutil.which("ip") or os.geteuid() != 0:
            self.skipTest("network namespaces need the tool 'ip' and root")
        self.hosts = [f"tsr{os.getpid()}{name}" for name in "ab"]
        self.addresses = ["10.211.77.1", "10.211.77.2"]
        links = [f"t{os.getpid()}{name}" for name in "ab"]
        for host in self.hosts:
            self.addCleanup(self.ip, "netns", "delete", host, check=False)
            if self.ip("netns", "add", host, check=False):
                self.skipTest("this machine does not allow network namespaces")
        if self.ip("link", "add", links[0], "type", "veth", "peer", "name", links[1], check=False):
            self.skipTest("this machine does not allow virtual links")
        for host, link, address in zip(self.hosts, links, self.addresses):
            self.ip("link", "set", link, "netns", host)
            self.ip("-n", host, "address", "add", address + "/24", "dev", link)
            self.ip("-n", host, "link", "set", link, "up")
            self.ip("-n", host, "link", "set", "lo", "up")
        self.compile("a", "--mesh", "replicate=2,shard=2", "--strategy", "zero3")
        self.finish(self.start(self.command("a", "threads", 4)))

    def ip(self, *arguments, check=True):
        done = subprocess.run(["ip", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if check:
            self.assertEqual(done.returncode, 0, done.stdout)
        return done.returncode

    def assert_same(self, run):
        self.assert_same_files("threads", run, ["model.safetensors"])

    def test_torchrun_environment(self):
        runs = [self.start(["ip", "netns", "exec", self.hosts[rank // 2], *self.command("a", "tcp", 4)],
                           {"RANK": str(rank), "WORLD_SIZE": "4", "MASTER_ADDR": self.addresses[0], "MASTER_PORT": "29500"})
                for rank in range(4)]
        for run in runs:
            self.finish(run)
        self.assert_same("tcp")

    def test_a_host_that_is_gone_is_noticed(self):
        command = self.command("a", "gone", 1000000, "--stall-timeout", 3, "--log-every", 0)
        runs = [self.start(["ip", "netns", "exec", self.hosts[rank // 2], *command],
                           {"RANK": str(rank), "WORLD_SIZE": "4", "MASTER_ADDR": self.addresses[0], "MASTER_PORT": "29500"})
                for rank in range(4)]
        self.wait_for_steps("gone", 3)
        self.ip("-n", self.hosts[1], "link", "set", f"t{os.getpid()}b", "down")
        for rank in (0, 1):
            output = self.finish(runs[rank], status=1, timeout=60)
            self.assertRegex(output, rf"error: rank {rank}: stalled: ranks? [23](, 3)? did not reach .*nothing was heard of rank [23]")

    @unittest.skipUnless(HAS_MPI, "MPI is not installed, or tessera was built without it")
    def test_mpirun(self):
        # In place of ssh: a shell in the other namespace, under another host name.
        agent = self.path("agent.sh")
        with open(agent, "w") as file:
            file.write(f'#!/bin/sh\nshift\nexec ip netns exec {self.hosts[1]} unshare --uts sh -c "hostname second; $*"\n')
        os.chmod(agent, 0o755)
        environment = {**MPI_ENVIRONMENT, "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "10.211.77.0/24",
                       "OMPI_MCA_oob_tcp_if_include": "10.211.77.0/24", "OMPI_MCA_plm_rsh_agent": agent,
                       "OMPI_MCA_hwloc_base_binding_policy": "none"}
        hosts = ",".join(address + ":2" for address in self.addresses)
        run = self.start(["ip", "netns", "exec", self.hosts[0], "unshare", "--uts", "sh", "-c", 'hostname first; exec "$@"',
                          "sh", "mpirun", "-n", "4", "--host", hosts, *self.command("a", "mpi", 4)], environment)
        self.finish(run, timeout=120)
        self.assert_same("mpi")
