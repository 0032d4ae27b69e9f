//! A minimal HTTP/1.1 client: one request per connection, bodies whole or streamed.
//!
//! Invariant: a connection that ends in the middle of a response is an error, never a short body.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

/// How long a host may take for its next bytes.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Request {
    pub method: &'static str,
    /// With its query, encoded.
    pub target: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn get(target: impl Into<String>) -> Self {
        Self { method: "GET", target: target.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub fn post(target: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self { method: "POST", target: target.into(), headers: Vec::new(), body: body.into() }
            .header("content-type", "application/json")
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A response whose body is still to be read.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    connection: BufReader<TcpStream>,
    rest: Rest,
}

#[derive(Debug, Clone, Copy)]
enum Rest {
    Bytes(u64),
    Chunks,
    UntilClosed,
    Nothing,
}

pub async fn send(address: SocketAddr, request: &Request) -> io::Result<Response> {
    send_from(Ipv4Addr::UNSPECIFIED, address, request).await
}

/// The same from one of the machine's own addresses, such as any of 127.0.0.0/8.
pub async fn send_from(
    from: Ipv4Addr,
    address: SocketAddr,
    request: &Request,
) -> io::Result<Response> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let mut stream = with_timeout(socket.connect(address)).await?;
    stream.set_nodelay(true)?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    head += &format!("host: {address}\r\nconnection: close\r\n");
    if request.method != "GET" {
        head += &format!("content-length: {}\r\n", request.body.len());
    }
    for (name, value) in &request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let bytes = [head.as_bytes(), &request.body].concat();
    with_timeout(stream.write_all(&bytes)).await?;
    Response::read(BufReader::new(stream)).await
}

impl Response {
    async fn read(mut connection: BufReader<TcpStream>) -> io::Result<Self> {
        let status_line = read_line(&mut connection).await?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| invalid(&format!("status line `{status_line}`")))?;
        let mut headers = Vec::new();
        loop {
            let line = read_line(&mut connection).await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| invalid("header"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Self { status, headers, connection, rest: Rest::UntilClosed };
        if response.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            response.rest = Rest::Chunks;
        } else if let Some(length) = response.header("content-length") {
            response.rest = Rest::Bytes(length.parse().map_err(|_| invalid("content-length"))?);
        }
        Ok(response)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(header, _)| header == name);
        header.map(|(_, value)| value.as_str())
    }

    /// The next part of the body; `None` once it is complete.
    pub async fn next_part(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.rest {
            Rest::Nothing | Rest::Bytes(0) => Ok(None),
            Rest::Bytes(left) => {
                let part = self.read_some(left).await?;
                if part.is_empty() {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                self.rest = Rest::Bytes(left - part.len() as u64);
                Ok(Some(part))
            }
            Rest::UntilClosed => {
                let part = self.read_some(u64::MAX).await?;
                Ok((!part.is_empty()).then_some(part))
            }
            Rest::Chunks => self.next_chunk().await,
        }
    }

    /// The whole body.
    pub async fn body(mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(part) = self.next_part().await? {
            body.extend(part);
        }
        Ok(body)
    }

    async fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = read_line(&mut self.connection).await?;
        let size = size.split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).map_err(|_| invalid("chunk size"))?;
        let mut chunk = vec![0; size];
        with_timeout(self.connection.read_exact(&mut chunk)).await?;
        let end = read_line(&mut self.connection).await?;
        if !end.is_empty() {
            return Err(invalid("end of a chunk"));
        }
        if size == 0 {
            self.rest = Rest::Nothing;
            return Ok(None);
        }
        Ok(Some(chunk))
    }

    async fn read_some(&mut self, at_most: u64) -> io::Result<Vec<u8>> {
        let bytes = with_timeout(self.connection.fill_buf()).await?;
        let count = bytes.len().min(usize::try_from(at_most).unwrap_or(usize::MAX));
        let part = bytes[..count].to_vec();
        self.connection.consume(count);
        Ok(part)
    }
}

async fn read_line(connection: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    with_timeout(connection.read_line(&mut line)).await?;
    match line.strip_suffix("\r\n") {
        Some(text) => Ok(text.to_owned()),
        None => Err(ErrorKind::UnexpectedEof.into()),
    }
}

async fn with_timeout<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("not HTTP: {what}"))
}
