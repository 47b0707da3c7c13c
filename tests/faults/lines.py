"""What gets through a line in each of its states (test_network.py starts this in a namespace of its own).

Datagrams say it: one goes from the edge to the run (`request`), and its answer back (`both`).
"""

import socket
import subprocess
import sys

from tests.faults.network import REDIS_HOST, EdgeNetwork, open_run

_PORT = 7777
_LIMIT = 0.4
_ASK = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout({_LIMIT * 2})
s.sendto(b"?", ("{REDIS_HOST}", {_PORT}))
print("sent", flush=True)
try:
    s.recv(1)
    print("answered")
except TimeoutError:
    pass
"""


def what_passes(network: EdgeNetwork, server: socket.socket) -> str:
    asking = subprocess.Popen([*network.inside, sys.executable, "-c", _ASK], stdout=subprocess.PIPE)
    assert asking.stdout is not None
    asking.stdout.readline()
    try:
        _, sender = server.recvfrom(1)
        server.sendto(b"!", sender)
        request = True
    except TimeoutError:
        request = False
    answered = bool(asking.communicate()[0])
    return "both" if answered else "request" if request else "nothing"


def main() -> None:
    open_run()
    network = EdgeNetwork(0)
    other = EdgeNetwork(1)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((REDIS_HOST, _PORT))
    server.settimeout(_LIMIT)
    line = network.redis
    print(f"whole:{what_passes(network, server)}")
    line.lose("in")
    print(f"in:{what_passes(network, server)}")
    line.lose("out")
    print(f"out:{what_passes(network, server)}")
    line.mend()
    print(f"mended:{what_passes(network, server)}")
    line.slow()
    print(f"slow:{what_passes(network, server)}")
    network.close()
    other.close()


if __name__ == "__main__":
    main()
