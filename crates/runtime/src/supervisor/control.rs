//! The supervisor's end of the control socket, which is its standard input.
//!
//! Invariant: end-of-file here means that the host is gone, and nothing else does.

use super::job::{Job, Report, TERMINATE};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// The program's standard input and output, and the socket for its listeners if it needs any.
pub(super) struct Stdio {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) handover: Option<OwnedFd>,
}

pub(super) enum Word {
    Terminate,
    HostGone,
    Nothing,
}

/// Reads the job line; the descriptors come with its first bytes.
pub(super) fn receive_job() -> io::Result<(Job, Stdio)> {
    let control = io::stdin();
    let mut line = Vec::new();
    let mut descriptors = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut chunk = vec![0; 64 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            control.as_fd(),
            &mut [IoSliceMut::new(&mut chunk)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(&chunk[..received.bytes]);
    }
    let job = serde_json::from_slice(&line)?;
    let mut descriptors = descriptors.into_iter();
    let stdin = descriptors.next().ok_or(io::ErrorKind::InvalidData)?;
    let stdout = descriptors.next().ok_or(io::ErrorKind::InvalidData)?;
    Ok((job, Stdio { stdin, stdout, handover: descriptors.next() }))
}

/// Sends a report; a host that is gone needs none.
pub(super) fn send(report: &Report) {
    let Ok(mut line) = serde_json::to_vec(report) else { return };
    line.push(b'\n');
    let control = io::stdin();
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        match rustix::net::send(control.as_fd(), rest, rustix::net::SendFlags::NOSIGNAL) {
            Ok(sent) => rest = &rest[sent..],
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// What the host has sent, without waiting.
pub(super) fn listen() -> Word {
    let mut byte = [0_u8; 1];
    match rustix::net::recv(io::stdin().as_fd(), byte.as_mut_slice(), RecvFlags::DONTWAIT) {
        Ok((0, _)) => Word::HostGone,
        Ok(_) if byte[0] == TERMINATE => Word::Terminate,
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Word::Nothing,
        Err(_) => Word::HostGone,
    }
}
