-- SPDX-License-Identifier: GPL-3.0-or-later
-- Headers of our name that came with a message are deleted, others stay.
dofile("lib.lua")
local conn = connect_to_all()
client(conn)
send(conn, {"a@box.test"},
     {{"x-bulkmark", "exempt"}, from, {"X-Bulkmark", "clean; body=1"}, subject}, news)
check_header(conn, "clean; body=1; threshold=20; host=mx.test")
check(mt.eom_check(conn, MT_HDRDELETE, "X-Bulkmark"), "the forged header is not deleted")
check(not mt.eom_check(conn, MT_HDRDELETE, "Subject"), "another header is deleted")
mt.disconnect(conn)
mt.echo("passed")
