# With 1 it is an upgrade. The socket first, since a connection would start the daemon again. No failure here, in a container
# without systemd for example, keeps the package.
daemon=@DAEMON@
if [ "$1" -eq 0 ] && command -v systemctl >/dev/null; then
    [ ! -d /run/systemd/system ] ||
        systemctl stop "bulkmark-$daemon.socket" "bulkmark-$daemon.service" "bulkmark-$daemon@*.service" || :
    # All instances of a template.
    for unit in "/usr/lib/systemd/system/bulkmark-$daemon"*; do
        systemctl --quiet --no-reload disable "${unit##*/}" || :
    done
fi
:
