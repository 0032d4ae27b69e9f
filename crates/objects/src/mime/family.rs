//! Which types share a signature: containers and their contents, and aliases.

/// What the first bytes say about a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Text of any kind.
    Text,
    /// Text that begins with `<`.
    Markup,
    /// Bytes that begin with a signature; the same name means the same signature.
    Signature(&'static str),
    /// Nothing is known.
    Unknown,
}

pub(super) fn family(kind: &str) -> Family {
    if is_markup(kind) {
        return Family::Markup;
    }
    if is_text(kind) {
        return Family::Text;
    }
    shared(kind).or_else(|| known(kind)).map_or(Family::Unknown, Family::Signature)
}

fn is_markup(kind: &str) -> bool {
    kind.ends_with("+xml") || matches!(kind, "text/xml" | "application/xml")
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+yaml")
        || matches!(
            kind,
            "application/json"
                | "application/x-ndjson"
                | "application/jsonl"
                | "application/javascript"
                | "application/x-javascript"
                | "application/ecmascript"
                | "application/typescript"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/x-sh"
                | "application/x-shellscript"
                | "application/sql"
                | "application/graphql"
                | "application/x-www-form-urlencoded"
                | "application/x-tex"
                | "application/rtf"
        )
}

fn shared(kind: &str) -> Option<&'static str> {
    let subtype = kind.split_once('/').map_or("", |(_, sub)| sub);
    let zip = subtype.ends_with("+zip")
        || subtype.starts_with("vnd.openxmlformats-officedocument.")
        || subtype.starts_with("vnd.oasis.opendocument.")
        || subtype.starts_with("vnd.ms-") && subtype.contains(".macroenabled");
    if zip {
        return Some("zip");
    }
    Some(match kind {
        "application/zip"
        | "application/x-zip"
        | "application/x-zip-compressed"
        | "application/java-archive"
        | "application/x-java-archive"
        | "application/vnd.android.package-archive"
        | "application/vnd.apple.pages"
        | "application/vnd.apple.numbers"
        | "application/vnd.apple.keynote"
        | "image/openraster" => "zip",
        "application/msword"
        | "application/vnd.ms-excel"
        | "application/vnd.ms-powerpoint"
        | "application/vnd.ms-outlook"
        | "application/vnd.visio"
        | "application/x-msi"
        | "application/x-ole-storage" => "ole",
        "audio/ogg" | "video/ogg" | "application/ogg" | "audio/opus" | "audio/vorbis" => "ogg",
        "video/mp4"
        | "audio/mp4"
        | "audio/m4a"
        | "audio/x-m4a"
        | "video/x-m4v"
        | "video/quicktime"
        | "video/3gpp"
        | "video/3gpp2"
        | "audio/3gpp"
        | "image/heif"
        | "image/heic"
        | "image/heif-sequence"
        | "image/heic-sequence"
        | "image/avif"
        | "application/mp4" => "mp4",
        "video/webm" | "audio/webm" | "video/x-matroska" | "audio/x-matroska" => "matroska",
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" | "audio/x-mp3" => "mp3",
        "audio/flac" | "audio/x-flac" => "flac",
        "audio/aiff" | "audio/x-aiff" => "aiff",
        "audio/midi" | "audio/x-midi" => "midi",
        "video/x-msvideo" | "video/avi" | "video/msvideo" => "avi",
        "video/x-ms-wmv" | "video/x-ms-asf" | "audio/x-ms-wma" => "asf",
        "image/jpeg" | "image/jpg" | "image/pjpeg" => "jpeg",
        "image/tiff" | "image/x-canon-cr2" | "image/x-adobe-dng" | "image/x-nikon-nef" => "tiff",
        "image/vnd.microsoft.icon" | "image/x-icon" => "ico",
        "image/bmp" | "image/x-ms-bmp" | "image/x-bmp" => "bmp",
        "image/vnd.adobe.photoshop" | "image/x-photoshop" => "psd",
        "application/gzip" | "application/x-gzip" | "application/x-gtar" | "application/x-tgz" => {
            "gzip"
        }
        "application/x-bzip2" | "application/x-bzip" => "bzip2",
        "application/vnd.rar" | "application/x-rar-compressed" | "application/x-rar" => "rar",
        "application/zstd" | "application/x-zstd" => "zstd",
        "application/vnd.microsoft.portable-executable"
        | "application/x-msdownload"
        | "application/x-dosexec" => "exe",
        "application/x-executable" | "application/x-elf" | "application/x-sharedlib" => "elf",
        "application/vnd.sqlite3" | "application/x-sqlite3" => "sqlite",
        "font/ttf" | "font/otf" | "font/sfnt" | "application/font-sfnt" => "sfnt",
        "font/woff" | "font/woff2" | "application/font-woff" => "woff",
        _ => return None,
    })
}

/// Types with a known signature that no other type shares.
fn known(kind: &str) -> Option<&'static str> {
    const ALONE: [&str; 19] = [
        "image/png",
        "image/gif",
        "image/webp",
        "image/jp2",
        "image/jxl",
        "image/vnd.ms-photo",
        "image/vnd.djvu",
        "video/x-flv",
        "video/mpeg",
        "audio/amr",
        "audio/x-ape",
        "application/pdf",
        "application/wasm",
        "application/x-7z-compressed",
        "application/x-xz",
        "application/x-tar",
        "application/x-lz4",
        "application/x-rpm",
        "application/vnd.debian.binary-package",
    ];
    ALONE.into_iter().find(|known| *known == kind)
}
