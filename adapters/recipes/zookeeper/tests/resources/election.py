"""kazoo's Election as a candidate: HOSTS ROOT NAME SESSION_MS SEAT. What it says and is told: see Other."""
import sys
import threading

from kazoo.client import KazooClient

hosts, root, name, session, seat = sys.argv[1:]
client = KazooClient(hosts=hosts, timeout=int(session) / 1000)
client.start()
election = client.Election(root, name)
enough = threading.Event()


def lead():
    client.create(seat, name.encode(), ephemeral=True)
    print("leads", flush=True)
    enough.wait()
    client.delete(seat)


def compete():
    try:
        election.run(lead)
    except Exception as error:
        print("failed:", repr(error), flush=True)


candidate = threading.Thread(target=compete)
candidate.start()
for _ in sys.stdin:
    print("leader", election.contenders()[0], flush=True)
enough.set()
election.cancel()
candidate.join()
client.stop()
