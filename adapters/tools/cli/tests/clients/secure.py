"""kazoo through TLS: `secure.py HOST CA CERT KEY PATH`; prints whose node it is, and what it reads there, or the error."""
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

host, authority, certificate, key, path = sys.argv[1:]
client = KazooClient(
    hosts=host, use_ssl=True, ca=authority, certfile=certificate, keyfile=key, timeout=10
)
try:
    client.start(timeout=10)
    acls, _ = client.get_acls(path)
    print("acl", ", ".join(f"{acl.id.scheme}:{acl.id.id}" for acl in acls))
    print("data", client.get(path)[0].decode())
except KazooException as error:
    print("error", type(error).__name__)
except Exception as error:
    print("no session", type(error).__name__)
finally:
    client.stop()
    client.close()
