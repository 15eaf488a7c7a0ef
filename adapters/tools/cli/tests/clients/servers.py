"""A plugin of pytest: kazoo's own tests, at given servers in place of the Java servers that kazoo would start.

It starts and ends the servers itself, as the tests ask for it. Its surroundings say what and where:

    QUORATE_SERVERS  the servers in the order of ids, in JSON: of each the command, the log, and the clients' address.
                     The last leads at first
    QUORATE_VERDICTS the file for what became of each test: one line, its outcome and its name
"""
import ctypes
import json
import os
import signal
import socket
import subprocess
import time

import kazoo.testing.harness as harness

PATIENCE = 30


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def end_with_parent():
    """Called in a new process: it ends with this program, however that ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One server, as kazoo's tests handle those of their own."""

    def __init__(self, command, log, address):
        self.command, self.log = command, log
        self.address = self.secure_address = address
        self.client_port = int(address.rsplit(":", 1)[1])
        self.process = None

    @property
    def running(self):
        return self.process is not None

    def run(self):
        if self.process is None:
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_parent
                )

    def stop(self):
        process, self.process = self.process, None
        if process is not None:
            process.terminate()
            process.wait(PATIENCE)

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
        # Of two equal histories that of the larger id leads, and the third follows.
        for some in (self[::2], self):
            for server in some:
                server.run()
            end = time.monotonic() + PATIENCE
            while not all(server.serves() for server in some):
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


CLUSTER = Cluster(Server(**server) for server in json.loads(os.environ["QUORATE_SERVERS"]))
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
