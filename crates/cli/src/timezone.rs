//! The time zone of this machine.
//!
//! Invariant: an IANA name or nothing; a POSIX zone (`CET-1CEST`) is not guessed.

use greenroom_config::env;
use jiff::tz::TimeZone;
use std::path::Path;

const LOCALTIME: &str = "/etc/localtime";
const TIMEZONE: &str = "/etc/timezone";

/// The value of `TZ`, else the setting of the machine.
pub(crate) fn of_machine() -> Option<String> {
    named(env::get(env::TZ).as_deref(), Path::new(LOCALTIME), Path::new(TIMEZONE))
}

fn named(tz: Option<&str>, localtime: &Path, timezone: &Path) -> Option<String> {
    match tz {
        Some("") => Some("UTC".to_owned()),
        Some(tz) => iana(tz.trim_start_matches(':')),
        None => {
            let link = std::fs::read_link(localtime).ok();
            let link = link.and_then(|target| iana(target.to_str()?));
            link.or_else(|| iana(&std::fs::read_to_string(timezone).ok()?))
        }
    }
}

/// The name of a zone, also if given as a path.
fn iana(text: &str) -> Option<String> {
    let name = text.rsplit_once("zoneinfo/").map_or(text, |(_, name)| name).trim();
    let name = name.trim_start_matches("posix/").trim_start_matches("right/");
    TimeZone::get(name).ok()?.iana_name().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_named_however_the_machine_says_it() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("localtime"), folder.path().join("timezone"));
        let of = |tz| named(tz, &link, &file);
        for tz in ["Europe/Berlin", ":Europe/Berlin", ":/usr/share/zoneinfo/Europe/Berlin"] {
            assert_eq!(of(Some(tz)).as_deref(), Some("Europe/Berlin"), "{tz}");
        }
        assert_eq!(of(Some("")).as_deref(), Some("UTC"));
        assert_eq!((of(Some("CET-1CEST")), of(None)), (None, None));
        std::fs::write(&file, "Asia/Tokyo\n").unwrap();
        assert_eq!(of(None).as_deref(), Some("Asia/Tokyo"));
        std::os::unix::fs::symlink("../usr/share/zoneinfo/Asia/Shanghai", &link).unwrap();
        assert_eq!(of(None).as_deref(), Some("Asia/Shanghai"));
    }
}
