"""A DHCP client for one question: what does the server of this link give to a MAC?

    client.py lease4 INTERFACE MAC     DISCOVER, REQUEST, RELEASE over a packet socket: prints `ADDRESS NAME`
    client.py lease6 INTERFACE MAC     SOLICIT, REQUEST, RELEASE; the interface gets the MAC, since dnsmasq looks there for it

Exit 1 when nobody answers. Neither needs an address on the interface.
"""
import secrets
import socket
import struct
import subprocess
import sys
import time

COOKIE = b"\x63\x82\x53\x63"
PATIENCE = 8  # seconds; dnsmasq pings a free address for three before it offers it
DISCOVER, OFFER, REQUEST, ACK, NAK, RELEASE = 1, 2, 3, 5, 6, 7


class Four:
    """DHCPv4 in Ethernet frames of our own making, so that any MAC can ask."""

    def __init__(self, interface, mac):
        self.mac, self.xid = mac, secrets.token_bytes(4)
        self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.wire.bind((interface, 0))
        self.wire.settimeout(0.25)

    def send(self, kind, options=b""):
        head = b"\1\1\6\0" + self.xid + b"\0\0\x80\0" + bytes(16) + self.mac.ljust(16, b"\0") + bytes(192)
        said = head + COOKIE + bytes((53, 1, kind)) + options + b"\x37\3\1\3\x0c\xff"
        udp = struct.pack("!4H", 68, 67, 8 + len(said.ljust(300, b"\0")), 0) + said.ljust(300, b"\0")
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
        total = sum(struct.unpack("!10H", ip))
        total = (total & 0xFFFF) + (total >> 16)
        ip = ip[:10] + struct.pack("!H", ~total & 0xFFFF) + ip[12:]
        self.wire.send(b"\xff" * 6 + self.mac + b"\x08\x00" + ip + udp)

    def answer(self, until):
        """The next answer in this exchange: kind, address, options."""
        while time.monotonic() < until:
            try:
                frame = self.wire.recv(2048)
            except TimeoutError:
                continue
            said = frame[14 + (frame[14] & 15) * 4 + 8:]
            if len(said) < 244 or said[0] != 2 or said[4:8] != self.xid or said[236:240] != COOKIE:
                continue
            options, rest = {}, said[240:]
            while rest and rest[0] != 255:
                if rest[0] == 0:
                    rest = rest[1:]
                    continue
                options[rest[0]], rest = rest[2:2 + rest[1]], rest[2 + rest[1]:]
            return options.get(53, b"\0")[0], said[16:20], options
        return None

    def ask(self, kind, options, wanted):
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self.send(kind, options)
            again = min(until, time.monotonic() + 4)
            while answer := self.answer(again):
                if answer[0] in wanted:
                    return answer
        return None

    def lease(self):
        offer = self.ask(DISCOVER, b"", (OFFER,))
        if offer is None:
            return None
        address, server = offer[1], offer[2][54]
        of_server = bytes((54, 4)) + server
        ack = self.ask(REQUEST, bytes((50, 4)) + address + of_server, (ACK, NAK))
        if ack is None or ack[0] == NAK:
            return None
        name = ack[2].get(12, b"-").decode(errors="replace")
        self.send(RELEASE, of_server)
        return socket.inet_ntoa(ack[1]), name


SOLICIT, ADVERTISE, REQUEST6, REPLY, RELEASE6 = 1, 2, 3, 7, 8
CLIENT_ID, SERVER_ID, IA_NA, IA_ADDRESS, WANTED, ELAPSED, FQDN = 1, 2, 3, 5, 6, 8, 39


def option(code, content):
    return struct.pack("!HH", code, len(content)) + content


def options_of(content):
    while len(content) >= 4:
        code, size = struct.unpack("!HH", content[:4])
        yield code, content[4:4 + size]
        content = content[4 + size:]


class Six:
    """DHCPv6 with a DUID made of the MAC."""

    def __init__(self, interface, mac):
        text = ":".join(f"{octet:02x}" for octet in mac)
        # a link that was down makes its own address of the MAC: the server has no old MAC in mind for it
        for change in (["down"], ["address", text], ["up"]):
            subprocess.run(["ip", "link", "set", interface, *change], check=True)
        self.mac, self.index = mac, socket.if_nametoindex(interface)
        self.wire = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.wire.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, self.index)
        self.wire.bind(("::", 546, 0, self.index))
        self.wire.settimeout(0.25)

    def ask(self, kind, more, wanted):
        transaction = secrets.token_bytes(3)
        said = bytes((kind,)) + transaction + option(CLIENT_ID, struct.pack("!HH", 3, 1) + self.mac) + more
        said += option(ELAPSED, b"\0\0") + option(WANTED, struct.pack("!H", FQDN))
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                self.wire.sendto(said, ("ff02::1:2", 547, 0, self.index))
            except OSError:  # the link-local address is not there yet
                time.sleep(0.1)
                continue
            again = time.monotonic() + 2
            while time.monotonic() < again:
                try:
                    answer = self.wire.recv(2048)
                except TimeoutError:
                    continue
                if answer[0] == wanted and answer[1:4] == transaction:
                    return dict(options_of(answer[4:]))
        return None

    def lease(self):
        identity = b"\0\0\0\1" + bytes(8)
        offered = self.ask(SOLICIT, option(IA_NA, identity), ADVERTISE)
        if offered is None or IA_NA not in offered:
            return None
        mine = option(SERVER_ID, offered[SERVER_ID]) + option(IA_NA, offered[IA_NA])
        given = self.ask(REQUEST6, mine, REPLY)
        addresses = [body[:16] for code, body in options_of((given or {}).get(IA_NA, b"")[12:]) if code == IA_ADDRESS]
        if not addresses:
            return None
        self.ask(RELEASE6, option(SERVER_ID, offered[SERVER_ID]) + option(IA_NA, given[IA_NA]), REPLY)
        return socket.inet_ntop(socket.AF_INET6, addresses[0]), "-"


def main(what, interface, mac):
    mac = bytes.fromhex(mac.replace(":", ""))
    lease = {"lease4": Four, "lease6": Six}[what](interface, mac).lease()
    if lease is None:
        print("nobody answers", file=sys.stderr)
        return 1
    print(*lease)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
