#!/usr/bin/python3 -B
"""The client for Go (`go.go`), as old as ZooKeeper 3.4, at ensembles of both kinds, each kind leading.

    go.py QUORATE   QUORATE is the command

Needs Debian's golang-go, golang-github-samuel-go-zookeeper-dev and zookeeper. Of each mix the last server leads; it is killed
when the client says so, and started again. It ends with 0 if the client was content each time.
"""
import os
import subprocess
import sys
import tempfile

import ensemble

HERE = os.path.dirname(os.path.abspath(__file__))
# q: ours, j: Java's. Each mix under a leader of either kind.
MIXES = ("qqj", "jqq", "jjq", "qjj")


def judged(judge, directory, mix):
    """Whether the client is content with servers of these kinds."""
    java = [own for own, kind in enumerate(mix, 1) if kind == "j"]
    settings = "tickTime=1000\ninitLimit=10\nsyncLimit=5\nmaxClientCnxns=0"
    with ensemble.Ensemble(3, settings, directory, java) as servers:
        leader = servers.led()
        if leader.id != 3:
            raise RuntimeError(f"{mix}: server {leader.id} leads")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        client = subprocess.Popen([judge, servers.hosts], text=True, **pipes)
        said = []
        for line in client.stdout:
            said.append(line.strip())
            if said[-1] == "restart now":
                leader.kill()
                servers.led()
                leader.start()
                client.stdin.write("\n")
                client.stdin.flush()
        client.wait()
        servers.led()
        content = client.returncode == 0 and said[-1:] == ["done"]
        print(f"{mix}, {'Java' if leader.java else 'ours'} led: {'done' if content else said}", flush=True)
        return content


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.environ["QUORATE"] = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        judge = os.path.join(directory, "judge")
        around = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": os.path.join(directory, "go")}
        subprocess.run(["go", "build", "-o", judge, os.path.join(HERE, "go.go")], env=around, check=True)
        content = []
        for mix in MIXES:
            place = os.path.join(directory, mix)
            os.mkdir(place)
            content.append(judged(judge, place, mix))
    return 0 if all(content) else 1


if __name__ == "__main__":
    sys.exit(main())
