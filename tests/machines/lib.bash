# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Machines for guides that need several of them: mail servers with Postfix, and letters that arrive there. To be sourced; see
# tests/container.bash.

# shellcheck source=tests/container.bash
. "$(dirname "${BASH_SOURCE[0]}")/../container.bash"

packages='' sent=0

# Root of each machine may log in on all others.
make_keys() {
    mkdir "$work/ssh"
    ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/id_ed25519"
    cp "$work/ssh/id_ed25519.pub" "$work/ssh/authorized_keys"
    echo "StrictHostKeyChecking accept-new" >"$work/ssh/config"
    chmod 700 "$work/ssh"
}

# A new machine, with only its name and root's logins on others: the guides' starting point. Its packages are there, but not
# installed: bulkmark for a mail server, whose name begins with mx, or else bulkmark-server.
make_machine() { # NAME base|LAYER GUIDE...
    local name=$1 layer=$2 package=bulkmark-server guide
    shift 2
    [[ $name != mx* ]] || package=bulkmark
    machine "$name" "$layer"
    name "$name" "$name.example.org"
    for guide; do cp "$root/docs/$guide.md" "$work/$name/root"; done
    cp "$root/tests/follow" "$root/tests/machines/mail.py" "$packages"/bulkmark-common_*.deb "$packages/$package"_*.deb "$work/$name/root"
    cp -rT "$work/ssh" "$work/$name/root/.ssh"
    chown -R root:root "$work/$name/root/.ssh"
}

install_packages() { # NAME
    quietly inside "$1" bash -c 'dpkg -i ./*.deb'
}

# Postfix with the line that the package prints, and clients that may set their address.
set_up_mail() { # MACHINE
    quietly inside "$1" bash -euc '
        postconf -e "myhostname = $(hostname).example.org" "mydestination = example.org" "inet_protocols = ipv4" "smtpd_tls_security_level = none" \
            "smtpd_authorized_xclient_hosts = 127.0.0.0/8" "disable_dns_lookups = yes" "smtpd_peername_lookup = no" "alias_maps ="
        useradd --create-home reader
        echo "smtpd_milters = { inet:127.0.0.1:8720, default_action=accept }" >>/etc/postfix/main.cf
        systemctl restart postfix'
}

# Copies of a letter, which arrive at a mail server from outside.
send() { # MACHINE LETTER COPIES
    quietly inside "$1" python3 -c "import mail; mail.equal('the answers', set(mail.send(mail.letter($2), $3)), {250})"
}

counts() { # MACHINE LETTER COUNT
    [[ $(inside "$1" python3 -c "import mail; print(mail.count($2))") == "$3" ]]
}

# Both mail servers know one new letter that arrived at one of them.
shared() { # FROM TO COPIES
    sent=$((sent + 1))
    send "$1" "$sent" "$3"
    wait_for counts "$2" "$sent" "$3"
}
