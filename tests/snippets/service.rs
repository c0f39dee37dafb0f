//! A small HTTP server: one handler that sees one request after the other.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What was asked; header names in lower case.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Status, headers, body.
pub type Answer = (u16, Vec<(String, String)>, Vec<u8>);

/// Answers from now on, until the process ends; returns the address.
pub fn serve<State: Send + 'static>(state: Arc<Mutex<State>>, handle: fn(&mut State, &Request) -> Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            thread::spawn(move || answer(&stream, |request| handle(&mut state.lock().unwrap(), request)));
        }
    });
    address
}

/// One request of a connection, which is closed then.
fn answer(mut stream: &TcpStream, handle: impl FnOnce(&Request) -> Answer) {
    let Some(request) = read(stream) else { return };
    let (status, headers, body) = handle(&request);
    let length = (status != 204).then(|| ("Content-Length".to_owned(), body.len().to_string()));
    let lines: Vec<_> = length.into_iter().chain(headers).map(|(name, value)| format!("{name}: {value}")).collect();
    let head = format!("HTTP/1.1 {status} Answer\r\nConnection: close\r\n{}\r\n", lines.join("\r\n"));
    let body = if request.method == "HEAD" { &[] } else { body.as_slice() };
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).and_then(|()| stream.write_all(body));
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(ToOwned::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    if headers.get("expect").is_some_and(|expected| expected == "100-continue") {
        let mut stream = stream;
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let length = headers.get("content-length").map_or(Ok(0), |length| length.parse()).ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body })
}
