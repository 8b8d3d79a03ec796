# Counts and user stay, and a configuration that was changed, as milter.toml.rpmsave.
daemon=@DAEMON@
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
    [ "$1" -eq 0 ] || systemctl try-restart "bulkmark-$daemon.service" "bulkmark-$daemon@*.service" || :
fi
:
