//! Stdin and stdout as the wire.
//!
//! Invariant: only the wire uses stdout. On Unix the descriptors are replaced first: output of a runner or its
//! children goes to stderr, and only the SDK reads stdin.

use crate::lines;
use crate::plugin::CheckedPlugin;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

const READ_BYTES: usize = 64 * 1024;

pub(crate) async fn serve(plugin: Arc<CheckedPlugin>) -> io::Result<()> {
    let (reader, writer) = open()?;
    let served = lines::serve(plugin, BufReader::with_capacity(READ_BYTES, reader), writer).await;
    match served {
        // The host closed the connection: a regular end.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        served => served,
    }
}

type Ends = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

#[cfg(unix)]
fn open() -> io::Result<Ends> {
    use std::fs::File;
    use std::os::fd::AsFd;
    use tokio::net::unix::pipe::{Receiver, Sender};

    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    // Pipes are read and written directly; terminals and files need blocking threads.
    let reader: Box<dyn AsyncRead + Send + Unpin> =
        match Receiver::from_owned_fd(input.try_clone()?) {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::fs::File::from_std(File::from(input))),
        };
    let writer: Box<dyn AsyncWrite + Send + Unpin> =
        match Sender::from_owned_fd(output.try_clone()?) {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::fs::File::from_std(File::from(output))),
        };
    Ok((reader, writer))
}

#[cfg(not(unix))]
fn open() -> io::Result<Ends> {
    Ok((Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout())))
}
