#!/usr/bin/python3 -B
"""Patroni with PostgreSQL as a judge: three members keep one primary, by three servers of quorate.

    patroni.py QUORATE [--rounds N] [--keep]   QUORATE is the command
    patroni.py --java                          the same at Apache ZooKeeper, to compare
    patroni.py QUORATE --replace               its servers are replaced, Apache ZooKeeper's by ours and back, one at a time

Needs Debian's patroni, postgresql, python3-kazoo and python3-psycopg2, and as root the user `postgres`. All is on the loopback
and below a temporary directory. A primary is killed (Patroni and PostgreSQL, SIGKILL), or its Patroni is frozen (SIGSTOP) until
another member took over and then thawed; a server is killed a second later each time, once one that follows and once the one
that leads. A frozen Patroni can't demote its PostgreSQL: that needs a watchdog, wherever Patroni runs. So each member has one:
Patroni's own stand-in for the device is a pipe, and this program resets PostgreSQL as the machine would when the pipe is silent.

A witness asks all three members every 100 ms whether they are primaries. At no time may two of them say so, each time there must
be another one within a bound, and when only a server is killed the primary must stay. It ends with 0 if all of that was seen.
"""
import argparse
import itertools
import json
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import psutil
import psycopg2

import ensemble

TICK, TTL, LOOP, RETRY, MARGIN = 1, 20, 2, 5, 5
# A session that a server held has its full time-out from when that one was killed. Its end is found at a tick, Patroni looks
# every LOOP seconds, and PostgreSQL has its time to promote itself.
PROMOTION = 10
BOUND = TTL + 2 * TICK + 2 * LOOP + PROMOTION
# In this time a primary would have been demoted if ZooKeeper had failed it for so long as Patroni endures.
STAYS = RETRY + 3 * LOOP + 4
PATIENCE = 120
EVERY = 0.1
POSTGRES = "/usr/lib/postgresql/15/bin"


class Member:
    """One Patroni with its PostgreSQL, and the watchdog of their machine."""

    def __init__(self, number, directory, hosts, user):
        self.name, self.user = f"member{number}", user
        self.home = os.path.join(directory, self.name)
        os.mkdir(self.home)
        self.data, self.port = os.path.join(self.home, "data"), ensemble.free_port()
        self.fifo, self.cfg = os.path.join(self.home, "watchdog"), os.path.join(self.home, "patroni.yml")
        os.mkfifo(self.fifo)
        with open(self.cfg, "w", encoding="utf-8") as file:
            json.dump(self.settings(hosts), file)
        if user:
            for path in (self.home, self.fifo, self.cfg):
                shutil.chown(path, user, user)
        self.patroni, self.resets = None, []
        threading.Thread(target=self.watch, daemon=True).start()

    def settings(self, hosts):
        rest = f"127.0.0.1:{ensemble.free_port()}"
        address = f"127.0.0.1:{self.port}"
        parameters = {"unix_socket_directories": self.home, "shared_buffers": "16MB", "max_connections": 30, "fsync": "off"}
        dcs = {"ttl": TTL, "loop_wait": LOOP, "retry_timeout": RETRY, "postgresql": {"use_pg_rewind": True}}
        return {
            "scope": "judged",
            "name": self.name,
            "restapi": {"listen": rest, "connect_address": rest},
            "zookeeper": {"hosts": hosts.split(",")},
            "bootstrap": {"dcs": dcs, "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"]},
            "postgresql": {
                "listen": address,
                "connect_address": address,
                "data_dir": self.data,
                "bin_dir": POSTGRES,
                "pgpass": os.path.join(self.home, "pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres", "password": "judged"},
                    "replication": {"username": "replicator", "password": "judged"},
                },
                "parameters": parameters,
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
            },
            "watchdog": {"mode": "required", "driver": "testing", "device": self.fifo, "safety_margin": MARGIN},
        }

    def start(self):
        user = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
        with open(os.path.join(self.home, "log"), "ab") as log:
            self.patroni = subprocess.Popen(
                ["/usr/bin/patroni", self.cfg],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                env={"PATH": f"{POSTGRES}:/usr/bin:/bin", "HOME": self.home, "LC_ALL": "C.UTF-8"},
                **user,
            )

    def kill_postgres(self):
        """SIGKILL for the postmaster and all that it started."""
        try:
            with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
                postmaster = psutil.Process(int(file.readline()))
            if self.data not in postmaster.cmdline():
                return
            for process in [postmaster, *postmaster.children(recursive=True)]:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    pass
        except (OSError, ValueError, psutil.NoSuchProcess):
            pass

    def kill(self):
        self.patroni.kill()
        self.patroni.wait()
        self.kill_postgres()

    def freeze(self):
        self.patroni.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.patroni.send_signal(signal.SIGCONT)

    def end(self):
        if self.patroni is not None and self.patroni.poll() is None:
            self.thaw()
            self.patroni.terminate()
            try:
                self.patroni.wait(20)
            except subprocess.TimeoutExpired:
                self.patroni.kill()
                self.patroni.wait()
        self.kill_postgres()

    def watch(self):
        """The watchdog: armed by a time-out, kept still by any other word, put off by a V."""
        # Opened for writing too, so that it never ends.
        pipe = os.open(self.fifo, os.O_RDWR)
        timeout, deadline = None, None
        while True:
            left = None if deadline is None else max(0, deadline - time.monotonic())
            ready, _, _ = select.select([pipe], [], [], left)
            if not ready:
                self.kill_postgres()
                self.resets.append(time.monotonic())
                deadline = None
                continue
            said = os.read(pipe, 4096)
            for line in said.split(b"\n"):
                if b"Ctimeout=" in line:
                    timeout = float(line.rpartition(b"=")[2])
            deadline = None if said.endswith(b"V") or timeout is None else time.monotonic() + timeout


class Witness:
    """Asks the members whether they are primaries, and keeps from when to when each said so."""

    def __init__(self, members):
        self.begun, self.asked, self.slowest = time.monotonic(), 0, 0.0
        self.spans = {member.name: [] for member in members}
        self.now = {member.name: None for member in members}
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(member,)) for member in members]
        for thread in self.threads:
            thread.start()

    def ask(self, member):
        connection, spans, due = None, self.spans[member.name], time.monotonic()
        while not self.ending.is_set():
            sent = time.monotonic()
            try:
                if connection is None:
                    connection = connect(member)
                    # What counts is the question, not the greeting.
                    sent = time.monotonic()
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_is_in_recovery()")
                    primary = not cursor.fetchone()[0]
                received = time.monotonic()
                self.slowest = max(self.slowest, received - sent)
            except psycopg2.Error:
                if connection is not None:
                    connection.close()
                connection, primary = None, None
            if primary and self.now[member.name]:
                spans[-1][1] = received
            elif primary:
                spans.append([sent, received])
            self.now[member.name] = primary
            self.asked += 1
            due = max(due + EVERY, time.monotonic())
            time.sleep(max(0, due - time.monotonic()))

    def end(self):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def two_at_once(self):
        """All pairs of spans of two members that have an instant in common, as members and seconds from the beginning."""
        spans = [(name, *span) for name, all_of in self.spans.items() for span in all_of]
        return [
            (one[0], other[0], max(one[1], other[1]) - self.begun, min(one[2], other[2]) - self.begun)
            for one, other in itertools.combinations(spans, 2)
            if one[0] != other[0] and max(one[1], other[1]) <= min(one[2], other[2])
        ]

    def gap(self, old, new):
        """For how long nobody said it between the last word of the old one and the first of the new one."""
        first = self.spans[new][-1][0]
        return first - max(end for _, end in self.spans[old] if end <= first)


def connect(member):
    where = {"host": "127.0.0.1", "port": member.port, "user": "postgres", "dbname": "postgres"}
    connection = psycopg2.connect(**where, connect_timeout=2, options="-c statement_timeout=1s")
    connection.autocommit = True
    return connection


def until(what, ask, patience=PATIENCE):
    """Waits for an answer; how long it took and the answer."""
    begun = time.monotonic()
    while not (answer := ask()):
        if time.monotonic() - begun > patience:
            raise RuntimeError(f"waited {patience} s for {what}")
        time.sleep(0.02)
    return time.monotonic() - begun, answer


class Judge:
    """The accidents, and what was seen of each."""

    def __init__(self, servers, members, witness):
        self.servers, self.witness, self.rows, self.faults = servers, witness, [], []
        self.members = {member.name: member for member in members}

    def primary(self, besides=None):
        return next((name for name, says in self.witness.now.items() if says and name != besides), None)

    def streamed(self):
        """Whether the primary has two replicas that stream."""
        primary = self.primary()
        if primary is None or sum(says is False for says in self.witness.now.values()) != len(self.members) - 1:
            return None
        try:
            connection = connect(self.members[primary])
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
                count = cursor.fetchone()[0]
            connection.close()
        except psycopg2.Error:
            return None
        return primary if count == len(self.members) - 1 else None

    def whole(self):
        """All servers serve, and one primary has two replicas."""
        self.servers.led()
        return until("a primary with two replicas", self.streamed)

    def server(self, leads):
        leader = self.servers.led()
        return leader if leads else next(server for server in self.servers if server is not leader)

    def note(self, *row):
        self.rows.append(row)
        print("  ".join(row), flush=True)

    def only_a_server(self, server, what):
        _, primary = self.whole()
        before = {name: len(spans) for name, spans in self.witness.spans.items()}
        server.kill()
        time.sleep(STAYS)
        after = {name: len(spans) for name, spans in self.witness.spans.items()}
        stays = before == after and self.primary() == primary
        if not stays:
            self.faults.append(f"{what} server {server.id} killed: {primary} did not stay the primary")
        server.start()
        self.note("none", f"{server.id}, {what}", f"{primary} stays" if stays else f"{primary} -> {self.primary()}", "", "", "")

    def replaced(self, server, java):
        """A server is ended in order, and one of the other kind takes its directory: the primary stays."""
        _, primary = self.whole()
        leads = "leading" if self.servers.led() is server else "following"
        before = {name: len(spans) for name, spans in self.witness.spans.items()}
        server.replace(java)
        took, _ = until("all servers", self.servers.led)
        time.sleep(STAYS)
        after = {name: len(spans) for name, spans in self.witness.spans.items()}
        stays = before == after and self.primary() == primary
        what = f"{server.id}, {leads}, by {'Java' if java else 'ours'}"
        if not stays:
            self.faults.append(f"{what}: {primary} did not stay the primary")
        self.note("none", what, f"{primary} stays" if stays else f"{primary} -> {self.primary()}", "", "", f"{took:.1f}")

    def replace_all(self, java):
        leader = self.servers.led()
        for server in [*(server for server in self.servers if server is not leader), leader]:
            self.replaced(server, java)

    def primary_lost(self, frozen, leads):
        _, old = self.whole()
        member, server = self.members[old], self.server(leads)
        resets = len(member.resets)
        (member.freeze if frozen else member.kill)()
        time.sleep(1)
        server.kill()
        what = f"{old} {'frozen' if frozen else 'killed'}"
        took, new = until(f"another primary, {what}", lambda: self.primary(besides=old))
        gap = self.witness.gap(old, new)
        if took > BOUND:
            self.faults.append(f"{what}: another primary after {took:.1f} s")
        if frozen and len(member.resets) == resets:
            self.faults.append(f"{what}: {new} is the primary and the watchdog of {old} has not bitten")
        server.start()
        member.thaw() if frozen else member.start()
        back, still = self.whole()
        if still != new:
            self.faults.append(f"{what}: {new} was the primary and then {still}")
        mode = "leading" if leads else "following"
        self.note(what, f"{server.id}, {mode}", f"{old} -> {new}", f"{took:.1f}", f"{gap:.1f}", f"{back:.1f}")


def judge(directory, rounds, replace):
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        pwd.getpwnam(user)
        os.chmod(directory, 0o755)
    settings = f"tickTime={TICK * 1000}\ninitLimit=10\nsyncLimit=5\nmaxClientCnxns=0"
    with ensemble.Ensemble(3, settings, directory, (1, 2, 3) if replace else ()) as servers:
        members = [Member(number, directory, servers.hosts, user) for number in (1, 2, 3)]
        witness = Witness(members)
        seen = Judge(servers, members, witness)
        try:
            for member in members:
                member.start()
            took, primary = seen.whole()
            print(f"{primary} is the primary and has two replicas after {took:.1f} s", flush=True)
            print(f"bound for another primary: {BOUND} s after a server was killed", flush=True)
            for _ in range(rounds if replace else 0):
                seen.replace_all(java=False)
                seen.replace_all(java=True)
            for _ in range(0 if replace else rounds):
                leader = servers.led()
                seen.only_a_server(leader, "leading")
                for other in [server for server in servers if server is not leader]:
                    servers.led()
                    seen.only_a_server(other, "one of the others")
                for frozen, leads in itertools.product((False, True), (False, True)):
                    seen.primary_lost(frozen, leads)
        except RuntimeError as error:
            seen.faults.append(str(error))
        finally:
            witness.end()
            for member in members:
                member.end()
    return seen, witness


def printed(rows):
    heads = ("primary's", "server killed", "primary", "another after s", "none for s", "whole after s")
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    for row in [heads, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("quorate", nargs="?")
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--replace", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the directory with the logs")
    given = parser.parse_args()
    if given.java == bool(given.quorate):
        parser.error("either QUORATE or --java")
    if given.java and given.replace:
        parser.error("--replace needs QUORATE")
    os.environ.pop("QUORATE", None)
    if given.quorate:
        os.environ["QUORATE"] = os.path.abspath(given.quorate)

    directory = tempfile.mkdtemp(prefix="judge-")
    seen, witness = judge(directory, given.rounds, given.replace)
    faults = seen.faults
    for one, other, begin, end in witness.two_at_once():
        faults.append(f"{one} and {other} were primaries at once, from {begin:.2f} s to {end:.2f} s")
    print()
    printed(seen.rows)
    print(f"the witness asked {witness.asked} times, the slowest answer came after {witness.slowest:.2f} s")
    for fault in faults:
        print(f"fault: {fault}")
    if given.keep or faults:
        print(f"the logs are in {directory}")
    else:
        shutil.rmtree(directory)
    print("not as it should be" if faults else "all as it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
