"""A plugin of pytest: kazoo's own tests, at servers of quorate in place of the Java servers that kazoo would start.

It starts and ends the servers itself, as the tests ask for it. Its surroundings say what and where:

    QUORATE          the command
    QUORATE_CFGS     the configuration files of the servers, with a colon between two
    QUORATE_HOSTS    the clients' addresses of the same servers, with a comma between two
    QUORATE_VERDICTS the file for what became of each test: one line, its outcome and its name
"""
import os
import socket
import subprocess
import time

import kazoo.testing.harness as harness

PATIENCE = 30


class Server:
    """One server, as kazoo's tests handle those of their own."""

    def __init__(self, cfg, address):
        self.cfg = cfg
        self.address = self.secure_address = address
        self.client_port = int(address.rsplit(":", 1)[1])
        self.process = None

    @property
    def running(self):
        return self.process is not None

    def run(self):
        if self.process is None:
            command = [os.environ["QUORATE"], "serve", "--until-stdin-ends", self.cfg]
            with open(self.cfg + ".log", "ab") as log:
                # It ends with this program, however that ends.
                self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def stop(self):
        process, self.process = self.process, None
        if process is not None:
            process.terminate()
            process.wait(PATIENCE)
            process.stdin.close()

    def serves(self):
        try:
            with socket.create_connection(("127.0.0.1", self.client_port), 5) as connection:
                connection.sendall(b"srvr")
                return b"Mode: " in b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return False


class Cluster(list):
    """All of them."""

    def start(self):
        for server in self:
            server.run()
        end = time.monotonic() + PATIENCE
        while not all(server.serves() for server in self):
            if time.monotonic() > end:
                raise RuntimeError("the servers do not serve")
            time.sleep(0.05)

    def stop(self):
        for server in self:
            server.stop()

    def terminate(self):
        """Called behind each class of tests. All that these leave is below a node of their own."""

    def get_logs(self):
        return []


CFGS = os.environ["QUORATE_CFGS"].split(":")
HOSTS = os.environ["QUORATE_HOSTS"].split(",")
CLUSTER = Cluster(Server(cfg, address) for cfg, address in zip(CFGS, HOSTS))
harness.get_global_cluster = lambda: CLUSTER


def pytest_sessionstart():
    CLUSTER.start()


def pytest_sessionfinish():
    CLUSTER.stop()


def pytest_runtest_logreport(report):
    # What is set up and torn down counts where it fails, or where a test is left out.
    if report.when == "call" or report.outcome != "passed":
        path, name = report.nodeid.split("::", 1)
        with open(os.environ["QUORATE_VERDICTS"], "a", encoding="utf-8") as verdicts:
            verdicts.write(f"{report.outcome} {os.path.basename(path)}::{name}\n")
