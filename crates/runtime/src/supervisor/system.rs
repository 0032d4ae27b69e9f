//! The parts of the system that every program may read: programs, libraries, and their settings.
//!
//! Invariant: of `/etc` only what is named here and readable for every user; no password, key or
//! configuration of another program.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 9] = [
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/nix/store",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
];

/// The files of a resolver that `/etc/resolv.conf` links to; beside them are its sockets.
const RESOLVER: [&str; 2] =
    ["/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"];

const ETC: [&str; 47] = [
    // How programs find their libraries, and each other.
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    // How names become addresses.
    "gai.conf",
    "host.conf",
    "hostname",
    "hosts",
    "networks",
    "nsswitch.conf",
    "protocols",
    "resolv.conf",
    "rpc",
    "services",
    // Whom to trust; the private keys beside them stay closed.
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "gnutls",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/ct_log_list.cnf",
    "ssl/openssl.cnf",
    // Who is who, where and when.
    "default/locale",
    "group",
    "localtime",
    "locale.alias",
    "locale.conf",
    "lsb-release",
    "os-release",
    "passwd",
    "timezone",
    // What shells, interpreters and common libraries read when they start.
    "bash.bashrc",
    "bashrc",
    "fonts",
    "inputrc",
    "magic",
    "magic.mime",
    "mailcap",
    "mime.types",
    "php.d",
    "terminfo",
    "xml",
];

/// Folders of interpreters, possibly with a version, such as `python3.12` or `java-21-openjdk`.
const INTERPRETERS: [&str; 7] = ["python", "java", "perl", "ruby", "php", "lua", "ImageMagick"];

/// Every path that is readable for every program, as far as it exists.
pub(super) fn paths() -> Vec<PathBuf> {
    let etc = Path::new("/etc");
    let named = ETC.iter().map(|name| etc.join(name));
    let entries = std::fs::read_dir(etc).into_iter().flatten().flatten();
    let of_interpreters = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        is_of_interpreter(&name)
    });
    let settings = named.chain(of_interpreters).filter(|path| is_open(path));
    FOLDERS.iter().chain(&RESOLVER).map(PathBuf::from).chain(settings).collect()
}

/// Whether a resolved path is in one of the folders that every program may read.
pub(super) fn contains(path: &Path) -> bool {
    let folders = FOLDERS.iter().filter_map(|folder| std::fs::canonicalize(folder).ok());
    folders.into_iter().any(|folder| path.starts_with(folder))
}

/// Whether the name is that of an interpreter, possibly with a version: `phpmyadmin` is another program.
fn is_of_interpreter(name: &str) -> bool {
    let is_version = |rest: &str| {
        let version = rest.strip_prefix('-').unwrap_or(rest);
        let version = version.split_once("-openjdk").map_or(version, |(version, _)| version);
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    let mut rests = INTERPRETERS.iter().filter_map(|interpreter| name.strip_prefix(interpreter));
    rests.any(|rest| rest.is_empty() || is_version(rest))
}

/// Whether everybody on this machine may read it.
fn is_open(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_not_everybodys_is_open_and_etc_is_not_open_as_a_whole() {
        let paths = paths();
        assert!(paths.contains(&"/etc/passwd".into()));
        for closed in [
            "/",
            "/opt/app",
            "/run/systemd/resolve",
            "/etc",
            "/etc/shadow",
            "/etc/gshadow",
            "/etc/ssl",
            "/etc/ssl/private",
        ] {
            let closed = Path::new(closed);
            assert!(!paths.iter().any(|path| closed.starts_with(path)), "{}", closed.display());
        }
    }

    #[test]
    fn settings_of_interpreters_are_open_and_those_of_programs_called_alike_are_not() {
        for open in [
            "python3",
            "python3.12",
            "java-21-openjdk",
            "java-17-openjdk-amd64",
            "perl",
            "php",
            "lua5.4",
            "ImageMagick-6",
        ] {
            assert!(is_of_interpreter(open), "{open}");
        }
        for closed in [
            "phpmyadmin",
            "php-fpm.conf",
            "node_exporter",
            "nodejs",
            "javamail",
            "lualdap.conf",
            "python3-app",
            "python-keyring",
            "gitconfig",
        ] {
            assert!(!is_of_interpreter(closed), "{closed}");
        }
        for closed in ["/etc/gitconfig", "/etc/profile", "/etc/profile.d"] {
            assert!(!paths().contains(&closed.into()), "{closed}");
        }
    }
}
