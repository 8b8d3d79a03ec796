# The configuration belongs to this group, so it must exist before the files. From rpm 4.19 on rpm makes it itself.
getent group bulkmark >/dev/null || groupadd --system bulkmark
getent passwd bulkmark >/dev/null ||
    useradd --system --gid bulkmark --home-dir /var/lib/bulkmark --no-create-home --shell /usr/sbin/nologin \
        --comment "bulkmark" bulkmark
