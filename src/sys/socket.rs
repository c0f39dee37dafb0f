//! A pair of sockets between fenced and its guard: whole messages, never blocking, a descriptor along when there is one.

#![expect(unsafe_code, reason = "a received descriptor is a number until somebody owns it; the runtime's poll")]

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// What one look at a socket gave.
#[derive(Debug)]
pub enum Received {
    /// A message of this length, and the descriptor that came along. Nothing is ever sent empty.
    Message(usize, Option<OwnedFd>),
    /// A message that did not fit.
    TooLong,
    /// A message whose descriptor could not be given to this process: it has no number left.
    Stripped,
    /// Nothing is there now.
    Nothing,
    /// The other side is gone.
    Closed,
}

/// Two connected ends, both close-on-exec and non-blocking.
///
/// # Errors
/// When no descriptor is left.
pub fn pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
}

/// Sends one message, whole or not at all.
///
/// # Errors
/// `EMSGSIZE` when it is longer than the socket's buffer, `EAGAIN` when the other side does not read, `EPIPE` when it
/// is gone.
pub fn send(socket: BorrowedFd<'_>, message: &[u8], descriptor: Option<BorrowedFd<'_>>) -> nix::Result<()> {
    let fds = descriptor.map(|fd| [fd.as_raw_fd()]);
    let rights = fds.as_ref().map(|fds| ControlMessage::ScmRights(fds));
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let control = rights.as_slice();
    loop {
        match sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(message)], control, flags, None) {
            Err(Errno::EINTR) => {}
            other => return other.map(|_| ()),
        }
    }
}

/// Takes the next message.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Received {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let mut space = cmsg_space!(RawFd);
    loop {
        let mut slices = [IoSliceMut::new(buffer)];
        let got = match recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), flags) {
            // The other side closed with unread messages in its queue; what it had sent before is still to be read.
            Err(Errno::EINTR | Errno::ECONNRESET) => continue,
            Err(Errno::EAGAIN) => return Received::Nothing,
            Err(_) => return Received::Closed,
            Ok(got) => got,
        };
        let descriptor = got.cmsgs().ok().and_then(|mut messages| {
            messages.find_map(|message| match message {
                ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
                _ => None,
            })
        });
        // SAFETY: the kernel made this descriptor for us in this very call; room for one was given, so there is one.
        let descriptor = descriptor.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        return match got.bytes {
            _ if got.flags.contains(MsgFlags::MSG_TRUNC) => Received::TooLong,
            _ if got.flags.contains(MsgFlags::MSG_CTRUNC) => Received::Stripped,
            0 => Received::Closed,
            length => Received::Message(length, descriptor),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn a_message_arrives_whole_with_its_descriptor() {
        let (ours, theirs) = pair().unwrap();
        let file = File::open("/proc/self/comm").unwrap();
        send(ours.as_fd(), b"hello", Some(file.as_fd())).unwrap();
        let mut buffer = [0; 16];
        let Received::Message(5, Some(fd)) = receive(theirs.as_fd(), &mut buffer) else { panic!("no message") };
        let mut text = String::new();
        File::from(fd).read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
        assert!(matches!(receive(theirs.as_fd(), &mut buffer), Received::Nothing));
    }

    #[test]
    fn what_was_sent_before_the_other_side_closed_with_unread_messages_still_arrives() {
        let (ours, theirs) = pair().unwrap();
        send(ours.as_fd(), b"unread", None).unwrap();
        send(theirs.as_fd(), b"last words", None).unwrap();
        drop(theirs);
        let mut buffer = [0; 16];
        assert!(matches!(receive(ours.as_fd(), &mut buffer), Received::Message(10, None)));
        assert!(matches!(receive(ours.as_fd(), &mut buffer), Received::Closed));
        assert_eq!(send(ours.as_fd(), b"x", None), Err(Errno::EPIPE));
    }

    #[test]
    fn a_message_longer_than_the_buffer_of_the_socket_is_an_error_and_not_a_hang() {
        let (ours, _theirs) = pair().unwrap();
        assert_eq!(send(ours.as_fd(), &vec![1; 64 << 20], None), Err(Errno::EMSGSIZE));
    }

    #[test]
    fn a_full_socket_is_an_error_and_not_a_hang() {
        let (ours, _theirs) = pair().unwrap();
        let full = (0..100_000).find_map(|_| send(ours.as_fd(), b"x", None).err());
        assert_eq!(full, Some(Errno::EAGAIN));
    }
}
