-- SPDX-License-Identifier: GPL-3.0-or-later
-- The second copy is refused for good; a message after it on the same connection is taken.
dofile("lib.lua")
local conn = connect_to_all()
client(conn)
send(conn, {"a@box.test"}, {from, subject}, news)
check_header(conn, "clean; body=1; threshold=2; host=mx.test")
send(conn, {"b@box.test"}, {from, subject}, news)
check(mt.getreply(conn) == SMFIR_REPLYCODE, "bulk is not refused")
check(mt.eom_check(conn, MT_SMTPREPLY, "550", "5.7.1", "bulk mail refused (id QUEUEID)"),
      "the reply is another one")
check(not mt.eom_check(conn, MT_HDRADD), "a header is added to a refused message")
send(conn, {"c@box.test"}, {from, subject}, "Something else: the ferry to the island leaves at nine from pier two, and whoever comes later waits for the next one until the evening.\r\n")
check_header(conn, "clean; body=1; threshold=2; host=mx.test")
mt.disconnect(conn)
mt.echo("passed")
