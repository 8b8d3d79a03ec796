#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes letters that have nothing in common but a block: letters.py OUT

For each BLOCK and number of own words OUT/BLOCK-WORDS has 100 letters, one recipient each, and a last one, `to25`, of other
text with the same block. Their words are drawn one by one from the list below, so no two letters have a text in common.
Deterministic; needs nothing but Python.
"""
import base64
import os
import random
import sys
import zlib

LETTERS = 100

# Common words, starting with those of each sentence.
WORDS = """the to and of a in is it you that for we on with have this be are will not as at but from your i can if our by or
all they an do so there what about which when one out up would me some time get has more now please see could just than them
new also then into its work other only over how know last after first any day good need back think send before next two here
month make well like meeting should call morning report order tomorrow office price number question house customer friday
list answer machine change again place week room part draft water plan train figures paper harbour monday contract market
window station garden school copy budget version team summer visit supplier kitchen engine letter review test plant invoice
bridge winter afternoon schedule result delivery sample server driver carpet manual storage colour pump wheel estimate
museum dinner ticket tunnel battery wood filter orchard picture concert weather railway cabinet timber glass doctor farm
river sister folder ladle curtain coffee bakery cousin bicycle violin stairs copper island lantern mountain roof
ladder forest basket cellar candle mirror pencil teapot saddle anchor barrel blanket bottle branch bucket button camera
canvas carrot castle cheese cherry chimney clock cotton desk drawer eagle elbow fence feather ferry flour flute fountain
fridge gate ginger gravel hammer hedge helmet hinge honey jacket kettle kite lemon lamp magnet marble meadow mill mustard
needle nephew notebook oven paint parcel pepper piano pillow pipe plaster plate pocket pond porch potato quilt rabbit radish
ribbon ring rope sail salad scissors shed shelf shovel sink soap socket spade spoon spring stove straw sugar table tile
towel trumpet valley vase velvet walnut wardrobe whistle willow wire workshop yard yoghurt zinc""".split()

SIGNATURE = """Ottilie Vanderbrug
Head of inland shipping and storage, northern yards
Vanderbrug and Sons Freight, Quay Street 17, 4th floor
Tel. +99 555 017 4420, mobile +99 555 017 4421
Founding member of the society for old sailing barges
Open to visitors each first Saturday until four
He who asks the wind for the way will see many harbours
Printed with ink made from walnuts"""

DISCLAIMER = """This letter and whatever is enclosed with it are meant only for the firm or person named above. They may hold
matters of business that are confidential or that the law protects. If somebody gave it to you by mistake you may not read it,
keep it, show it to others or act upon it; write to us at once and delete it. What is said here is
the view of its writer, and binds the house of Vanderbrug only if a director has signed it on paper. We look for viruses before
we send, but whoever opens an attachment does so at his own risk. Our mail is stored for ten years as the rules of trade
demand.""".replace("\n", " ")

SOCIAL = ["https://www.linkedin.com/company/vanderbrug-freight", "https://www.facebook.com/vanderbrugfreight",
          "https://x.com/vanderbrugship", "https://www.instagram.com/vanderbrug.freight",
          "https://www.youtube.com/@vanderbrugfreight"]

# The numbers of each block's own words.
ROWS = [("logo", "3-6"), ("logo", "10"), ("logo", "20"), ("logo", "50"), ("links", "4"), ("links", "10"),
        ("signature", "10"), ("signature", "20"), ("signature", "40"),
        ("disclaimer", "15"), ("disclaimer", "40"), ("disclaimer", "100"), ("disclaimer", "200")]


def logo():
    """A PNG of 140 x 44 with coloured bars that are not quite even; 3 KB, as logos have."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    noise = random.Random("logo")
    rows = (b"".join(bytes([20 + x // 35 * 60, 90 + noise.randrange(8), 180 - x // 20 * 20]) for x in range(140)) for _ in range(44))
    head = (140).to_bytes(4, "big") + (44).to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


class Writer:
    """Of one row."""

    def __init__(self, block, seed):
        self.block, self.random = block, random.Random(seed)
        # The rarest comes a sixteenth as often as the most common.
        self.weights = [1 / (20 + rank) for rank in range(len(WORDS))]

    def token(self):
        return "".join(self.random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=16))

    def words(self, number):
        return self.random.choices(WORDS, self.weights, k=number)

    def text(self, number):
        """Sentences of 6 to 14 words, in paragraphs of three."""
        words, sentences = self.words(number), []
        while words:
            n = self.random.randint(6, 14)
            sentences.append(" ".join(words[:n]).capitalize() + ".")
            words = words[n:]
        return "\n\n".join(" ".join(sentences[i:i + 3]) for i in range(0, len(sentences), 3))

    def letter(self, number):
        head = ["From: %s <%s@vanderbrug.example>" % (self.words(1)[0].title(), self.token()),
                "To: <%s@example.org>" % self.token(), "Subject: " + " ".join(self.words(3)),
                "Date: Mon, 02 Feb 2026 10:00:00 +0000", "Message-ID: <%s@vanderbrug.example>" % self.token(), "MIME-Version: 1.0"]
        kind, body = getattr(self, self.block)(self.text(number))
        return ("\n".join(head + ["Content-Type: " + kind]) + "\n\n" + body).encode()

    def signature(self, text):
        return "text/plain; charset=utf-8", "%s\n\n%s\n" % (text, SIGNATURE)

    def disclaimer(self, text):
        return "text/plain; charset=utf-8", "%s\n\n%s\n" % (text, DISCLAIMER)

    def page(self, text, block):
        paragraphs = "".join("<p>%s</p>\n" % p for p in text.split("\n\n"))
        return "<html><body>\n%s%s</body></html>\n" % (paragraphs, block)

    def links(self, text):
        icon = '<img src="https://www.vanderbrug.example/icon-%d.png" width="16" height="16" alt="">'
        links = " ".join('<a href="%s">%s</a>' % (url, icon % n) for n, url in enumerate(SOCIAL))
        return "text/html; charset=utf-8", self.page(text, "<p>%s</p>\n" % links)

    def logo(self, text):
        cid, boundary = self.token() + "@vanderbrug.example", "b" + self.token()
        image = '<p><img src="cid:%s" width="140" height="44" alt=""></p>\n' % cid
        picture = base64.encodebytes(logo()).decode()
        parts = ["Content-Type: text/html; charset=utf-8\n\n" + self.page(text, image),
                 'Content-Type: image/png; name="logo.png"\nContent-ID: <%s>\nContent-Disposition: inline\n'
                 "Content-Transfer-Encoding: base64\n\n%s" % (cid, picture)]
        body = "".join("--%s\n%s\n" % (boundary, part) for part in parts)
        return 'multipart/related; boundary="%s"' % boundary, body + "--%s--\n" % boundary


def main():
    for block, words in ROWS:
        writer = Writer(block, "letters/%s/%s" % (block, words))
        low, high = (words.split("-") * 2)[:2]
        directory = os.path.join(sys.argv[1], "%s-%s" % (block, words))
        os.makedirs(directory, exist_ok=True)
        names = ["%03d.eml" % n for n in range(LETTERS)] + ["to25.eml"]
        for name in names:
            with open(os.path.join(directory, name), "wb") as out:
                out.write(writer.letter(60 if name == "to25.eml" else writer.random.randint(int(low), int(high))))
        print("%s-%s" % (block, words))


main()
