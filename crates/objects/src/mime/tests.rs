//! Expectations written by hand, from the descriptions of the formats.

use super::*;
use proptest::prelude::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0";
const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n";
const ZIP: &[u8] = b"PK\x03\x04\x14\0\0\0\0\0";
const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0";
const OGG: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0";
const MP4: &[u8] = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom";
const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0";
const SVG: &[u8] = b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>";
const HTML: &[u8] = b"<!DOCTYPE html><html><body>hi</body></html>";

fn kept(declared: &str, head: &[u8]) -> Option<String> {
    agree(Some(declared), head).ok()
}

#[test]
fn an_undeclared_type_is_detected() {
    assert_eq!(agree(None, PNG).unwrap(), "image/png");
    assert_eq!(agree(Some(" "), PDF).unwrap(), "application/pdf");
    assert_eq!(agree(None, "你好, text".as_bytes()).unwrap(), "text/plain");
    assert_eq!(agree(None, b"").unwrap(), "text/plain");
    assert_eq!(agree(None, b"a\0b").unwrap(), "application/octet-stream");
    assert_eq!(agree(None, &[0xfe, 0x01, 0x02]).unwrap(), "application/octet-stream");
}

#[test]
fn bytes_with_the_signature_of_the_declared_type_are_accepted() {
    for (declared, head) in [
        ("image/png", PNG),
        ("image/jpeg", JPEG),
        ("image/jpg", JPEG),
        ("application/pdf", PDF),
        ("application/zip", ZIP),
        ("application/x-executable", ELF),
    ] {
        assert_eq!(kept(declared, head).as_deref(), Some(declared));
    }
}

#[test]
fn containers_match_their_contents() {
    let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    for declared in [docx, "application/epub+zip", "application/java-archive"] {
        assert_eq!(kept(declared, ZIP).as_deref(), Some(declared));
    }
    for declared in ["application/msword", "application/vnd.ms-excel"] {
        assert_eq!(kept(declared, OLE).as_deref(), Some(declared));
    }
    for declared in ["audio/ogg", "video/ogg", "audio/opus"] {
        assert_eq!(kept(declared, OGG).as_deref(), Some(declared));
    }
    for declared in ["video/mp4", "audio/mp4", "video/quicktime"] {
        assert_eq!(kept(declared, MP4).as_deref(), Some(declared));
    }
    for declared in ["image/svg+xml", "text/xml", "application/xml", "text/plain"] {
        assert_eq!(kept(declared, SVG).as_deref(), Some(declared));
    }
}

#[test]
fn bytes_of_another_type_are_refused() {
    for (declared, head) in [
        ("image/png", JPEG),
        ("image/png", HTML),
        ("image/png", b"".as_slice()),
        ("image/jpeg", b"just text".as_slice()),
        ("image/jpeg", ELF),
        ("application/pdf", ZIP),
        ("application/zip", PDF),
        ("application/msword", ZIP),
        ("text/plain", PNG),
        ("text/plain", ELF),
        ("text/plain", b"a\0b".as_slice()),
        ("text/csv", PDF),
        ("application/json", ZIP),
        ("application/json", b"{\"a\":\"\0\"}".as_slice()),
        ("image/svg+xml", PNG),
        ("image/svg+xml", b"alert(1)".as_slice()),
        ("image/x-unknown", HTML),
        ("image/x-unknown", ELF),
        ("audio/x-unknown", PNG),
        ("video/mp4", OGG),
    ] {
        let refused = agree(Some(declared), head).unwrap_err();
        assert!(matches!(refused, Disagree::Looks { .. }), "{declared}: {refused}");
    }
}

#[test]
fn octets_accept_anything_and_unknown_types_are_trusted() {
    for head in [PNG, ELF, HTML, b"\0".as_slice()] {
        assert_eq!(kept("application/octet-stream", head).as_deref(), Some(OCTETS));
    }
    assert_eq!(
        kept("application/x-my-format", b"\x01\x02").as_deref(),
        Some("application/x-my-format")
    );
    assert_eq!(kept("model/gltf-binary", b"glTF\0").as_deref(), Some("model/gltf-binary"));
}

#[test]
fn text_that_begins_like_a_weak_signature_is_still_text() {
    assert_eq!(agree(None, b"BMW builds cars").unwrap(), "text/plain");
    assert_eq!(agree(None, b"MZ is a country code").unwrap(), "text/plain");
    assert_eq!(kept("text/markdown", b"BMW builds cars").as_deref(), Some("text/markdown"));
}

#[test]
fn types_are_stored_in_lower_case_without_parameters() {
    assert_eq!(kept("Text/HTML; charset=UTF-8", HTML).as_deref(), Some("text/html"));
    for bad in ["text", "text/", "/plain", "a b/c", "text/plain\r\nx: y", "text/pl\0ain", "é/x"] {
        assert!(matches!(agree(Some(bad), b"x"), Err(Disagree::NotAType(_))), "{bad:?}");
    }
    let long = format!("text/{}", "x".repeat(200));
    assert!(matches!(agree(Some(&long), b"x"), Err(Disagree::NotAType(_))));
}

#[test]
fn a_character_cut_by_the_end_of_the_head_is_still_text() {
    let text = "试".repeat(HEAD_BYTES);
    assert_eq!(agree(Some("text/plain"), &text.as_bytes()[..HEAD_BYTES]).unwrap(), "text/plain");
}

proptest! {
    #[test]
    fn any_bytes_match_their_detected_type(head in proptest::collection::vec(any::<u8>(), 0..200)) {
        let found = agree(None, &head).unwrap();
        prop_assert_eq!(agree(Some(&found), &head).unwrap(), found);
    }

    #[test]
    fn any_declaration_is_kept_as_itself_or_refused(declared in "\\PC{0,40}", head in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(kind) = agree(Some(&declared), &head) {
            prop_assert!(kind.is_ascii() && kind.contains('/') && !kind.contains(char::is_whitespace));
        }
    }
}
