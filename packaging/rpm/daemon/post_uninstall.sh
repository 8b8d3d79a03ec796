# Counts and user stay, and a changed configuration as milter.toml.rpmsave.
daemon=@DAEMON@

@USABLE@

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
    if [ "$1" -ne 0 ]; then
        if may_restart "bulkmark-$daemon.service" "/etc/bulkmark/$daemon.toml"; then
            systemctl try-restart "bulkmark-$daemon.service" || :
        fi
        restart_instances "$daemon"
    fi
fi
:
