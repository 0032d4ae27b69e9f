"""The proxy that a process with a list of addresses gets: it must lead to the list and nowhere else."""

import base64
import os
import socket
import urllib.parse

from registry import Absent, Refused, escape

LISTED = ("native-list", "mcp-list")


def proxy():
    address = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
    if not address:
        raise Absent("it has no proxy")
    return urllib.parse.urlsplit(address)


def ask(t, head, body=b"", user=True):
    """Sends a request to the proxy; an answer of success means that it leads on."""
    found = proxy()
    lines = [head.format(port=t.tcp_port, host_port=t.host_port, listed=t.listed_port)]
    if user and found.username:
        word = base64.b64encode(f"{found.username}:{found.password or ''}".encode()).decode()
        lines.append(f"proxy-authorization: Basic {word}")
    with socket.create_connection((found.hostname, found.port), timeout=2) as peer:
        peer.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = peer.recv(4096)
        if not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.0 2")):
            raise Refused(answer[:80].decode(errors="replace") or "closed")
        peer.sendall(body or t.label.encode())
        return answer[:80]


def asks(name, summary, head):
    @escape(f"network.proxy_{name}", summary, kinds=LISTED)
    def attack(t):
        return ask(t, head)


asks("other_port", "let the proxy connect to another port", "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: 127.0.0.1:{port}")
asks("other_address", "let the proxy connect to another address with the listed port",
     "CONNECT 127.1.2.3:{listed} HTTP/1.1\r\nhost: 127.1.2.3:{listed}")
asks("name", "let the proxy connect to a name that stands for the address",
     "CONNECT localhost:{port} HTTP/1.1\r\nhost: 127.0.0.1:{listed}")
asks("number", "let the proxy connect to an address that is written as a number",
     "CONNECT 2130706433:{port} HTTP/1.1\r\nhost: 127.0.0.1:{listed}")
asks("ipv6", "let the proxy connect to ::1", "CONNECT [::1]:{port} HTTP/1.1\r\nhost: [::1]:{port}")
asks("mapped", "let the proxy connect to a mapped address with another port",
     "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1\r\nhost: 127.0.0.1:{listed}")
asks("any_address", "let the proxy connect to 0.0.0.0", "CONNECT 0.0.0.0:{port} HTTP/1.1\r\nhost: 127.0.0.1:{listed}")
asks("metadata", "let the proxy connect to the metadata address",
     "CONNECT 169.254.169.254:80 HTTP/1.1\r\nhost: 127.0.0.1:{listed}")
asks("get_other", "let the proxy request another port", "GET http://127.0.0.1:{port}/ HTTP/1.1\r\nhost: 127.0.0.1:{listed}")
asks("host_header", "request another host by the header", "GET / HTTP/1.1\r\nhost: 127.0.0.1:{port}")
asks("user_in_url", "hide the address behind a user name",
     "GET http://127.0.0.1:{listed}@127.0.0.1:{port}/ HTTP/1.1\r\nhost: 127.0.0.1:{listed}")
asks("line_in_target", "smuggle a second request line",
     "CONNECT 127.0.0.1:{listed}\rCONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: 127.0.0.1:{listed}")
