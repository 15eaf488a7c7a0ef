#!/usr/bin/env python3
"""One ensemble of two versions: servers of an earlier commit beside servers of this tree, led by either.

    adapters/tools/cli/tests/versions.py [--commit 953d248] [--old BINARY] [--new BINARY]

Builds what is not given. In each direction, one version leads at first and the other follows:

  members   `quorate serve`: changes of the membership; a server that joins by SNAP; the leader killed with SIGKILL,
            so that the other version leads; the killed one back, by SNAP; another change, the leader killed again
  writes    `quorate demo-server`: writes through all servers while the leader is killed and comes back

Then every server serves, every log is sound and has every acknowledged transaction, and all hold the same.
Exit status 1, and the servers' files are kept, if not. By hand only: it builds another tree.
"""
import argparse, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time
from pathlib import Path

TREE = Path(__file__).resolve().parents[4]
PATIENCE = 60


def build(tree, target):
    run(["cargo", "build", "-q", "-p", "quorate", "--target-dir", target], cwd=tree)
    return target / "debug/quorate"


def run(command, **more):
    return subprocess.run([str(word) for word in command], check=True, text=True, **more)


def until(what, holds):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.05)
    raise SystemExit(f"FAILED: {what}: not within {PATIENCE} s")


def free_ports(count, given=set()):
    """Ports that nobody has, and that were not given before."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    if given & set(ports):
        return free_ports(count)
    given |= set(ports)
    return ports


class Server:
    """A server in one of its lives, or between two."""

    def __init__(self, ensemble, number, version):
        self.ensemble, self.id, (self.version, self.binary) = ensemble, number, version
        self.dir = ensemble.dir / str(number)
        self.cfg = self.dir / "zoo.cfg"
        self.client, *peers = free_ports(3)
        self.line = f"127.0.0.1:{peers[0]}:{peers[1]}:participant;127.0.0.1:{self.client}"
        self.process, self.done, self.caught_up = None, {}, 0
        self.dir.mkdir()

    def configure(self, others):
        (self.dir / "myid").write_text(f"{self.id}\n")
        servers = "".join(f"server.{s.id}={s.line}\n" for s in others)
        # Whoever has nothing gets a snapshot.
        self.cfg.write_text(
            f"tickTime=200\ninitLimit=50\nsyncLimit=25\ndataDir={self.dir}\nreconfigEnabled=true\n"
            f"commitLogCount=2\nsnapshotSizeFactor=-1\n4lw.commands.whitelist=*\n{servers}"
        )

    def start(self):
        log = open(self.dir / "log", "a")
        ends = ["--until-stdin-ends"] if self.ensemble.command == "serve" else []
        self.process = subprocess.Popen(
            [str(self.binary), self.ensemble.command, str(self.cfg), *ends],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
        )
        threading.Thread(target=self.listen, args=[self.process.stdout], daemon=True).start()

    def listen(self, lines):
        for line in lines:
            if line.startswith("done "):
                _, number, zxid = line.split()
                self.done[int(number)] = int(zxid)
            elif line.startswith("caught-up"):
                self.caught_up += 1
            elif line.startswith("{"):
                change = json.loads(line)
                if change.get("event") == "change":
                    self.state = change["state"] if change["serving"] else "LOOKING"

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
        except (BrokenPipeError, ValueError):
            pass

    def kill(self):
        print(f"    SIGKILL server {self.id} ({self.version})")
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process, self.state = None, "LOOKING"

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE)

    def ask(self, word):
        try:
            with socket.create_connection(("127.0.0.1", self.client), 2) as s:
                s.sendall(word.encode())
                return b"".join(iter(lambda: s.recv(65536), b"")).decode()
        except OSError:
            return ""

    state = "LOOKING"

    def is_there(self):
        election = int(self.line.split(":")[2])
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", election)) == 0

    def mode(self):
        if self.ensemble.command == "demo-server":
            return {"LEADING": "leader", "FOLLOWING": "follower"}.get(self.state)
        found = re.search(r"^Mode: (\w+)", self.ask("srvr"), re.M)
        return found and found[1]


class Ensemble:
    def __init__(self, name, command, versions):
        print(f"  {name}: " + ", ".join(f"{n} is {v[0]}" for n, v in versions.items()))
        self.command = command
        self.dir = Path(tempfile.mkdtemp(prefix=f"quorate-versions-{name}-"))
        self.servers = {n: Server(self, n, v) for n, v in versions.items()}
        self.acknowledged = set()

    def start(self, first, others):
        """The first is there before the others, so that it leads."""
        everybody = [first, *others]
        for server in everybody:
            server.configure(sorted(everybody, key=lambda s: s.id))
        first.start()
        until("the first", lambda: first.is_there())
        for server in others:
            server.start()

    def running(self):
        return [s for s in self.servers.values() if s.process]

    def led(self, among):
        """Waits until all that run serve; returns who leads."""

        def serve():
            modes = [(s, s.mode()) for s in self.running()]
            leaders = [s for s, mode in modes if mode == "leader"]
            if all(mode for _, mode in modes) and len(leaders) == 1:
                return leaders[0]

        leader = until(f"a leader in {self.dir}", serve)
        print(f"    server {leader.id} ({leader.version}) leads {sorted(s.id for s in self.running())}")
        if leader.version != among:
            raise SystemExit(f"FAILED: {among} should lead")
        return leader

    def reconfigure(self, at, *change):
        command = [at.binary, "reconfig", at.cfg, "--json", *change]
        answer = run(command, stdout=subprocess.PIPE).stdout
        version = int(re.findall(r"version=([0-9a-f]+)", answer)[-1], 16)
        print(f"    at {at.id} ({at.version}): {' '.join(change)}: version {version:x}")
        self.acknowledged.add(version)

    def check(self, reader):
        """Everything acknowledged is on every disk, and all hold the same."""
        for server in self.running():
            server.stop()
        held = {}
        for server in self.servers.values():
            if not (server.dir / "version-2").is_dir():
                continue
            run([reader, "log", "check", server.dir], stdout=subprocess.DEVNULL)
            logs = sorted((server.dir / "version-2").glob("log.*"), key=lambda p: int(p.suffix[1:], 16))
            records = {}
            for log in logs:
                dump = run([reader, "log", "dump", "--json", log], stdout=subprocess.PIPE).stdout
                for record in map(json.loads, dump.splitlines()):
                    if record["event"] == "record":
                        del record["offset"]
                        records[int(record["zxid"], 16)] = record
            labels = [int(p.suffix[1:], 16) for p in (server.dir / "version-2").glob("snapshot.*")]
            missing = {z for z in self.acknowledged - set(records) if z > max(labels, default=0)}
            if missing:
                raise SystemExit(f"FAILED: server {server.id} has lost {sorted(map(hex, missing))}, {self.dir}")
            held[server.id] = records
        for records in held.values():
            for other in held.values():
                if any(other.get(zxid, record) != record for zxid, record in records.items()):
                    raise SystemExit(f"FAILED: histories differ in {self.dir}")
        counts = {number: len(records) for number, records in held.items()}
        print(f"    {len(self.acknowledged)} acknowledged, none lost; records: {counts}")
        shutil.rmtree(self.dir)


def members(first, other, reader):
    ensemble = Ensemble("members", "serve", {1: other, 2: other, 3: first, 4: other})
    one, two, three, four = ensemble.servers.values()
    ensemble.start(three, [one, two])
    ensemble.led(first[0])
    for port in free_ports(4):
        ensemble.reconfigure(one, "--add", f"9=127.0.0.1:{port}:{port + 1}:observer")
    four.configure([one, two, three, four])
    four.start()
    ensemble.reconfigure(two, "--add", f"4={four.line}")
    ensemble.led(first[0])
    if not [p for p in (four.dir / "version-2").glob("snapshot.*") if p.suffix != ".0"]:
        raise SystemExit(f"FAILED: server 4 was not sent a snapshot, {ensemble.dir}")
    three.kill()
    ensemble.led(other[0])
    for port in free_ports(2):
        ensemble.reconfigure(two, "--add", f"9=127.0.0.1:{port}:{port + 1}:observer")
    three.start()
    leader = ensemble.led(other[0])
    ensemble.reconfigure(three, "--remove", "9")
    leader.kill()
    until("a leader", lambda: any(s.mode() == "leader" for s in ensemble.running()))
    leader.start()
    until("all serve", lambda: all(s.mode() for s in ensemble.running()))
    ensemble.reconfigure(three, "--add", "9=127.0.0.1:9:10:observer")
    lasts = lambda: {re.search(r"Zxid: (\w+)", s.ask("srvr")) and re.search(r"Zxid: (\w+)", s.ask("srvr"))[1]
                     for s in ensemble.running()}
    until("all are equally far", lambda: len(lasts()) == 1)
    ensemble.check(reader)


def writes(first, other, reader):
    ensemble = Ensemble("writes", "demo-server", {1: other, 2: other, 3: first})
    servers = list(ensemble.servers.values())
    ensemble.start(servers[2], servers[:2])
    leader = ensemble.led(first[0])
    numbers = iter(range(1_000_000))

    def write(count):
        for server in ensemble.running():
            for _ in range(count):
                server.say(f"write {next(numbers)} 100")

    done = lambda: sum(len(s.done) for s in servers)
    write(200)
    until("writes", lambda: done() > 100)
    write(200)
    leader.kill()
    ensemble.led(other[0])
    write(200)
    leader.start()
    until("all serve", lambda: all(s.mode() for s in servers))
    before = done()
    write(100)
    until("more writes", lambda: done() >= before + 300)
    for server in servers:
        server.say("catch-up")
    until("all have caught up", lambda: all(s.caught_up for s in servers))
    ensemble.acknowledged = {zxid for server in servers for zxid in server.done.values()}
    ensemble.check(reader)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--commit", default="953d248", help="the earlier version")
    words.add_argument("--old", type=Path, help="its binary, built already")
    words.add_argument("--new", type=Path, help="this tree's")
    words = words.parse_args()
    target = Path(os.environ.get("CARGO_TARGET_DIR", TREE / "target"))
    if not words.old:
        with tempfile.TemporaryDirectory(prefix="quorate-tree-") as tree:
            run(["git", "-C", TREE, "worktree", "add", "-q", "--detach", tree + "/t", words.commit])
            try:
                words.old = build(tree + "/t", target / "versions" / words.commit)
            finally:
                run(["git", "-C", TREE, "worktree", "remove", "--force", tree + "/t"])
    new = ("this tree", words.new or build(TREE, target))
    old = (words.commit, words.old)
    for first, other in ((old, new), (new, old)):
        print(f"{first[0]} leads, {other[0]} follows")
        members(first, other, new[1])
        writes(first, other, new[1])
    print("both directions hold")


if __name__ == "__main__":
    main()
