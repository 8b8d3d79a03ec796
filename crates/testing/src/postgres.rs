// SPDX-License-Identifier: GPL-3.0-or-later
//! A real PostgreSQL, private to one test.

use super::mount::Mount;
use super::mta::free_port;
use super::process::start_server;
use super::{PATIENCE, repository, skip, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use tempfile::TempDir;

/// The role that may create roles and has the database, and its password.
pub const OWNER: &str = "fleet";
/// The password of the log's owner.
pub const OWNER_PASSWORD: &str = "the owner's";

/// The database.
pub const DATABASE: &str = "bulkmark";

/// The script's exit code for a program that is missing on this machine.
const EX_UNAVAILABLE: i32 = 69;

/// A cluster with an empty database, and its server.
pub struct Postgres {
    _disk: Option<Mount>,
    _template: Option<Arc<TempDir>>,
    directory: TempDir,
    /// Its port.
    pub port: u16,
    /// Environment variables for the next start, without blanks.
    pub environment: Vec<(String, String)>,
    /// The script that ends it, and the number of the server's first process; none while it is killed.
    running: Mutex<Option<(Child, Pid)>>,
}

fn script() -> PathBuf {
    repository().join("tests/mta/postgres")
}

/// The cluster of which all others of this process are copies, since making one takes seconds of processor time. It is removed with the
/// last copy. Without PostgreSQL it says so and returns None.
fn template() -> Option<Arc<TempDir>> {
    static LAST: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut last = LAST.lock().unwrap();
    if let Some(template) = last.upgrade() {
        return Some(template);
    }
    let directory = tempfile::tempdir().unwrap();
    // If root makes it, it belongs to another user.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let sql = format!(
        "create role {OWNER} login createrole password '{}'\ncreate database {DATABASE} owner {OWNER}",
        OWNER_PASSWORD.replace('\'', "''")
    );
    let cluster = directory.path().join("cluster");
    let made = Command::new(script()).arg("init").arg(&cluster).arg(sql).output().unwrap();
    if made.status.code() == Some(EX_UNAVAILABLE) {
        skip(&String::from_utf8_lossy(&made.stderr));
        return None;
    }
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let template = Arc::new(directory);
    *last = Arc::downgrade(&template);
    Some(template)
}

impl Postgres {
    /// Makes a running server. If there is no PostgreSQL, it says so and returns None.
    pub fn start() -> Option<Self> {
        let new = Self::init()?;
        new.run();
        new.wait_until_ready();
        Some(new)
    }

    /// Makes a server that is not started yet.
    pub fn init() -> Option<Self> {
        Self::init_on(None)
    }

    /// The same, on a separate file system of so many megabytes. None, too, where none can be mounted.
    pub fn init_on(disk: Option<u32>) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mount = |size| Mount::new(&directory.path().join("cluster"), &format!("size={size}m"));
        let disk = match disk.map(mount) {
            Some(None) => return None,
            Some(mounted) => mounted,
            None => None,
        };
        // If root starts it, it runs as another user.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let template = template()?;
        let cluster = directory.path().join("cluster");
        fs::create_dir_all(&cluster).unwrap();
        let copy = Command::new("cp").arg("-a").arg(template.path().join("cluster/.")).arg(cluster).output();
        let copy = copy.unwrap();
        assert!(copy.status.success(), "{}", String::from_utf8_lossy(&copy.stderr));
        Some(Self::of(disk, Some(template), directory))
    }

    fn of(disk: Option<Mount>, template: Option<Arc<TempDir>>, directory: TempDir) -> Self {
        Self {
            _disk: disk,
            _template: template,
            directory,
            port: free_port(),
            environment: Vec::new(),
            running: Mutex::new(None),
        }
    }

    /// Revokes the rights that the guide revokes, by the guide's commands.
    pub fn harden(&self) {
        let guide = fs::read_to_string(repository().join("docs/fleet-postgres.md")).unwrap();
        let (_, block) = guide.split_once("    echo \"DO ").expect("the guide revokes functions");
        let (sql, _) = block.split_once("\" \\\n").unwrap();
        let sql =
            format!("DO {sql}").replace("\\\n", "").replace("\\$", "$").replace("bulkmark_fleet", OWNER);
        self.sql(&sql).unwrap();
    }

    /// The directory of its data, `data`, and its socket.
    pub fn cluster(&self) -> PathBuf {
        self.directory.path().join("cluster")
    }

    /// A file for the test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file with a secret.
    pub fn secret(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Adds lines to one of its configuration files, `postgresql.conf` or `pg_hba.conf`; in the latter the first match counts.
    pub fn configure(&self, file: &str, lines: &str) {
        let path = self.cluster().join("data").join(file);
        let old = fs::read_to_string(&path).unwrap();
        let new = if file == "pg_hba.conf" { format!("{lines}\n{old}") } else { format!("{old}\n{lines}\n") };
        fs::write(&path, new).unwrap();
    }

    /// Starts it if it is stopped, without waiting until it is ready.
    pub fn run(&self) {
        let mut running = self.running.lock().unwrap();
        // It may have ended already.
        if running.as_ref().is_some_and(|(_, pid)| is_alive(*pid)) {
            return;
        }
        let mut command = Command::new(script());
        command.arg("run").arg(self.cluster()).arg(self.port.to_string());
        let (child, pid) = start_server(command.env("POSTGRES_WITH", self.environment()));
        *running = Some((child, Pid::from_raw(pid.parse().unwrap()).unwrap()));
    }

    fn environment(&self) -> String {
        self.environment.iter().map(|(name, value)| format!("{name}={value} ")).collect()
    }

    /// Waits until it answers.
    pub fn wait_until_ready(&self) {
        wait_until("PostgreSQL", || {
            let said = || fs::read_to_string(self.cluster().join("log")).unwrap_or_default();
            self.sql("select 1").map(drop).map_err(|why| format!("{why}\n{}", said()))
        });
    }

    /// Kills all of its processes at the same time, and waits until they are gone.
    pub fn kill_all(&self) {
        let Some((mut child, pid)) = self.running.lock().unwrap().take() else { return };
        // A process that starts after the search for children would survive, and keep the memory that the next server needs.
        let _ = kill_process(pid, Signal::STOP);
        let deadline = Instant::now() + PATIENCE;
        while is_alive(pid) && state(pid) != Some('T') {
            assert!(Instant::now() < deadline, "a stopped process goes on");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let children = children(pid);
        for pid in [&[pid][..], &children].concat() {
            // One may have ended already.
            let _ = kill_process(pid, Signal::KILL);
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        while children.iter().any(|&pid| is_alive(pid)) {
            assert!(Instant::now() < deadline, "killed processes go on");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Kills a client's backend process, or, without one, another process: PostgreSQL then ends all of them and starts over.
    pub fn kill_one(&self) {
        let pid = self.running.lock().unwrap().as_ref().expect("it runs").1;
        let children = children(pid);
        let is_client = |pid: &&Pid| command_line(**pid).contains("127.0.0.1(");
        let one = children.iter().find(is_client).or_else(|| children.first()).expect("it has processes");
        let _ = kill_process(*one, Signal::KILL);
    }

    /// Stops or continues all processes, without notice.
    pub fn hang(&self, hang: bool) {
        let pid = self.running.lock().unwrap().as_ref().expect("it runs").1;
        for pid in [&[pid][..], &children(pid)].concat() {
            let _ = kill_process(pid, if hang { Signal::STOP } else { Signal::CONT });
        }
    }

    /// Its processes.
    pub fn processes(&self) -> Vec<u32> {
        let pid = self.running.lock().unwrap().as_ref().expect("it runs").1;
        let all = [&[pid][..], &children(pid)].concat();
        all.iter().map(|pid| u32::try_from(pid.as_raw_pid()).unwrap()).collect()
    }

    /// The average memory that a client's process does not share, in kB.
    pub fn memory_of_a_connection(&self) -> u64 {
        let pid = self.running.lock().unwrap().as_ref().expect("it runs").1;
        let mut clients = children(pid);
        clients.retain(|&pid| command_line(pid).contains("127.0.0.1("));
        let private = |pid: &Pid| {
            let rollup =
                fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_pid())).unwrap_or_default();
            let lines = rollup.lines().filter(|line| line.starts_with("Private_"));
            lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>()
        };
        clients.iter().map(private).sum::<u64>() / clients.len().max(1) as u64
    }

    /// Cuts off all connections.
    pub fn cut(&self) -> Result<String, String> {
        let others = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = \
                      'client backend'";
        self.sql(others)
    }

    /// Kills it, copies all of its data, and restarts it.
    pub fn save(&self) {
        self.kill_all();
        self.copy("cluster/data", "saved");
        self.run();
        self.wait_until_ready();
    }

    /// Kills it, and restarts it with the copy instead of its data.
    pub fn put_back(&self) {
        self.kill_all();
        fs::remove_dir_all(self.path("cluster/data")).unwrap();
        self.copy("saved", "cluster/data");
        self.run();
        self.wait_until_ready();
    }

    fn copy(&self, from: &str, to: &str) {
        let copied = Command::new("cp").arg("-a").args([self.path(from), self.path(to)]).status().unwrap();
        assert!(copied.success());
    }

    /// Makes a standby, which follows a moment behind and takes no writes until it is promoted.
    pub fn standby(&self) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let made = Command::new(script())
            .arg("follow")
            .args([directory.path().join("cluster"), self.cluster()])
            .arg(self.port.to_string())
            .status()
            .unwrap();
        assert!(made.success());
        let new = Self::of(None, None, directory);
        new.run();
        new.wait_until_ready();
        new
    }

    /// Runs SQL as the superuser in the fleet's database. Returns the output: a line for each row, columns separated by `|`.
    pub fn sql(&self, sql: &str) -> Result<String, String> {
        self.sql_as("postgres", sql)
    }

    /// The same as any role. The socket needs no password.
    pub fn sql_as(&self, role: &str, sql: &str) -> Result<String, String> {
        let output = self.psql(role, sql);
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// The same, with notices.
    pub fn both_as(&self, role: &str, sql: &str) -> Result<String, String> {
        let output = self.psql(role, sql);
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let both = format!("{stdout}{stderr}");
        if output.status.success() { Ok(both) } else { Err(both) }
    }

    /// Runs SQL as the superuser until the result is dropped.
    pub fn sql_in_background(&self, sql: &str) -> Background {
        Background(self.psql_command("postgres", sql).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Runs SQL as this role. Keeps its connection, and any open transaction, until the result is dropped.
    pub fn hold(&self, role: &str, sql: &str) -> Background {
        let held = self.idle(role, sql);
        self.wait_for_state(role, "idle in transaction");
        held
    }

    /// The same without a transaction. Like `psql`, it reads nothing that the server sends meanwhile.
    pub fn idle(&self, role: &str, sql: &str) -> Background {
        let command = self.psql_command(role, "");
        // Each line of standard input is a separate statement.
        let arguments: Vec<_> = command.get_args().collect();
        let mut new = Command::new(command.get_program());
        let of_input = &arguments[..arguments.len() - 2];
        new.args(of_input).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = new.spawn().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{sql}").unwrap();
        self.wait_for_state(role, "idle%");
        Background(child)
    }

    fn wait_for_state(&self, role: &str, state: &str) {
        wait_until("a connection that is held open", || {
            let held = "select count(*) from pg_stat_activity where query <> '' and state like ";
            let found = self.sql(&format!("{held}'{state}' and usename = '{role}'"))?;
            if found == "0" { Err(found) } else { Ok(()) }
        });
    }

    fn psql(&self, role: &str, sql: &str) -> std::process::Output {
        self.psql_command(role, sql).output().unwrap()
    }

    fn psql_command(&self, role: &str, sql: &str) -> Command {
        let bin = Command::new(script()).arg("find").output().unwrap().stdout;
        let psql = Path::new(String::from_utf8(bin).unwrap().trim()).join("psql");
        let mut command = Command::new(psql);
        command
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", role, "-d", DATABASE, "-p"])
            .arg(self.port.to_string())
            .arg("-h")
            .arg(self.cluster())
            .args(["-c", sql])
            .env("PGCONNECT_TIMEOUT", "5")
            // One that waits for a lock of somebody else fails at some time.
            .env("PGOPTIONS", format!("-c statement_timeout={}s", PATIENCE.as_secs()));
        command
    }

    /// Gives a file to the server's user, which PostgreSQL requires.
    pub fn give(&self, path: &Path) {
        let owner = fs::metadata(self.cluster().join("data")).unwrap();
        std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
}

/// A background session of psql.
pub struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn children(parent: Pid) -> Vec<Pid> {
    let path = format!("/proc/{}/task/{}/children", parent.as_raw_pid(), parent.as_raw_pid());
    let list = fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn command_line(pid: Pid) -> String {
    fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default()
}

/// Whether it runs: a dead process may remain in the table for a while, until its parent waits for it.
fn is_alive(pid: Pid) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The letter of its state, as in proc(5); none where there is no such process.
fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}
