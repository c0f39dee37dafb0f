//! A TCP proxy that stands before one server and gets in the way, switchable at any moment.
//!
//! What is swallowed is gone: a connection that lost bytes in a direction never passes any in that direction again, as
//! a stream with a hole would be something that no network does. Connections made later follow the mode of their time.

use nix::sys::socket::{setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What happens to bytes and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Pass,
    /// Bytes of both directions are swallowed; connections stay open, new ones are accepted and hang.
    Cut,
    /// Requests arrive, replies are swallowed.
    DropReplies,
    /// Bytes are held and pass later, as with a stopped server or a lost packet.
    Hold,
    /// Bytes of each direction arrive this much later.
    Delay(Duration),
    /// So many bytes a second pass in each direction.
    Throttle(u32),
    /// Connections are closed, new ones as well.
    Refuse,
}

/// The proxy; it ends when it is dropped.
pub struct Proxy {
    /// `host:port` to connect to.
    pub address: String,
    shared: Arc<Shared>,
}

struct Shared {
    target: String,
    mode: Mutex<Mode>,
    connections: Mutex<Vec<Arc<Connection>>>,
    over: AtomicBool,
    /// How many pieces of replies have come from the server, and which of them is the first one that is swallowed on its
    /// connection.
    replies: AtomicUsize,
    lost_reply: AtomicUsize,
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
    deaf_to_requests: AtomicBool,
    deaf_to_replies: AtomicBool,
    /// It ends by a reset, which a shutdown would forestall.
    resetting: AtomicBool,
}

impl Proxy {
    pub fn before(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let shared = Arc::new(Shared {
            target: target.to_owned(),
            mode: Mutex::new(Mode::Pass),
            connections: Mutex::default(),
            over: AtomicBool::new(false),
            replies: AtomicUsize::new(0),
            lost_reply: AtomicUsize::new(usize::MAX),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Self { address, shared }
    }

    pub fn set(&self, mode: Mode) {
        *lock(&self.shared.mode) = mode;
        if mode == Mode::Refuse {
            self.shared.close_all();
        }
    }

    /// Swallows the replies on the connections that are open now; new ones pass.
    pub fn drop_replies_of_open_connections(&self) {
        for connection in lock(&self.shared.connections).iter() {
            connection.deaf_to_replies.store(true, Ordering::SeqCst);
        }
    }

    /// Swallows the `nth` piece of a reply from now on, counted from 0 over all connections, and with it whatever comes
    /// later on its connection.
    pub fn lose_reply(&self, nth: usize) {
        self.shared.lost_reply.store(self.replies() + nth, Ordering::SeqCst);
    }

    /// How many pieces of replies have come from the server.
    pub fn replies(&self) -> usize {
        self.shared.replies.load(Ordering::SeqCst)
    }

    /// Resets the connections that are open now: both ends see an error, not an end. New ones pass.
    pub fn reset(&self) {
        for connection in lock(&self.shared.connections).drain(..) {
            connection.reset();
        }
    }

    /// Resets one of the open connections, the `nth` of them.
    pub fn reset_one(&self, nth: usize) {
        let mut connections = lock(&self.shared.connections);
        if !connections.is_empty() {
            let at = nth % connections.len();
            connections.swap_remove(at).reset();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.shared.close_all();
        TcpStream::connect(&self.address).ok();
    }
}

impl Shared {
    fn mode(&self) -> Mode {
        *lock(&self.mode)
    }

    fn over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn close_all(&self) {
        for connection in lock(&self.connections).drain(..) {
            connection.close();
        }
    }
}

impl Connection {
    fn close(&self) {
        self.client.shutdown(Shutdown::Both).ok();
        self.server.shutdown(Shutdown::Both).ok();
    }

    /// To close with a linger of no time sends a reset; the pumps' copies go when their reads end.
    fn reset(&self) {
        let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
        for end in [&self.client, &self.server] {
            setsockopt(end, sockopt::Linger, &at_once).ok();
            end.shutdown(Shutdown::Read).ok();
        }
        self.resetting.store(true, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.over() {
            return;
        }
        let Ok(client) = client else { continue };
        if shared.mode() == Mode::Refuse {
            continue;
        }
        let Ok(server) = TcpStream::connect(&shared.target) else { continue };
        client.set_nodelay(true).ok();
        server.set_nodelay(true).ok();
        let connection = Arc::new(Connection {
            client,
            server,
            deaf_to_requests: AtomicBool::new(false),
            deaf_to_replies: AtomicBool::new(false),
            resetting: AtomicBool::new(false),
        });
        let mut connections = lock(&shared.connections);
        connections.retain(|open| Arc::strong_count(open) > 1);
        connections.push(Arc::clone(&connection));
        drop(connections);
        for replies in [false, true] {
            let (shared, connection) = (Arc::clone(shared), Arc::clone(&connection));
            thread::spawn(move || {
                pump(&shared, &connection, replies);
                if !connection.resetting.load(Ordering::SeqCst) {
                    connection.close();
                }
            });
        }
    }
}

fn pump(shared: &Shared, connection: &Connection, replies: bool) {
    let (mut from, mut to, deaf) = if replies {
        (&connection.server, &connection.client, &connection.deaf_to_replies)
    } else {
        (&connection.client, &connection.server, &connection.deaf_to_requests)
    };
    let mut buffer = [0; 16 * 1024];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let nth = if replies { shared.replies.fetch_add(1, Ordering::SeqCst) } else { 0 };
        match shared.mode() {
            Mode::Delay(span) => thread::sleep(span),
            Mode::Throttle(rate) => thread::sleep(passing(count, rate)),
            _ => {}
        }
        while shared.mode() == Mode::Hold && !shared.over() {
            thread::sleep(Duration::from_millis(2));
        }
        // The mode of the moment at which the bytes would arrive.
        let lost = replies && nth == shared.lost_reply.load(Ordering::SeqCst);
        let swallow = lost || shared.mode() == Mode::Cut || (replies && shared.mode() == Mode::DropReplies);
        if swallow {
            deaf.store(true, Ordering::SeqCst);
        }
        if !deaf.load(Ordering::SeqCst) && to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// How long so many bytes take at this rate.
fn passing(count: usize, rate: u32) -> Duration {
    Duration::from_secs(1) * u32::try_from(count).unwrap_or(u32::MAX) / rate.max(1)
}
