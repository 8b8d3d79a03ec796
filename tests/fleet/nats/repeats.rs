// SPDX-License-Identifier: GPL-3.0-or-later
//! A nats-server's answer for a message that it has received but not stored is no acknowledgement. A real server cannot be made to answer
//! so on demand, so a stand-in does, which implements just enough of the protocol for one request.

use crate::conformance::{batch, run};
use bulkmark_sync::Link;
use bulkmark_sync::log::nats::Nats;
use bulkmark_sync::log::{Log, LogError, Place, Settings};
use bulkmark_testing::PATIENCE;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Answers to a repeat that is not committed yet: the first from 2.10.27, the second from 2.15.1.
const HEARD: &str = r#"{"stream":"BULKMARK_BATCHES","seq":0,"duplicate":true}"#;
const IN_PROCESS: &str =
    r#"{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}"#;
const STORED: &str = r#"{"stream":"BULKMARK_BATCHES","seq":7}"#;

/// A stand-in for a nats-server.
struct Standin {
    port: u16,
    /// The ids and contents of all messages received.
    received: Arc<Mutex<Vec<(String, String)>>>,
}

impl Standin {
    /// Starts one that gives these answers one after the other, and repeats the last one.
    fn start(answers: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Vec<_>>>::default();
        let all = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let received = Arc::clone(&all);
                // A client may disconnect at any time.
                std::thread::spawn(move || serve_client(&stream, answers, &received));
            }
        });
        Self { port, received }
    }

    async fn log(&self) -> Nats {
        let log = format!("nats://127.0.0.1:{}", self.port);
        let settings =
            Settings { log: log.clone(), name: Some("mx1".to_owned()), reports: true, ..Settings::default() };
        Nats::new(&settings, Arc::new(Link::new(&log))).await.unwrap()
    }

    /// The number of messages received, which must all be the same.
    fn times(&self) -> usize {
        let received = self.received.lock().unwrap();
        assert!(received.iter().all(|one| *one == received[0]), "{received:?}");
        assert!(received.iter().all(|(id, batch)| !id.is_empty() && batch == "a batch"), "{received:?}");
        received.len()
    }
}

/// Serves one client.
fn serve_client(
    stream: &TcpStream,
    answers: &[&str],
    received: &Mutex<Vec<(String, String)>>,
) -> Option<std::convert::Infallible> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let info = r#"{"server_id":"N","server_name":"n0","version":"2.10.27","host":"127.0.0.1","port":4222,"headers":true,"max_payload":1048576,"proto":1}"#;
    write!(writer, "INFO {info}\r\n").ok()?;
    let mut inbox = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match *line.split_whitespace().collect::<Vec<_>>() {
            ["PING"] => write!(writer, "PONG\r\n").ok()?,
            ["SUB", _, sid] => inbox = sid.to_owned(),
            ["HPUB", "bulkmark.reports.mx1", reply, head, all] => {
                let (head, all): (usize, usize) = (head.parse().ok()?, all.parse().ok()?);
                let mut bytes = vec![0; all + 2];
                reader.read_exact(&mut bytes).ok()?;
                let head_and_payload = String::from_utf8(bytes).ok()?;
                let (head, payload) = head_and_payload.split_at(head);
                let id = head.lines().find_map(|line| line.strip_prefix("Nats-Msg-Id:"))?.trim().to_owned();
                let mut received = received.lock().unwrap();
                let answer = answers[received.len().min(answers.len() - 1)];
                received.push((id, payload.trim_end().to_owned()));
                write!(writer, "MSG {reply} {inbox} {}\r\n{answer}\r\n", answer.len()).ok()?;
            }
            _ => (),
        }
    }
}

/// Appends a batch to a stand-in with these answers. Returns the result, and the number of messages received. An append ends after four
/// seconds, in which a busy machine may ask less than `least` times; then it is repeated.
async fn append(answers: &'static [&'static str], least: usize) -> (Result<Place, LogError>, usize) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let server = Standin::start(answers);
        let result = server.log().await.append(batch(1, 1), b"a batch".to_vec()).await;
        let times = server.times();
        if times >= least && !matches!(result, Err(LogError::Unavailable(_))) {
            return (result, times);
        }
        assert!(Instant::now() < deadline, "it was received {times} times: {result:?}");
    }
}

/// If a server has received a batch and not stored it, it is asked again, under the same id, until it names the batch's place. If it never
/// does, that is an error, and the batch must be appended under another id.
#[test]
fn a_repeat_that_is_not_stored_is_no_acknowledgement() {
    run(async || {
        let (place, times) = append(&[HEARD, IN_PROCESS, HEARD, STORED], 4).await;
        assert_eq!((place.unwrap(), times), (Place(7), 4));
        for answers in [&[HEARD] as &[_], &[IN_PROCESS]] {
            let (result, _) = append(answers, 3).await;
            assert!(matches!(result, Err(LogError::NotStored(_))), "{answers:?}: {result:?}");
        }
    });
}
