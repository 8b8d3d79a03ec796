// SPDX-License-Identifier: GPL-3.0-or-later
//! A name server on loopback with the answers that a test wants, or without answers.

use super::{PATIENCE, skip};
use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

const A: u16 = 1;
const TXT: u16 = 16;

/// The answer to a question.
#[derive(Clone)]
enum Answer {
    Record(Vec<u8>),
    /// A server failure.
    Failure,
    /// An empty answer.
    Silence,
}

#[derive(Default)]
struct State {
    answers: HashMap<(String, u16), Answer>,
    asked: Vec<String>,
    time_to_live: u32,
    is_silent: bool,
}

/// A name server that runs until the process ends.
#[derive(Clone)]
pub struct Dns {
    /// Address and port.
    pub address: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Dns {
    /// Starts a server without names. Its answers must not be cached.
    pub fn start() -> Self {
        Self::on(UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    /// Starts a server on the usual port of another loopback address, for programs with a fixed port. None where that is not
    /// allowed.
    pub fn start_on_usual_port() -> Option<Self> {
        let [_, a, b, _] = std::process::id().to_be_bytes();
        let socket = (1..=99).find_map(|c| UdpSocket::bind((Ipv4Addr::new(127, 53 ^ a, b, c), 53)).ok());
        if socket.is_none() {
            skip("port 53 cannot be listened on (not root?)");
        }
        socket.map(Self::on)
    }

    fn on(socket: UdpSocket) -> Self {
        let dns = Self { address: socket.local_addr().unwrap().to_string(), state: Arc::default() };
        let state = Arc::clone(&dns.state);
        std::thread::spawn(move || {
            let mut packet = [0; 4096];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                let Some(reply) = answer(&packet[..length], &state) else { continue };
                let _ = socket.send_to(&reply, from);
            }
        });
        dns
    }

    fn set(&self, name: &str, kind: u16, answer: Answer) {
        self.state.0.lock().unwrap().answers.insert((name.to_owned(), kind), answer);
    }

    /// Gives the name this text.
    pub fn text(&self, name: &str, text: &str) {
        let pieces = text.as_bytes().chunks(255);
        let data = pieces.flat_map(|piece| [&[u8::try_from(piece.len()).unwrap()], piece].concat());
        self.set(name, TXT, Answer::Record(data.collect()));
    }

    /// Gives the name this address.
    pub fn at(&self, name: &str, address: &str) {
        self.set(name, A, Answer::Record(address.parse::<Ipv4Addr>().unwrap().octets().to_vec()));
    }

    /// Removes all records of the name.
    pub fn remove(&self, name: &str) {
        self.state.0.lock().unwrap().answers.retain(|(known, _), _| known != name);
    }

    /// Sets whether a question for the name's text fails.
    pub fn fails_for(&self, name: &str) {
        self.set(name, TXT, Answer::Failure);
    }

    /// Leaves questions for the name's text without an answer.
    pub fn is_silent_for(&self, name: &str) {
        self.set(name, TXT, Answer::Silence);
    }

    /// Stops answering all questions, or starts again.
    pub fn be_silent(&self, is_silent: bool) {
        self.state.0.lock().unwrap().is_silent = is_silent;
    }

    /// Lets answers be cached for so many seconds from now on.
    pub fn keep(&self, seconds: u32) {
        self.state.0.lock().unwrap().time_to_live = seconds;
    }

    /// Returns how often this name was requested.
    pub fn asked(&self, name: &str) -> usize {
        self.state.0.lock().unwrap().asked.iter().filter(|asked| *asked == name).count()
    }

    /// Returns all requested names.
    pub fn all_asked(&self) -> Vec<String> {
        self.state.0.lock().unwrap().asked.clone()
    }

    /// Waits for a question for this name.
    #[track_caller]
    pub fn wait_for(&self, name: &str) {
        let (state, told) = &*self.state;
        let (mut state, deadline) = (state.lock().unwrap(), Instant::now() + PATIENCE);
        while !state.asked.iter().any(|asked| asked == name) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "nobody asked for {name}, but for {:?}", state.asked);
            state = told.wait_timeout(state, left).unwrap().0;
        }
    }
}

/// The reply to a packet, if there is one (RFC 1035, 4).
fn answer(packet: &[u8], (state, told): &(Mutex<State>, Condvar)) -> Option<Vec<u8>> {
    let (mut name, mut at) = (String::new(), 12);
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        name += &String::from_utf8_lossy(packet.get(at..at + length)?).to_lowercase();
        name.push('.');
        at += length;
    }
    let name = name.trim_end_matches('.').to_owned();
    let kind = u16::from_be_bytes(packet.get(at..at + 2)?.try_into().unwrap());
    let question = &packet[12..at + 4];
    let mut state = state.lock().unwrap();
    state.asked.push(name.clone());
    told.notify_all();
    let is_known = state.answers.keys().any(|(known, _)| *known == name);
    let answer = state.answers.get(&(name, kind)).cloned();
    let (code, data) = match answer {
        _ if state.is_silent => return None,
        Some(Answer::Silence) => return None,
        Some(Answer::Failure) => (2, None),
        Some(Answer::Record(data)) => (0, Some(data)),
        None => (if is_known { 0 } else { 3 }, None),
    };
    let mut reply =
        [&packet[..2], &[0x81, 0x80 | code, 0, 1, 0, u8::from(data.is_some()), 0, 0, 0, 0]].concat();
    reply.extend_from_slice(question);
    if let Some(data) = data {
        reply.extend_from_slice(&[0xC0, 12]);
        reply.extend_from_slice(&question[question.len() - 4..]);
        reply.extend_from_slice(&state.time_to_live.to_be_bytes());
        reply.extend_from_slice(&u16::try_from(data.len()).unwrap().to_be_bytes());
        reply.extend_from_slice(&data);
    }
    Some(reply)
}
