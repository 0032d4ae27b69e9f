//! MIME types: detected from the first bytes, and checked against the declared type.
//!
//! Invariant: bytes whose type has a signature are never stored under another such type, nor under a type whose
//! signature they lack; text is never stored under a binary type, and the other way round.

mod family;

use family::{Family, family};

/// How much of the beginning is read.
pub const HEAD_BYTES: usize = 8 * 1024;
/// Longest type that is accepted.
const TYPE_BYTES_MAX: usize = 127;

pub const OCTETS: &str = "application/octet-stream";
pub const TEXT: &str = "text/plain";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Disagree {
    #[error("`{0}` is not a MIME type")]
    NotAType(String),
    #[error("the bytes are not `{declared}`, they look like `{found}`")]
    Looks { declared: String, found: String },
}

/// The type to store: the declared one if the bytes may be that, else the detected one.
pub fn agree(declared: Option<&str>, head: &[u8]) -> Result<String, Disagree> {
    let declared = declared.map(str::trim).filter(|declared| !declared.is_empty());
    let found = sniff(head);
    let Some(declared) = declared else {
        return Ok(found.to_owned());
    };
    let declared = essence(declared)?;
    match may_be(&declared, found, head) {
        true => Ok(declared),
        false => Err(Disagree::Looks { declared, found: found.to_owned() }),
    }
}

/// The detected type.
pub fn sniff(head: &[u8]) -> &'static str {
    let text = is_text(head);
    match signature(head) {
        // Some signatures are two or three letters that any text may begin with.
        Some(signature) if text && !is_weak(signature) => signature,
        Some(signature) if !text && !is_textual(signature) => signature,
        _ if text => TEXT,
        _ => OCTETS,
    }
}

fn signature(head: &[u8]) -> Option<&'static str> {
    const OLE: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];
    if head.starts_with(OLE) {
        return Some("application/x-ole-storage");
    }
    if head.starts_with(b"\x7fELF") {
        return Some("application/x-executable");
    }
    infer::get(head).map(|found| found.mime_type())
}

fn may_be(declared: &str, found: &str, head: &[u8]) -> bool {
    if declared == OCTETS || declared == found {
        return true;
    }
    match family(declared) {
        Family::Text => is_text(head) && is_textual(found),
        Family::Markup => is_text(head) && is_textual(found) && begins_with_markup(head),
        Family::Signature(of) => family(found) == Family::Signature(of),
        Family::Unknown => match declared.split_once('/').map(|(top, _)| top) {
            // An image, audio or video type that we do not know is not a type that we do know.
            Some(top @ ("image" | "audio" | "video" | "font")) => {
                found == OCTETS || found.split_once('/').is_some_and(|(other, _)| other == top)
            }
            _ => true,
        },
    }
}

fn is_textual(found: &str) -> bool {
    matches!(family(found), Family::Text | Family::Markup)
}

/// UTF-8 without unusual control characters; the last character may be incomplete.
fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && head.len() >= HEAD_BYTES - 4,
    };
    let odd =
        |byte: &u8| *byte < 0x20 && !matches!(*byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b | 0x08);
    valid && !head.iter().any(odd)
}

fn begins_with_markup(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
}

fn is_weak(signature: &str) -> bool {
    matches!(
        signature,
        "image/bmp"
            | "image/vnd.dwg"
            | "audio/mpeg"
            | "audio/aac"
            | "application/vnd.microsoft.portable-executable"
            | "application/postscript"
            | "application/x-shockwave-flash"
            | "application/x-unix-archive"
            | "application/x-x509-ca-cert"
            | "application/x-mobipocket-ebook"
            | "application/x-cpio"
            | "application/x-par2"
    )
}

/// `type/subtype` in lower case, without parameters.
fn essence(declared: &str) -> Result<String, Disagree> {
    let token = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !text.is_empty() && text.bytes().all(plain)
    };
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.split_once('/') {
        Some((top, sub)) if token(top) && token(sub) && essence.len() <= TYPE_BYTES_MAX => {
            Ok(essence)
        }
        _ => {
            let shown: String = declared.chars().filter(|c| !c.is_control()).take(80).collect();
            Err(Disagree::NotAType(shown))
        }
    }
}

#[cfg(test)]
mod tests;
