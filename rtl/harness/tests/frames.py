"""Reads blocks as a host's frame decoder got them. Checks each frame with zlib's CRC-32, and what is in it with scapy.

A line is the two synchronisation bits and the eight bytes of a block, in hexadecimal, first byte first.
Prints the bytes of each frame, without its check sequence. Knows IEEE 802.3 clause 49 and nothing of the
project: /S/ is type 0x78, a /T/ with n bytes has the n-th of the types below.
"""

import sys
import zlib

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

ENDS = [0x87, 0x99, 0xAA, 0xB4, 0xCC, 0xD2, 0xE1, 0xFF]
PREAMBLE = bytes([0x55] * 6 + [0xD5])


def whole(frame: bytes) -> bool:
    """Whether it is UDP over IPv4 with the lengths and the sums that scapy computes."""
    packet = Ether(frame)
    if UDP not in packet:
        return False
    anew = packet.copy()
    for layer, fields in ((IP, ("len", "chksum")), (UDP, ("len", "chksum"))):
        for field in fields:
            delattr(anew[layer], field)
    return bytes(anew) == frame


def main() -> None:
    frame = None
    for number, line in enumerate(sys.stdin, 1):
        sync, payload = line.split()
        block = bytes.fromhex(payload)
        if sync == "10":
            if frame is None:
                sys.exit(f"line {number}: data outside a frame")
            frame += block
        elif block[0] == 0x78 and frame is None:
            if block[1:] != PREAMBLE:
                sys.exit(f"line {number}: preamble {block[1:].hex()}")
            frame = b""
        elif block[0] in ENDS and frame is not None:
            frame += block[1 : 1 + ENDS.index(block[0])]
            check = int.from_bytes(frame[-4:], "little")
            if zlib.crc32(frame[:-4]) != check:
                sys.exit(f"line {number}: the check sequence of {len(frame)} bytes is wrong")
            if not whole(frame[:-4]):
                sys.exit(f"line {number}: what scapy computes of {len(frame)} bytes is not in them")
            print(frame[:-4].hex())
            frame = None
        else:
            sys.exit(f"line {number}: block {block.hex()} cannot come here")
    if frame is not None:
        sys.exit("the last frame has no end")


main()
