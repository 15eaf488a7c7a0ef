"""Servers of an ensemble for the judges beside this file: quorate's, or Apache ZooKeeper's to compare with.

An import, and a stand-in for the `java` that tests of Rust clients start: `ensemble.py -jar ANYTHING N` starts N servers,
prints their addresses with commas, and is told by single letters: `k` kills the next server, `q` ends all. Its surroundings:

    QUORATE       the command; without it Debian's ZooKeeper is started
    QUORATE_LOGS  where the directories of the servers are made, and stay; a temporary one that goes if not given
"""
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

JARS = [
    f"/usr/share/java/{name}.jar"
    for name in ("zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-all", "metrics-core", "snappy-java")
]
JAVA = ["/usr/bin/java", "-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dzookeeper.admin.enableServer=false"]
JAVA += ["-Dzookeeper.4lw.commands.whitelist=*", "-Dzookeeper.extendedTypesEnabled=true", "-cp", ":".join(JARS)]
JAVA += ["org.apache.zookeeper.server.quorum.QuorumPeerMain"]
PATIENCE = 60


def command(java=False):
    """What starts one server when the file of its settings is put behind it."""
    quorate = os.environ.get("QUORATE")
    return [quorate, "serve"] if quorate and not java else JAVA


def free_port():
    """A port of the loopback that nobody uses and that the system gives to no one who connects."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Server:
    """One of them."""

    def __init__(self, directory, own, members, port, settings, java=False):
        self.id, self.port, self.process, self.java = own, port, None, java
        self.cfg, self.log = os.path.join(directory, f"{own}.cfg"), os.path.join(directory, f"{own}.log")
        data = os.path.join(directory, str(own))
        os.mkdir(data)
        with open(os.path.join(data, "myid"), "w", encoding="utf-8") as file:
            file.write(f"{own}\n")
        with open(self.cfg, "w", encoding="utf-8") as file:
            file.write(f"dataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\n{settings}\n{members}\n")

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command(self.java) + [self.cfg], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        """SIGKILL, if it runs."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def replace(self, java):
        """Ends it in order, and starts one of the other kind, or of the same, in its directory."""
        self.process.terminate()
        self.process.wait()
        self.java = java
        self.start()

    def mode(self):
        """leader or follower; none while it serves no one."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(b"srvr")
                said = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        except OSError:
            return None
        return next((line[6:] for line in said.splitlines() if line.startswith("Mode: ")), None)


class Ensemble(list):
    """All of them; they end with the block that it is used in. `java`: the ids of those that are Java's."""

    def __init__(self, count, settings, directory, java=()):
        ports = [(free_port(), free_port()) for _ in range(count)]
        members = "\n".join(f"server.{own}=127.0.0.1:{q}:{e}:participant" for own, (q, e) in enumerate(ports, 1))
        super().__init__(
            Server(directory, own, members, free_port(), settings, own in java) for own in range(1, count + 1)
        )

    @property
    def hosts(self):
        return ",".join(server.address for server in self)

    def __enter__(self):
        try:
            # Of equal histories that of the larger id wins: the last leads, with those that elect it.
            rest = (len(self) - 1) // 2
            for some in (self[rest:], self[:rest]):
                for server in some:
                    server.start()
                self.led()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in self:
            server.kill()

    def led(self):
        """Waits until all that run serve; the leader."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            running = [server for server in self if server.process is not None]
            modes = [server.mode() for server in running]
            for mode in ("leader", "standalone"):
                if all(modes) and mode in modes:
                    return running[modes.index(mode)]
            time.sleep(0.05)
        raise RuntimeError(f"the servers do not serve, as {[server.log for server in self]} say")


def stand_in(count):
    """As the tests' own cluster of Curator does it."""
    settings = "tickTime=2000\ninitLimit=10\nsyncLimit=5\nextendedTypesEnabled=true\nmaxClientCnxns=0"
    directory = tempfile.TemporaryDirectory()
    kept = os.environ.get("QUORATE_LOGS")
    place = tempfile.mkdtemp(dir=kept) if kept else directory.name
    with directory, Ensemble(count, settings, place) as servers:
        print(servers.hosts, flush=True)
        alive = list(servers)
        while (told := sys.stdin.read(1)) not in ("", "q"):
            if told == "k":
                alive.pop(0).kill()


if __name__ == "__main__":
    stand_in(int(sys.argv[-1]))
