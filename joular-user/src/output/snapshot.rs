//! Compares texts with files, for tests.

/// Compares a text with a file of `testdata`; `UPDATE_DOCS=1` rewrites it.
pub fn check_snapshot(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/output/testdata").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "see {}", path.display());
}
