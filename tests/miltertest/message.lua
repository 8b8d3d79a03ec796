-- SPDX-License-Identifier: GPL-3.0-or-later
-- Messages on one connection, and one on another: each gets one header and no other change.
dofile("lib.lua")
local conn = connect_to_all()
client(conn)
for n = 1, 3 do
    send(conn, {"a@box.test"}, {from, subject}, news)
    check_header(conn, "clean; body=" .. n .. "; threshold=20; host=mx.test")
    check(mt.getheader(conn, "X-Bulkmark", 1) == nil, "there are two headers")
    check(not mt.eom_check(conn, MT_HDRDELETE), "a header is deleted")
    check(not mt.eom_check(conn, MT_HDRINSERT), "a header is inserted")
    check(not mt.eom_check(conn, MT_BODYCHANGE), "the body is changed")
    check(not mt.eom_check(conn, MT_QUARANTINE), "it is quarantined")
end
mt.disconnect(conn)
conn = connect_to_all()
client(conn)
send(conn, {"a@box.test"}, {from, subject}, "Something else: the ferry to the island leaves at nine from pier two, and whoever comes later waits for the next one until the evening.\r\n")
check_header(conn, "clean; body=1; threshold=20; host=mx.test")
mt.disconnect(conn)
mt.echo("passed")
