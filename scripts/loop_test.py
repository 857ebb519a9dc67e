#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends frames to a board with the loopback image and checks that each comes back whole, its addresses swapped (Linux, needs CAP_NET_RAW).

    loop_test.py INTERFACE [--frames n] [--board MAC] [--max-bytes n]

Lengths go from 60 bytes to the interface's MTU and header; payloads are random by a fixed seed. Tells how many came back, and ends with an error when
one did not or was changed.
"""
import argparse
import random
import socket
import sys
import time

ETHERTYPE = 0x88B5      # IEEE 802, local experiments
WINDOW = 16             # frames on their way at a time: the board's mirror holds 8 KiB


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interface")
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--board", default="02:52:4e:52:00:01")
    parser.add_argument("--max-bytes", type=int, default=1514)
    args = parser.parse_args()
    board = bytes.fromhex(args.board.replace(":", ""))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE)) as line:
        line.bind((args.interface, ETHERTYPE))
        line.settimeout(1.0)
        own = line.getsockname()[4]
        rng = random.Random(1)
        waiting, came, changed, lost = {}, 0, 0, 0
        started = time.monotonic()

        def take():
            nonlocal came, changed, lost
            try:
                frame = line.recv(65536)
            except TimeoutError:
                lost += len(waiting)
                waiting.clear()
                return
            if frame[:6] != own or frame[6:12] != board:
                return
            number = int.from_bytes(frame[14:18], "big")
            sent = waiting.pop(number, None)
            if sent is None or frame[12:] != sent[12:]:
                changed += 1
            else:
                came += 1

        for number in range(args.frames):
            length = 60 + number % (args.max_bytes - 59)
            frame = board + own + ETHERTYPE.to_bytes(2, "big") + number.to_bytes(4, "big") + rng.randbytes(length - 18)
            while len(waiting) >= (WINDOW if length < 500 else 4):
                take()
            waiting[number] = frame
            line.send(frame)
        while waiting:
            take()
    seconds = time.monotonic() - started
    print(f"{args.frames} frames of 60 to {args.max_bytes} bytes in {seconds:.1f} s: {came} came back, {changed} changed, {lost} lost")
    return 0 if came == args.frames and not changed else 1


if __name__ == "__main__":
    sys.exit(main())
