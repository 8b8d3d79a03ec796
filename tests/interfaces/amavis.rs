// SPDX-License-Identifier: GPL-3.0-or-later
//! Amavis, whose SpamAssassin uses its DCC plugin or this package's plugin.

use crate::asking::{judge, metrics, site, start};
use crate::spamassassin::{dcc, delivered, rules, write};
use bulkmark_testing::letters::count;
use bulkmark_testing::mta::free_port;
use bulkmark_testing::smtp::Client;
use bulkmark_testing::{Site, skip, wait_for_some};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Amavis, and the server that gets its mail; both end when dropped.
struct Amavis {
    programs: Vec<Child>,
    port: u16,
    directory: tempfile::TempDir,
}

impl Amavis {
    /// Starts it with a site's SpamAssassin files; none if it is not installed.
    fn start(site: &Site) -> Option<Self> {
        if !Path::new("/usr/sbin/amavisd").exists() {
            skip("amavisd-new is not installed");
            return None;
        }
        let (port, next, directory) = (free_port(), free_port(), tempfile::tempdir().unwrap());
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["home", "tmp", "db", "sent", "etc"] {
            fs::create_dir(directory.path().join(name)).unwrap();
            let mode = if name == "etc" { 0o755 } else { 0o777 };
            fs::set_permissions(directory.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let here = directory.path().display();
        let config = directory.path().join("etc/amavisd.conf");
        let text = format!(
            "use strict;\n$daemon_user = 'amavis'; $daemon_group = 'amavis'; $max_servers = 1;\n$MYHOME = $helpers_home = '{here}/home';\n\
             $TEMPBASE = '{here}/tmp'; $db_home = '{here}/db'; $enable_db = 0;\n$lock_file = '{here}/home/lock'; $pid_file = '{here}/home/pid';\n\
             $myhostname = 'mx.test'; $mydomain = 'test'; @local_domains_maps = (1);\n\
             $inet_socket_bind = '127.0.0.1'; $inet_socket_port = {port}; $unix_socketname = undef;\n\
             $forward_method = $notify_method = 'smtp:[127.0.0.1]:{next}';\n@bypass_virus_checks_maps = @bypass_banned_checks_maps = (1);\n\
             @bypass_spam_checks_maps = (0); $bypass_decode_parts = 1;\n\
             $sa_tag_level_deflt = -999; $sa_tag2_level_deflt = 100; $sa_kill_level_deflt = 1000; $sa_local_tests_only = 0;\n\
             $sa_configpath = '{}'; $sa_siteconfigpath = '{}';\n$do_syslog = 0; $log_level = 1; $logfile = '{here}/home/log';\n1;\n",
            site.path("rules").display(),
            site.path("spamassassin").display()
        );
        fs::write(&config, text).unwrap();
        let mut sink = Command::new("smtp-sink");
        sink.args(["-u", "root", "-d", &format!("{here}/sent/%M."), &format!("127.0.0.1:{next}"), "50"]);
        let mut amavis = Command::new("/usr/sbin/amavisd");
        amavis.arg("-c").arg(&config).arg("foreground").env_remove("PERL5LIB");
        let programs = [sink, amavis].map(|mut command| command.stdin(Stdio::null()).spawn().unwrap());
        let mut all = Self { programs: programs.into(), port, directory };
        for port in [next, port] {
            wait_for_some("Amavis", || {
                for program in &mut all.programs {
                    assert_eq!(program.try_wait().unwrap(), None, "it ended");
                }
                TcpStream::connect(("127.0.0.1", port)).ok()
            });
        }
        Some(all)
    }

    /// A message as Amavis passes it on.
    fn handed_on(&self, message: &[u8]) -> String {
        let sent = self.directory.path().join("sent");
        Client::connect(self.port).send("s@example.org", &["u@box.test"], message).expect(250);
        let files: Vec<_> = fs::read_dir(&sent).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1);
        let text = fs::read_to_string(&files[0]).unwrap();
        fs::remove_file(&files[0]).unwrap();
        text.replace("\r\n", "\n")
    }
}

impl Drop for Amavis {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            // Amavis has children, which it ends itself.
            let asked = Command::new("kill").arg(program.id().to_string()).status();
            if asked.is_ok_and(|status| status.success()) {
                let _ = program.wait();
            }
        }
    }
}

/// A message examined by Amavis counts once, and bulk hits the rule, with either plugin.
#[test]
fn bulk_hits_the_rules() {
    for rule in ["DCC_CHECK", "BULKMARK_BULK"] {
        let site = site("", "", "");
        let daemon = start(&site);
        if rule == "DCC_CHECK" {
            write(&site, &dcc(), &rules(&site));
        } else {
            crate::spamassassin_plugin::files(&site, "");
        }
        let Some(amavis) = Amavis::start(&site) else { return };
        let told = amavis.handed_on(&delivered(1));
        assert!(told.contains("X-Spam-Status: ") && !told.contains(rule), "{told}");
        assert_eq!(count(&site, &delivered(1)), 1, "{told}");
        daemon.log.wait_for(0, "client=h.example[192.0.2.7]");
        for n in 2..20 {
            if n % 2 == 0 {
                metrics(&site, "", &delivered(1));
            } else {
                judge(&site, "?ip=192.0.2.7", &delivered(1));
            }
        }
        let copy = String::from_utf8(delivered(1)).unwrap().replace("4TEST", "4LAST");
        let told = amavis.handed_on(copy.as_bytes());
        assert!(told.contains(rule), "{told}");
        assert_eq!(count(&site, &delivered(1)), 20);
    }
}
