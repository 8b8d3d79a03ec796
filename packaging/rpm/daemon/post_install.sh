daemon=@DAEMON@
[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
if [ "$1" -eq 1 ] && [ "$daemon" = milter ] && command -v systemctl >/dev/null; then
    systemctl --quiet --no-reload enable bulkmark-milter.service || :
    [ ! -d /run/systemd/system ] || systemctl start bulkmark-milter.service || :
fi
if [ "$1" -eq 1 ] && [ "$daemon" = milter ]; then
    cat <<'END'
bulkmark: to have Postfix ask the milter, put this line into /etc/postfix/main.cf, and "postfix reload":
    smtpd_milters = { inet:127.0.0.1:8720, default_action=accept }
END
fi
:
