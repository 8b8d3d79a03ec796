#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the mail of invented firms, and the mail before it: firms.py STREAMS SENTENCES SEED OUT

STREAMS holds company.py, which makes the mail of the sentences of an mbox. Writes one message a file, and
OUT/messages.tsv: `part` (a name below, or `mail`), `file`, `recipients`, and of mail what company.py says of it.

The parts that can come before the mail, each with every block that a letter of the firms carries: signatures, disclaimers,
logos, links.

to25       for each person one letter to 25 recipients, with all that a letter of his has; and for each block by itself one more,
           other words with the block below them
alone      for each block 25 messages of strangers, which are the block and nothing else
beneath    for each block 25 messages of strangers, with the block below words that change
"""
import base64
import os
import random
import sys
from html import escape

streams, sentences, seed, out = sys.argv[1:5]
sys.dont_write_bytecode = True
sys.path.insert(0, streams)
import company  # noqa: E402

COPIES = 25
FIRMS, MAIL, MAILINGS, MAILED = 5, 3000, 6, 40

BODIES = company.sentences(sentences, 20000)


class Block:
    """A block of a firm, as its letters have it."""

    def __init__(self, firm, lines=(), page="", picture=None):
        self.firm, self.lines, self.page, self.picture = firm, lines, page, picture


def blocks(firm):
    """All blocks of a firm."""
    texts = [person.signature() for person in firm.people]
    pages = ["<table><tr><td>" + "<br>\n".join(map(escape, lines)) + "</td></tr></table>\n" for lines in texts]
    found = [Block(firm, lines, page) for lines, page in zip(texts, pages)]
    if firm.disclaimer:
        page = '<p style="font-size:8pt;color:#777">%s</p>\n' % escape(firm.disclaimer)
        found.append(Block(firm, [firm.disclaimer], page))
    if firm.look == "plain":
        return found
    site = "https://www.%s/" % firm.domain
    if firm.logo:
        image = '<p><a href="%s"><img src="%%s" width="140" height="44" alt=""></a></p>\n' % site
        found.append(Block(firm, page=image, picture=firm.picture if firm.logo == "embedded" else site + "img/logo.png"))
    if firm.social:
        images = ['<a href="%s"><img src="%simg/s%d.png" width="16"></a>' % (link, site, i) for i, link in enumerate(firm.links())]
        found.append(Block(firm, page="<p>" + " ".join(images) + "</p>\n"))
    return found


class Writer:
    """The mail before that of the firms."""

    def __init__(self, stream):
        self.stream, self.random = stream, random.Random("firms/%s" % seed)
        stream.r = random.Random("before/%s" % seed)
        self.words = sorted({word for body in BODIES for word in body.split() if word.isalpha()})

    def text(self):
        """Words that no letter has one after the other."""
        words = self.random.choices(self.words, k=self.random.randint(20, 60))
        return "\n\n".join(" ".join(words[i:i + 15]) for i in range(0, len(words), 15))

    def message(self, block, text, sender):
        s, firm = self.stream, block.firm
        to = ["<%s@example.org>" % s.token(7)]
        if firm.look == "plain":
            return s.mail(sender, to, s.subject(), "text/plain; charset=utf-8", "\n\n".join(filter(None, [text, "\n".join(block.lines)])) + "\n")
        cid = "%s@%s" % (s.token(), sender[1].split("@")[1])
        embedded = isinstance(block.picture, bytes)
        shown = block.page % ("cid:" + cid if embedded else block.picture) if block.picture else block.page
        page = "".join("<p>%s</p>\n" % escape(p) for p in text.split("\n\n") if p) + shown
        page = '<html><head><meta charset="utf-8"></head><body>%s</body></html>' % page
        kind, body = "text/html; charset=utf-8", page.encode()
        if embedded:
            picture = ('Content-Type: image/png; name="logo.png"\nContent-ID: <%s>\nContent-Disposition: inline\n'
                       "Content-Transfer-Encoding: base64" % cid, base64.encodebytes(block.picture))
            kind, body = s.multipart("multipart/related", [("Content-Type: " + kind, body), picture])
        return s.mail(sender, to, s.subject(), kind, body)

    def stranger(self):
        return "", "%s@%s.example" % (self.stream.token(8), self.stream.token(6))

    def to25(self):
        to = ["%s@example.org" % self.stream.token(7) for _ in range(COPIES)]
        for firm in self.stream.companies:
            for person in firm.people:
                yield self.stream.dressed(person, to, self.stream.subject(), self.text())[0]
            for block in blocks(firm):
                sender = firm.people[0]
                yield self.message(block, self.text(), (sender.name, sender.mail))

    def alone(self):
        return self.copies(lambda: "")

    def beneath(self):
        return self.copies(self.text)

    def copies(self, text):
        for firm in self.stream.companies:
            for block in blocks(firm):
                for _ in range(COPIES):
                    yield self.message(block, text(), self.stranger())


def main():
    columns = ["part", "file", *company.COLUMNS[1:]]
    stream = company.Stream(seed, BODIES, FIRMS)
    rows = [("mail", raw, about) for raw, about in stream.run(MAIL, MAILINGS, MAILED)]
    writer = Writer(stream)
    for part, recipients in (("to25", COPIES), ("alone", 1), ("beneath", 1)):
        rows += [(part, raw, {"recipients": recipients}) for raw in getattr(writer, part)()]
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "messages.tsv"), "w") as table:
        table.write("\t".join(columns) + "\n")
        for n, (part, raw, about) in enumerate(rows):
            file = "%05d.eml" % n
            with open(os.path.join(out, file), "wb") as message:
                message.write(raw)
            table.write("\t".join([part, file, *(str(about.get(column, "")) for column in columns[2:])]) + "\n")


main()
