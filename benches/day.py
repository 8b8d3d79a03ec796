#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A day of a large provider: memory and time of `bulkmark digest`, `bulkmark refusals` and a milter with its status page.

    benches/day.py PROGRAM [MESSAGES [JUDGED]]

1. digest: a log of MESSAGES lines (2,000,000) of four mail servers, in rsyslog's form: 150,000 senders' domains, 30,000 mailings, one policy for
   each of 100 customers.
2. refusals: as many as the milter keeps at most (1 GB), searched by recipient, by mailing, and all.
3. page: a milter with these 100 policies judges JUDGED messages (200,000), of which each fifth is one of 2,000 mailings; its memory after each
   fifth of them, and the time of its pages.

Times are the best of three. Writes about 2 GB into a temporary directory.
"""
import json
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time

program = os.path.abspath(sys.argv[1])
messages = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000
judged = int(sys.argv[3]) if len(sys.argv) > 3 else 200_000
CUSTOMERS, DOMAINS, MAILINGS, KEPT = 100, 150_000, 30_000, 1_000_000_000
rng = random.Random(36)


def signature(n):
    return f"{n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"


def zipf(most):
    """A number from 1 on, of which n comes with a frequency of about 1/n."""
    return min(most, int(most ** rng.random()))


def lines():
    """The log of a day, in the order of its time."""
    for n in range(messages):
        second = n * 86_400 // messages
        stamp = f"2026-11-22T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{n % 1000:03}+00:00 mx{n % 4}.provider.example"
        customer = zipf(CUSTOMERS)
        bulk = rng.random() < 0.4
        mailing = zipf(MAILINGS)
        domain = mailing % DOMAINS if bulk else rng.randrange(DOMAINS)
        host = f"out.d{domain}.example[198.{18 + domain % 2}.{domain // 250 % 250}.{domain % 250}]"
        body = rng.randrange(20, 5000) if bulk else rng.randrange(1, 20)
        action = "reject" if bulk and mailing % 3 else "mark"
        yield (
            f"{stamp} bulkmark[1234]: 4{n:09X}: client={host} helo=<out.d{domain}.example> from=<news-{n % 97}@d{domain}.example> "
            f"to=<user{n % 5003}@customer{customer}.example> nrcpt=1 message-id=<{n}.{mailing}@d{domain}.example> size={2000 + n % 90_000} "
            f"verdict={'bulk' if bulk else 'clean'} body={body} near={body + n % 7} threshold=20 policy=customer{customer} "
            f"sources=5 own=1 signature={signature(mailing if bulk else n + MAILINGS)} action={action} ms={n % 90 / 10}\n"
        )


def refusal(n, at):
    mailing = zipf(MAILINGS)
    entry = {
        "at": at,
        "id": f"4{n:09X}",
        "action": "reject",
        "rehearsed": False,
        "verdict": "bulk",
        "policy": f"customer{zipf(CUSTOMERS)}",
        "from": f"news-{n % 97}@d{mailing}.example",
        "to": [f"user{n % 5003}@customer{zipf(CUSTOMERS)}.example"],
        "nrcpt": 1,
        "client": f"198.18.{mailing // 250 % 250}.{mailing % 250}",
        "host": f"out.d{mailing}.example",
        "body": 27,
        "near": 31,
        "signatures": [signature(mailing * 10 + near) for near in range(9)],
    }
    return json.dumps(entry, separators=(",", ":")) + "\n"


def measured(label, *args):
    """Runs a command three times; prints its shortest time and the largest memory."""
    best, most = float("inf"), 0
    for _ in range(3):
        began = time.monotonic()
        child = subprocess.Popen([program, *args], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, args
        best, most = min(best, time.monotonic() - began), max(most, used.ru_maxrss)
    print(f"  {label:34} {best:7.2f} s  {most / 1000:7.1f} MB", flush=True)


def digest(directory):
    log = directory / "bulkmark.log"
    with log.open("w") as file:
        file.writelines(lines())
    print(f"digest of {messages} messages, {log.stat().st_size / 1e6:.0f} MB")
    measured("all", "digest", str(log))
    log.unlink()


def configuration(directory):
    config = directory / "milter.toml"
    state = directory / "state"
    state.mkdir(mode=0o750)
    policies = "".join(
        f'[[policy]]\nname = "customer{n}"\nmatch = {{ recipient = "customer{n}.example" }}\nthresholds = {{ body = {20 + n % 7} }}\n'
        for n in range(1, CUSTOMERS + 1)
    )
    config.write_text(
        f'listen = "unix:{directory}/m.sock"\ncontrol = "{directory}/control.sock"\nstate-dir = "{state}"\nexempt = ["authenticated"]\n'
        f'hostname = "mx.provider.example"\n[actions]\nbulk = "reject"\n[refusals]\ndays = 14\n[status]\nlisten = "unix:{directory}/page.sock"\n'
        f'show = ["subjects", "clients", "recipients"]\n[log]\ntarget = "stderr"\n{policies}'
    )
    return config, state


def refusals(directory):
    config, state = configuration(directory)
    size, number, now = 0, 0, int(time.time())
    for file in range(16):
        at = now - 86_400 + file * 5000
        with (state / f"refusals-{at:010}.jsonl").open("w") as out:
            part = 0
            while part < KEPT // 16:
                part += out.write(refusal(number, at + number % 5000))
                number += 1
        size += part
    print(f"refusals: {number}, {size / 1e6:.0f} MB")
    ask = ["refusals", "--config", str(config), "--since", "7d"]
    measured("--recipient user7@customer7.example", *ask, "--recipient", "user7@customer7.example")
    measured("--mailing", *ask, "--mailing", signature(70)[:20])
    measured("all, as --json", *ask, "--json")
    for file in state.glob("refusals-*"):
        file.unlink()
    return config


class Session:
    """An MTA's end of the milter protocol, enough for whole messages."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.bytes = b""
        self.send(b"O" + struct.pack(">III", 6, 0x1FF, 0x1FFFFF))
        self.options = struct.unpack(">III", self.receive()[1:13])[2]

    def send(self, *packets):
        self.socket.sendall(b"".join(struct.pack(">I", len(packet)) + packet for packet in packets))

    def receive(self):
        def exactly(size):
            while len(self.bytes) < size:
                more = self.socket.recv(1 << 16)
                assert more, "the milter closed the connection"
                self.bytes += more
            part, self.bytes = self.bytes[:size], self.bytes[size:]
            return part

        return exactly(struct.unpack(">I", exactly(4))[0])

    def message(self, client, sender, recipient, fields, body):
        stages = [
            (0x1000, b"Cout.%s\0004\0\0\031%s\0" % (sender.split(b"@")[1], client)),
            (0x4000, b"M<%s>\0" % sender),
            (0x8000, b"R<%s>\0" % recipient),
            (0x10000, b"T"),
            *((0x80, b"L%s\0%s\0" % field) for field in fields),
            (0x40000, b"N"),
            (0x80000, b"B" + body),
            (0, b"E"),
        ]
        unwanted = {b"T": 0x200, b"N": 0x40}
        stages = [(reply, packet) for reply, packet in stages if not self.options & unwanted.get(packet, 0)]
        self.send(*(packet for _, packet in stages))
        for reply, packet in stages:
            if packet != b"E" and not self.options & reply:
                self.receive()
        while (answer := self.receive())[:1] in b"himepq+-":
            pass
        self.send(b"A")
        return answer


def judge(path, begin, end):
    session = Session(path)
    words = random.Random(begin)
    for n in range(begin, end):
        text = random.Random(n % 10_000 // 5) if n % 5 == 0 else words
        body = b"\r\n".join(b" ".join(b"%x" % text.getrandbits(24) for _ in range(10)) for _ in range(25))
        domain = b"d%d.example" % (n % 10_000 // 5 if n % 5 == 0 else n)
        fields = [
            (b"From", b"News <news@%s>" % domain),
            (b"To", b"user@customer.example"),
            (b"Subject", b"Message %d" % n),
            (b"Message-ID", b"<%d@%s>" % (n, domain)),
        ]
        client = b"198.%d.%d.%d" % (18 + n % 2, n // 250 % 250, n % 250)
        to = b"user%d@customer%d.example" % (n % 5003, n % CUSTOMERS + 1)
        session.message(client, b"news@" + domain, to, fields, body + b"\r\n")


def get(directory, path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"{directory}/page.sock")
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    answer = b"".join(parts)
    assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
    return answer


def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def page(directory, config):
    log = (directory / "log").open("w")
    daemon = subprocess.Popen([program, "milter", "--config", str(config)], stderr=log)
    try:
        while not (directory / "page.sock").exists() or not (directory / "m.sock").exists():
            assert daemon.poll() is None, (directory / "log").read_text()
            time.sleep(0.05)
        print(f"page: a milter with {CUSTOMERS} policies, {resident(daemon.pid):.1f} MB before the first message")
        for fifth in range(5):
            begin = fifth * judged // 5
            children = []
            for part in range(4):
                bounds = [begin + judged * (part + at) // 20 for at in (0, 1)]
                if (child := os.fork()) == 0:
                    judge(f"{directory}/m.sock", *bounds)
                    os._exit(0)
                children.append(child)
            assert all(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in children)
            print(f"  {begin + judged // 5:9} messages judged                {resident(daemon.pid):7.1f} MB", flush=True)
        for path in ("/status.json", "/metrics"):
            times = []
            for _ in range(20):
                began = time.monotonic()
                size = len(get(directory, path))
                times.append(time.monotonic() - began)
            print(f"  {path:14} {size / 1000:7.0f} kB  {sorted(times)[10] * 1000:6.1f} ms (median of 20), at most {max(times) * 1000:.1f} ms")
        print(f"  afterwards                               {resident(daemon.pid):7.1f} MB")
    finally:
        daemon.terminate()
        daemon.wait()


with tempfile.TemporaryDirectory(prefix="bulkmark-day-") as name:
    directory = pathlib.Path(name)
    digest(directory)
    page(directory, refusals(directory))
