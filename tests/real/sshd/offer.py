"""Asks a DHCP server what it would give a MAC: one DISCOVER, no lease taken.

    offer.py INTERFACE MAC      prints `ADDRESS NAME`, or exits 1 when no offer comes

It speaks over a packet socket, so the interface needs neither the MAC nor an address.
"""
import secrets
import socket
import struct
import sys
import time

COOKIE = b"\x63\x82\x53\x63"


def main(interface, mac_text):
    mac = bytes.fromhex(mac_text.replace(":", ""))
    transaction = secrets.token_bytes(4)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    wire.bind((interface, 0))
    wire.settimeout(0.5)
    deadline = time.monotonic() + 8
    while time.monotonic() < deadline:
        wire.send(discover(mac, transaction))
        again = time.monotonic() + 2
        while time.monotonic() < again:
            try:
                answer = wire.recv(2048)
            except TimeoutError:
                continue
            if found := offered(answer, transaction):
                print(*found)
                return 0
    print("no offer", file=sys.stderr)
    return 1


def discover(mac, transaction):
    """An Ethernet frame with a broadcast DISCOVER that asks for a broadcast answer and the host name."""
    bootp = b"\1\1\6\0" + transaction + b"\0\0\x80\0" + bytes(16) + mac.ljust(16, b"\0") + bytes(192)
    bootp += COOKIE + b"\x35\1\1" + b"\x37\3\1\3\x0c" + b"\xff"
    bootp = bootp.ljust(300, b"\0")
    udp = struct.pack("!4H", 68, 67, 8 + len(bootp), 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp) + len(bootp), 1, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    words = sum(struct.unpack("!10H", ip))
    words = (words & 0xFFFF) + (words >> 16)
    ip = ip[:10] + struct.pack("!H", ~words & 0xFFFF) + ip[12:]
    return b"\xff" * 6 + mac + b"\x08\x00" + ip + udp + bootp


def offered(frame, transaction):
    """Address and host name of an OFFER in this transaction, else None."""
    start = 14 + (frame[14] & 15) * 4 + 8
    bootp = frame[start:]
    if len(bootp) < 240 or bootp[0] != 2 or bootp[4:8] != transaction or bootp[236:240] != COOKIE:
        return None
    options, rest = {}, bootp[240:]
    while rest and rest[0] != 255:
        if rest[0] == 0:
            rest = rest[1:]
            continue
        options[rest[0]], rest = rest[2:2 + rest[1]], rest[2 + rest[1]:]
    if options.get(53) != b"\2":
        return None
    return socket.inet_ntoa(bootp[16:20]), options.get(12, b"-").decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
