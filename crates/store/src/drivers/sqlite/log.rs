//! The log of the database, written with one call per commit.
//!
//! SQLite writes each page of a commit with two calls, one for the 24 bytes before it. A call costs as much as ten
//! pages, so they are gathered here until the last page of the commit comes.
//!
//! Invariants: the file has everything before SQLite hears that the last page was written, and an error of the disk is
//! that page's error; what is held belongs to a commit under way on this thread, because the writer never spills.

use crate::StoreError;
use rusqlite::ffi::{
    SQLITE_IOERR_WRITE, SQLITE_OK, SQLITE_OPEN_WAL, sqlite3_file, sqlite3_filename, sqlite3_int64,
    sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find, sqlite3_vfs_register,
};
use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{from_ref, null, null_mut};
use std::sync::OnceLock;

/// The name that the writer opens its files by.
const VFS: &CStr = c"gathering-log";

/// What stands before each page: the page's number, then the database's size if it is the commit's last, else 0.
const HEAD_BYTES: usize = 24;
/// A commit that is larger is written in pieces.
const HELD_MAX: usize = 64 * 1024;

type Open = unsafe extern "C" fn(
    *mut sqlite3_vfs,
    sqlite3_filename,
    *mut sqlite3_file,
    c_int,
    *mut c_int,
) -> c_int;
type Write = unsafe extern "C" fn(*mut sqlite3_file, *const c_void, c_int, sqlite3_int64) -> c_int;

/// How the default opens a file.
static OPEN: OnceLock<Open> = OnceLock::new();
static METHODS: OnceLock<Methods> = OnceLock::new();

struct Methods {
    plain: &'static sqlite3_io_methods,
    write: Write,
    gathering: sqlite3_io_methods,
}

thread_local! {
    static HELD: RefCell<Held> = const { RefCell::new(Held::new()) };
}

/// Makes the way of opening files known to SQLite; its name there.
pub(super) fn register() -> Result<&'static CStr, StoreError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    match REGISTERED.get_or_init(register_once) {
        true => Ok(VFS),
        false => Err(StoreError::Lost("SQLite does not take our way to its files".to_owned())),
    }
}

#[expect(unsafe_code, reason = "SQLite takes its files from tables of functions")]
fn register_once() -> bool {
    // SAFETY: the default is never unregistered, so it can be read; the copy has a name of its own and is leaked, so
    // that it stays; only one thread comes here.
    unsafe {
        let Some(default) = sqlite3_vfs_find(null()).as_ref() else { return false };
        let Some(open) = default.xOpen else { return false };
        let own = sqlite3_vfs {
            pNext: null_mut(),
            zName: VFS.as_ptr(),
            xOpen: Some(open_gathering),
            ..*default
        };
        OPEN.set(open).is_ok() && sqlite3_vfs_register(Box::leak(Box::new(own)), 0) == SQLITE_OK
    }
}

/// Opens a file as the default does; the log gets `write_gathering` in place of its own way to write.
#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn open_gathering(
    vfs: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let Some(open) = OPEN.get() else { return SQLITE_IOERR_WRITE };
    // SAFETY: the arguments are SQLite's own and are handed on; `vfs` is a copy of what they were made for. After
    // success `file` has a table of functions, which lives as long as the program.
    unsafe {
        let outcome = open(vfs, name, file, flags, flags_out);
        if outcome != SQLITE_OK || flags & SQLITE_OPEN_WAL == 0 {
            return outcome;
        }
        let Some(plain) = (*file).pMethods.as_ref() else { return outcome };
        let Some(write) = plain.xWrite else { return outcome };
        let gathering = sqlite3_io_methods { xWrite: Some(write_gathering), ..*plain };
        let methods = METHODS.get_or_init(|| Methods { plain, write, gathering });
        if std::ptr::eq(plain, methods.plain) {
            (*file).pMethods = from_ref(&methods.gathering);
        }
        outcome
    }
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn write_gathering(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    let (Some(methods), Ok(length)) = (METHODS.get(), usize::try_from(length)) else {
        return SQLITE_IOERR_WRITE;
    };
    // SAFETY: SQLite gives as many bytes as it says, and they stay until this returns.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
    let plain = |bytes: &[u8], offset| match c_int::try_from(bytes.len()) {
        // SAFETY: `file` is open, its table had this function, and the bytes stay until it returns.
        Ok(length) => unsafe { (methods.write)(file, bytes.as_ptr().cast(), length, offset) },
        Err(_) => SQLITE_IOERR_WRITE,
    };
    HELD.try_with(|held| held.borrow_mut().take(file.addr(), bytes, offset, &plain))
        .unwrap_or(SQLITE_IOERR_WRITE)
}

/// What the file does not have yet of a commit.
struct Held {
    /// The file's address, and where in it the bytes begin.
    file: usize,
    offset: i64,
    bytes: Vec<u8>,
    /// Whether the page that comes next is the commit's last.
    is_last: bool,
}

impl Held {
    const fn new() -> Self {
        Self { file: 0, offset: 0, bytes: Vec::new(), is_last: false }
    }

    fn take(
        &mut self,
        file: usize,
        bytes: &[u8],
        offset: i64,
        plain: &impl Fn(&[u8], i64) -> c_int,
    ) -> c_int {
        if !self.bytes.is_empty() && !self.is_followed_by(file, offset) {
            // Not within a commit; but whatever comes first is written first.
            let outcome = self.write(plain);
            if outcome != SQLITE_OK {
                return outcome;
            }
        }
        if let Ok(head) = <&[u8; HEAD_BYTES]>::try_from(bytes) {
            if self.bytes.is_empty() {
                (self.file, self.offset) = (file, offset);
            }
            self.is_last = head[4..8] != [0; 4];
        } else if self.bytes.is_empty() {
            return plain(bytes, offset);
        }
        self.bytes.extend_from_slice(bytes);
        let is_page = bytes.len() != HEAD_BYTES;
        if is_page && (self.is_last || self.bytes.len() >= HELD_MAX) {
            return self.write(plain);
        }
        SQLITE_OK
    }

    fn is_followed_by(&self, file: usize, offset: i64) -> bool {
        let held = i64::try_from(self.bytes.len()).unwrap_or(i64::MAX);
        self.file == file && offset.checked_sub(self.offset) == Some(held)
    }

    /// Nothing is held afterwards: a commit that failed is given up.
    fn write(&mut self, plain: &impl Fn(&[u8], i64) -> c_int) -> c_int {
        let outcome = plain(&self.bytes, self.offset);
        self.bytes.clear();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::super::SqliteDriver;
    use super::*;
    use crate::drivers::Driver;
    use crate::params;
    use crate::sql::Tx;
    use crate::store::Sync;
    use rusqlite::ffi::SQLITE_FULL;

    const PAGE: [u8; 512] = [7; 512];

    /// A file that remembers what was written where, and may be full.
    #[derive(Default)]
    struct Disk {
        writes: RefCell<Vec<(i64, usize)>>,
        is_full: bool,
    }

    impl Disk {
        fn write(&self, bytes: &[u8], offset: i64) -> c_int {
            self.writes.borrow_mut().push((offset, bytes.len()));
            if self.is_full { SQLITE_FULL } else { SQLITE_OK }
        }

        fn written(&self) -> Vec<(i64, usize)> {
            self.writes.take()
        }
    }

    fn head(size_after_commit: u8) -> [u8; HEAD_BYTES] {
        let mut head = [1; HEAD_BYTES];
        head[4..8].copy_from_slice(&[0, 0, 0, size_after_commit]);
        head
    }

    fn frame(held: &mut Held, disk: &Disk, offset: i64, size_after_commit: u8) -> c_int {
        let write = |bytes: &[u8], offset| disk.write(bytes, offset);
        assert_eq!(held.take(1, &head(size_after_commit), offset, &write), SQLITE_OK);
        held.take(1, &PAGE, offset + 24, &write)
    }

    #[test]
    fn the_pages_of_a_commit_are_written_at_once_with_its_last() {
        let (mut held, disk) = (Held::new(), Disk::default());
        assert_eq!(frame(&mut held, &disk, 32, 0), SQLITE_OK);
        assert_eq!(frame(&mut held, &disk, 568, 0), SQLITE_OK);
        assert_eq!(disk.written(), []);
        assert_eq!(frame(&mut held, &disk, 1104, 9), SQLITE_OK);
        assert_eq!(disk.written(), [(32, 3 * 536)]);
        assert_eq!(frame(&mut held, &disk, 1640, 9), SQLITE_OK);
        assert_eq!(disk.written(), [(1640, 536)]);
    }

    #[test]
    fn a_full_disk_fails_the_last_page_and_nothing_is_kept_of_the_commit() {
        let (mut held, mut disk) = (Held::new(), Disk { is_full: true, ..Disk::default() });
        assert_eq!(frame(&mut held, &disk, 32, 0), SQLITE_OK);
        assert_eq!(frame(&mut held, &disk, 568, 9), SQLITE_FULL);
        assert_eq!(disk.written(), [(32, 2 * 536)]);
        disk.is_full = false;
        assert_eq!(frame(&mut held, &disk, 32, 9), SQLITE_OK);
        assert_eq!(disk.written(), [(32, 536)]);
    }

    #[test]
    fn a_large_commit_is_written_in_pieces() {
        let (mut held, disk) = (Held::new(), Disk::default());
        for number in 0..130 {
            let size = if number == 129 { 9 } else { 0 };
            assert_eq!(frame(&mut held, &disk, 32 + number * 536, size), SQLITE_OK);
        }
        assert_eq!(disk.written(), [(32, 123 * 536), (32 + 123 * 536, 7 * 536)]);
    }

    #[test]
    fn what_does_not_follow_is_written_after_what_is_held() {
        let (mut held, disk) = (Held::new(), Disk::default());
        let write = |bytes: &[u8], offset| disk.write(bytes, offset);
        assert_eq!(held.take(1, &[0; 32], 0, &write), SQLITE_OK);
        assert_eq!(disk.written(), [(0, 32)]);
        frame(&mut held, &disk, 32, 0);
        assert_eq!(held.take(1, &PAGE, 56, &write), SQLITE_OK);
        assert_eq!(disk.written(), [(32, 536), (56, 512)]);
        frame(&mut held, &disk, 568, 0);
        assert_eq!(held.take(2, &head(3), 1104, &write), SQLITE_OK);
        assert_eq!(held.take(2, &PAGE, 1128, &write), SQLITE_OK);
        assert_eq!(disk.written(), [(568, 536), (1104, 536)]);
    }

    #[test]
    fn nothing_of_a_commit_reaches_the_log_before_its_end_however_large_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.db");
        let mut driver = SqliteDriver::writer(&path, Sync::Normal).unwrap();
        driver.run_script("CREATE TABLE large (part {blob})").unwrap();
        let log = folder.path().join("large.db-wal");
        let before = log.metadata().unwrap().len();
        // More than the writer's cache.
        let part = vec![7; 1024 * 1024];
        driver.begin().unwrap();
        for _ in 0..24 {
            driver.execute("INSERT INTO large VALUES (?1)", params![part.as_slice()]).unwrap();
        }
        assert_eq!(log.metadata().unwrap().len(), before);
        driver.commit().unwrap();
        assert!(log.metadata().unwrap().len() > 24 * 1024 * 1024);
        let mut reader = SqliteDriver::reader(&path).unwrap();
        let row = reader.query_opt("SELECT COUNT(*), SUM(LENGTH(part)) FROM large", &[]).unwrap();
        let mut row = row.unwrap();
        assert_eq!((row.int().unwrap(), row.int().unwrap()), (24, 24 * 1024 * 1024));
    }
}
