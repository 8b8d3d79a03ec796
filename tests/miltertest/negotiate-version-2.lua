-- SPDX-License-Identifier: GPL-3.0-or-later
-- An MTA of milter protocol version 2 that offers next to nothing: to add headers, and to keep the client to itself.
dofile("lib.lua")
local conn = connect(2, 1)
check(not mt.test_action(conn, SMFIF_QUARANTINE), "it asks for an action that is not offered")
check(mt.test_action(conn, SMFIF_ADDHDRS), "it does not ask to add headers")
check(not mt.test_option(conn, SMFIP_NR_HDR), "it asks for a step that is not offered")
client(conn)
send(conn, {"a@box.test", "b@box.test"}, {from, subject}, news)
-- Two recipients, one message.
check_header(conn, "clean; body=2; threshold=20; host=mx.test", 1)
mt.disconnect(conn)
mt.echo("passed")
