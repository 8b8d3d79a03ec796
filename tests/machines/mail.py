# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends letters as from outside and reads those that were delivered; for the tests of guides, on their machines."""

import json
import mailbox
import pathlib
import re
import smtplib
import socket
import subprocess
import sys
import time

THRESHOLD = 20


def fail(text):
    print(f"FAILED: {text}", file=sys.stderr)
    subprocess.run(["journalctl", "--quiet", "--no-pager", "--lines=40", "--output=short"], stdout=sys.stderr, check=False)
    sys.exit(1)


def ok(text):
    print(f"ok  {text}", flush=True)


def equal(what, found, expected):
    if found != expected:
        fail(f"{what} is {found!r}, expected {expected!r}")


def wait_for(what, question, seconds=900):
    """Asks until the answer is true, and returns it. The bound is one that no busy machine breaks."""
    end = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > end:
            fail(f"in vain: {what}")
        time.sleep(0.1)


def do(*command, text=None):
    output = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if output.returncode:
        fail(f"{' '.join(command)}: {output.stdout}{output.stderr}")
    return output.stdout


def follow(guide, heading, *options):
    """Does what a guide says below a heading; see tests/follow."""
    do("python3", "follow", guide, heading, *options)


def answers(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), 1).close()
        return True
    except OSError:
        return False


def letter(number, fields=""):
    """A newsletter; each number is another one. All of its words are its own, so none is near another."""
    words = " ".join(f"{a}{b}{number}x" for a in ("rope", "anchor", "boat", "sail", "mast") for b in ("ba", "ter", "mon", "li", "sa"))
    return (f"From: Shop <offers@shop.example>\nTo: reader@example.org\nSubject: prices {number}\n"
            f"Date: Mon, 23 Nov 2026 10:00:00 +0000\nMessage-ID: <{number}@shop.example>\n{fields}\n{words}\n")


class Outside:
    """A client at an address outside, by XCLIENT."""

    def __init__(self, port=25, address="198.51.100.66"):
        self.smtp = smtplib.SMTP("127.0.0.1", port, local_hostname="mail.shop.example", timeout=900)
        self.smtp.ehlo()
        code, text = self.smtp.docmd("XCLIENT", f"ADDR={address} NAME=mail.shop.example")
        equal("the answer to XCLIENT", code, 220)
        self.smtp.ehlo_resp = None
        self.smtp.ehlo()
        # The text of the last refusal.
        self.said = ""

    def send(self, text, recipients=("reader@example.org",), sender="offers@shop.example"):
        """The code of the last answer."""
        try:
            self.smtp.sendmail(sender, list(recipients), text.replace("\n", "\r\n").encode())
            return 250
        except smtplib.SMTPDataError as e:
            self.said = e.smtp_error.decode()
            return e.smtp_code
        except smtplib.SMTPSenderRefused as e:
            return e.smtp_code
        except smtplib.SMTPRecipientsRefused as e:
            return next(iter(e.recipients.values()))[0]

    def quit(self):
        self.smtp.quit()


def send(text, copies=1, **other):
    """The codes of the answers to so many copies."""
    outside = Outside(**{name: other.pop(name) for name in ("port", "address") if name in other})
    codes = [outside.send(text, **other) for _ in range(copies)]
    outside.quit()
    return codes


def inbox(user="reader"):
    path = pathlib.Path("/var/mail") / user
    return list(mailbox.mbox(path)) if path.exists() else []


def arrived(number, copies=1, user="reader"):
    """The letters with this number, when that many were delivered; in the order of their counts, if these are known."""
    subject = f"prices {number}"

    def those():
        found = [message for message in inbox(user) if str(message["Subject"]).endswith(subject)]
        return found if len(found) >= copies else []
    found = wait_for(f"{copies} letters {number} for {user}", those)
    equal(f"the number of letters {number}", len(found), copies)
    return sorted(found, key=lambda message: int(re.search(r"body=(\d+)|$", " ".join(verdicts(message)))[1] or 0))


def verdicts(message):
    return message.get_all("X-Bulkmark") or []


def count(number):
    """How often the milter has seen a letter."""
    output = subprocess.run(["bulkmark", "check", "--json"], input=letter(number), capture_output=True, text=True, check=False)
    return json.loads(output.stdout)["messages"][0]["body"]["count"]
