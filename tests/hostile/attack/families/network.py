"""The network. Listeners on loopback record the label they receive; everything else is a socket that opens or not."""

import ctypes
import errno
import fcntl
import os
import socket
import struct

from registry import NET_NAMESPACE, Absent, Refused, escape


def tcp(t, address, family=socket.AF_INET, protocol=0):
    with socket.socket(family, socket.SOCK_STREAM, protocol) as peer:
        peer.settimeout(2)
        peer.connect(address)
        peer.sendall(t.label.encode())
    return f"connected to {address}"


def udp(t, address, family=socket.AF_INET, protocol=0):
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as peer:
        peer.sendto(t.label.encode(), address)
    return f"sent to {address}"


@escape("network.tcp_loopback", "connect to a service on 127.0.0.1", proof="effect")
def tcp_loopback(t):
    return tcp(t, ("127.0.0.1", t.tcp_port))


@escape("network.tcp_listed", "connect to the service that the configuration lists", proof="effect")
def tcp_listed(t):
    return tcp(t, ("127.0.0.1", t.listed_port))


@escape("network.tcp_loopback_alias", "connect to a service on 127.1.2.3", proof="effect")
def tcp_loopback_alias(t):
    return tcp(t, ("127.1.2.3", t.tcp_port))


@escape("network.tcp_any_address", "connect to a service on 0.0.0.0", proof="effect")
def tcp_any_address(t):
    return tcp(t, ("0.0.0.0", t.tcp_port))


@escape("network.tcp_ipv6", "connect to a service on ::1", proof="effect")
def tcp_ipv6(t):
    return tcp(t, ("::1", t.tcp_port), socket.AF_INET6)


@escape("network.tcp_mapped", "connect to a service on ::ffff:127.0.0.1", proof="effect")
def tcp_mapped(t):
    return tcp(t, ("::ffff:127.0.0.1", t.tcp_port), socket.AF_INET6)


@escape("network.tcp_own_address", "connect to a service on the machine's own address", proof="effect")
def tcp_own_address(t):
    if not t.own_address:
        raise Absent("the machine has no other address")
    return tcp(t, (t.own_address, t.tcp_port))


@escape("network.mptcp", "connect by Multipath TCP", proof="effect")
def mptcp(t):
    return tcp(t, ("127.0.0.1", t.tcp_port), protocol=262)


@escape("network.fast_open", "connect by TCP fast open", proof="effect")
def fast_open(t):
    msg_fastopen = 0x20000000
    with socket.socket() as peer:
        peer.sendto(t.label.encode(), msg_fastopen, ("127.0.0.1", t.tcp_port))
        return peer.getpeername()


@escape("network.fast_open_connect", "connect by delayed TCP fast open", proof="effect")
def fast_open_connect(t):
    tcp_fastopen_connect = 30
    with socket.socket() as peer:
        peer.setsockopt(socket.IPPROTO_TCP, tcp_fastopen_connect, 1)
        peer.connect(("127.0.0.1", t.tcp_port))
        peer.sendall(t.label.encode())
        return peer.getpeername()


@escape("network.reconnect", "connect again after a disconnect by AF_UNSPEC", proof="effect")
def reconnect(t):
    with socket.socket() as peer:
        ctypes.CDLL(None).connect(peer.fileno(), struct.pack("H14x", 0), 16)
        peer.connect(("127.0.0.1", t.tcp_port))
        peer.sendall(t.label.encode())
        return peer.getpeername()


@escape("network.udp", "send a datagram to 127.0.0.1", proof="effect")
def udp_loopback(t):
    return udp(t, ("127.0.0.1", t.udp_port))


@escape("network.udp_connected", "send through a connected datagram socket", proof="effect")
def udp_connected(t):
    with socket.socket(type=socket.SOCK_DGRAM) as peer:
        peer.connect(("127.0.0.1", t.udp_port))
        peer.send(t.label.encode())
    return "sent"


@escape("network.udp_ipv6", "send a datagram to ::1", proof="effect")
def udp_ipv6(t):
    return udp(t, ("::1", t.udp_port), socket.AF_INET6)


@escape("network.udp_lite", "send by UDP-Lite", proof="effect")
def udp_lite(t):
    return udp(t, ("127.0.0.1", t.udp_port), protocol=136)


@escape("network.dns_query", "ask a name server on loopback", proof="effect")
def dns_query(t):
    with socket.socket(type=socket.SOCK_DGRAM) as peer:
        peer.sendto(t.label.encode() + b"\0.example.com", ("127.0.0.1", t.udp_port))
    return "asked"


@escape("network.listen", "accept connections from the machine", proof="effect", seconds=4)
def listen(t):
    with socket.create_server(("127.0.0.1", t.listen_port), reuse_port=False) as listener:
        listener.settimeout(1.5)
        peer, _ = listener.accept()
        peer.sendall(t.label.encode())
        return "accepted"


@escape("network.steal_host_port", "listen on the host's own port", proof="claim")
def steal_host_port(t):
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", t.host_port))
        if t.net_namespace != NET_NAMESPACE:
            raise Refused("its network is its own")
        return "bound"


@escape("network.metadata_service", "connect to the metadata address of cloud machines")
def metadata_service(t):
    with socket.socket() as peer:
        peer.setblocking(False)
        code = peer.connect_ex(("169.254.169.254", 80))
    if code in (errno.EACCES, errno.EPERM, errno.ENETUNREACH, errno.EHOSTUNREACH):
        raise OSError(code, os.strerror(code))
    return f"connect: {errno.errorcode.get(code, code)}"


@escape("network.internet", "connect to an address of the internet")
def internet(t):
    # An address for documentation (RFC 5737): no packet arrives anywhere.
    with socket.socket() as peer:
        peer.setblocking(False)
        code = peer.connect_ex(("192.0.2.1", 443))
    if code in (errno.EACCES, errno.EPERM, errno.ENETUNREACH, errno.EHOSTUNREACH):
        raise OSError(code, os.strerror(code))
    return f"connect: {errno.errorcode.get(code, code)}"


@escape("network.internet_udp", "send a datagram to an address of the internet")
def internet_udp(t):
    with socket.socket(type=socket.SOCK_DGRAM) as peer:
        return peer.sendto(b"x", ("192.0.2.1", 53))


@escape("network.host_port", "reach the host's own port")
def host_port(t):
    with socket.create_connection(("127.0.0.1", t.host_port), timeout=2) as peer:
        peer.sendall(b"GET /healthz HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n")
        answer = peer.recv(100)
    if not answer.startswith(b"HTTP/1"):
        raise Refused(f"no answer: {answer!r}")
    return answer


def opens(name, summary, *arguments):
    @escape(f"network.{name}", summary)
    def attack(t):
        with socket.socket(*arguments):
            return "opened"


RAW, DGRAM, STREAM, SEQPACKET = socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET
opens("raw", "open a raw socket", socket.AF_INET, RAW, socket.IPPROTO_TCP)
opens("raw_ipv6", "open a raw IPv6 socket", socket.AF_INET6, RAW, socket.IPPROTO_TCP)
opens("icmp", "open a socket for ICMP", socket.AF_INET, RAW, socket.IPPROTO_ICMP)
opens("packet", "open a socket for frames", socket.AF_PACKET, RAW, 0)
opens("packet_cooked", "open a socket for cooked frames", socket.AF_PACKET, DGRAM, 0)
opens("packet_old", "open a socket for frames by the old type", socket.AF_INET, 10, 0)
opens("vsock", "open a socket to the hypervisor", 40, STREAM, 0)
opens("alg", "open a socket to the kernel's ciphers", 38, SEQPACKET, 0)
opens("can", "open a CAN socket", 29, RAW, 1)
opens("bluetooth", "open a Bluetooth socket", 31, SEQPACKET, 0)
opens("xdp", "open an XDP socket", 44, RAW, 0)
opens("tipc", "open a TIPC socket", 30, STREAM, 0)
opens("rds", "open an RDS socket", 21, SEQPACKET, 0)
opens("kcm", "open a KCM socket", 41, SEQPACKET, 0)
opens("qipcrtr", "open a Qualcomm socket", 42, DGRAM, 0)
opens("smc", "open an SMC socket", 43, STREAM, 0)
opens("nfc", "open an NFC socket", 39, SEQPACKET, 1)
opens("pppox", "open a PPP socket", 24, STREAM, 0)
opens("llc", "open an LLC socket", 26, STREAM, 0)
opens("x25", "open an X.25 socket", 9, SEQPACKET, 0)
opens("ieee802154", "open an IEEE 802.15.4 socket", 36, RAW, 0)
opens("mctp", "open an MCTP socket", 45, DGRAM, 0)
opens("sctp", "open an SCTP socket", socket.AF_INET, STREAM, 132)
opens("dccp", "open a DCCP socket", socket.AF_INET, 6, 33)
opens("l2tp", "open an L2TP socket", socket.AF_INET, DGRAM, 115)


@escape("network.ping", "send an echo request without privileges")
def ping(t):
    with socket.socket(socket.AF_INET, DGRAM, socket.IPPROTO_ICMP) as peer:
        peer.settimeout(1)
        peer.sendto(struct.pack("BBHHH", 8, 0, 0, 1, 1), ("127.0.0.1", 0))
        peer.recv(100)
        if t.net_namespace != NET_NAMESPACE:
            raise Refused("its network is its own")
        return "answered"


def netlink(name, protocol, summary):
    @escape(f"network.netlink_{name}", summary)
    def attack(t):
        with socket.socket(socket.AF_NETLINK, RAW, protocol):
            if t.net_namespace != NET_NAMESPACE:
                raise Refused("its network is its own")
            return "opened"


netlink("route", 0, "ask the kernel about the machine's interfaces")
netlink("diag", 4, "ask the kernel about the machine's sockets")
netlink("netfilter", 12, "ask the kernel about the machine's packet filter")
netlink("audit", 9, "ask the kernel about the audit log")
netlink("uevent", 15, "hear of the machine's devices")
netlink("connector", 11, "hear of the machine's processes")
netlink("generic", 16, "ask other parts of the kernel")


def option(name, summary, level, number, value):
    @escape(f"network.{name}", summary)
    def attack(t):
        with socket.socket() as peer:
            peer.setsockopt(level, number, value)
            if t.net_namespace != NET_NAMESPACE:
                raise Refused("its network is its own")
            return "set"


option("mark", "mark packets for the packet filter", socket.SOL_SOCKET, 36, 1)
option("transparent", "use foreign addresses", socket.SOL_IP, 19, 1)


@escape("network.interface_down", "change an interface")
def interface_down(t):
    siocsifflags = 0x8914
    with socket.socket(type=DGRAM) as peer:
        request = struct.pack("16sH14x", b"lo", 0x49)
        fcntl.ioctl(peer.fileno(), siocsifflags, request)
        if t.net_namespace != NET_NAMESPACE:
            raise Refused("its network is its own")
        return "changed"
