# With 1 it is an upgrade. The sockets first, by which a connection would start the daemons again.
if [ "$1" -eq 0 ]; then
    for unit in bulkmark-milter.socket bulkmark-server.socket bulkmark-milter.service bulkmark-server.service; do
        systemctl --quiet --no-reload disable "$unit" || :
        [ ! -d /run/systemd/system ] || systemctl stop "$unit" || :
    done
fi
