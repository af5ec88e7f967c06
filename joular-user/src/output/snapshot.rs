//! Compares texts with files, for tests.

/// Compares a text with a file of this room's `testdata`; `UPDATE_DOCS=1` rewrites it.
pub fn check_snapshot(name: &str, text: &str) {
    check_snapshot_in("output", name, text);
}

/// The same with a file of another room's `testdata`.
pub fn check_snapshot_in(room: &str, name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room).join("testdata").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "see {}", path.display());
}
