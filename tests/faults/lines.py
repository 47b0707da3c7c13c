"""What gets through lines and between nodes in each state (test_network.py starts this in a namespace of its own).

Datagrams say it: one goes from the first end to the second (`request`), and its answer back (`both`).
"""

import subprocess
import sys
from collections.abc import Sequence

from tests.faults.network import SENTINEL_HOST, EdgeNetwork, NodeNetwork, join_nodes, open_run

_PORT = 7777
_LIMIT = 0.4
_ANSWER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", int(sys.argv[1])))
print("bound", flush=True)
s.settimeout(float(sys.argv[2]))
try:
    _, sender = s.recvfrom(1)
    print("request")
    s.sendto(b"!", sender)
except OSError:
    pass
"""
_ASK = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(float(sys.argv[3]))
try:
    s.sendto(b"?", (sys.argv[1], int(sys.argv[2])))
    s.recv(1)
    print("both")
except OSError:
    pass
"""
_HERE: tuple[str, ...] = ()


def what_passes(asking: Sequence[str], answering: Sequence[str], host: str) -> str:
    python = (sys.executable, "-c")
    server = subprocess.Popen(
        [*answering, *python, _ANSWER, str(_PORT), str(2 * _LIMIT)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    server.stdout.readline()
    client = subprocess.run(
        [*asking, *python, _ASK, host, str(_PORT), str(_LIMIT)], stdout=subprocess.PIPE, text=True, check=True
    )
    request, _ = server.communicate()
    return client.stdout.strip() or request.strip() or "nothing"


def main() -> None:
    open_run()
    edge, other = EdgeNetwork(0), EdgeNetwork(1)
    nodes = [NodeNetwork(0), NodeNetwork(1)]

    def edge_to_node() -> str:
        return what_passes(edge.inside, nodes[0].inside, nodes[0].address)

    def node_to_node() -> str:
        return what_passes(nodes[0].inside, nodes[1].inside, nodes[1].address)

    def sentinel_to_node() -> str:
        return what_passes(_HERE, nodes[0].inside, nodes[0].address)

    print(f"whole:{edge_to_node()}")
    edge.redis.lose("in")
    print(f"in:{edge_to_node()}")
    edge.redis.lose("out")
    print(f"out:{edge_to_node()}")
    edge.redis.mend()
    print(f"mended:{edge_to_node()}")
    edge.redis.slow()
    print(f"slow:{edge_to_node()}")
    edge.redis.mend()
    print(f"nodes:{node_to_node()},{sentinel_to_node()}")
    nodes[0].part(nodes[1:])
    print(f"apart:{node_to_node()},{sentinel_to_node()},{edge_to_node()}")
    join_nodes()
    nodes[0].part(nodes[1:], sentinel=True)
    print(f"exiled:{node_to_node()},{sentinel_to_node()},{edge_to_node()}")
    print(f"to-sentinel:{what_passes(nodes[0].inside, _HERE, SENTINEL_HOST)}")
    join_nodes()
    print(f"joined:{node_to_node()},{sentinel_to_node()},{what_passes(nodes[0].inside, _HERE, SENTINEL_HOST)}")
    for network in (edge, other, *nodes):
        network.close()


if __name__ == "__main__":
    main()
