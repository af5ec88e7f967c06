//! Tests what is said of energy without a name.

use super::*;
use crate::model::frame::Marker;

#[test]
fn what_has_no_name_is_told_by_marker() {
    let unresolved = Frame::of_file(FrameKind::Native, "libc.so.6");
    let marker = |name: &str| Frame::new(FrameKind::Marker, name);
    let entries = [
        (0, &[java("a.B", "c")][..], 50, 5),
        (0, &[unresolved], 25, 3),
        (0, &[marker("[unresolved]")], 15, 2),
        (0, &[marker("[no sample]")], 10, 0),
    ];
    let profile = profile(1, &entries);
    let expected = "Of the selection's energy 50.0 % has no name ([unresolved] 40.0 %, [no sample] 10.0 %)";
    assert_eq!(unnamed::line(&profile), expected);
}

#[test]
fn what_totals_lack_is_told_by_marker() {
    let deep = [Frame::marker(Marker::Truncated), java("a.B", "recurse")];
    let torn = [Frame::marker(Marker::Broken), java("a.B", "run")];
    let whole = [java("a.Main", "main"), java("a.B", "run")];
    let some = profile(1, &[(0, &deep[..], 168, 5), (0, &torn[..], 2, 1), (0, &whole[..], 830, 9)]);
    let expected = "Of the selection's energy 17.0 % has stacks without their root ([truncated] 16.8 %, [broken stack] \
                    0.2 %): totals of the callers there lack it";
    assert_eq!(rootless::line(&some).as_deref(), Some(expected));
    assert_eq!(rootless::line(&profile(1, &[(0, &whole[..], 830, 9)])), None);
    let hardly = profile(1, &[(0, &deep[..], 1, 1), (0, &whole[..], 9_999, 9)]);
    assert_eq!(rootless::line(&hardly), None);
    assert_eq!(rootless::by_marker(&hardly)["[truncated]"].0, 1, "machines get all of it");
}

/// Code that Node.js has made, above its own; such code of Python that was started with the option has names above it.
#[test]
fn a_program_that_writes_names_if_it_is_told_to_is_named_with_its_option() {
    let (made, stripped) = (Frame::marker(Marker::Unresolved), Frame::of_file(FrameKind::Native, "python3.12"));
    let named = [native("py::loop:/srv/app.py", "perf map"), stripped.clone()];
    for (path, energy, expected) in [
        (
            &[native("node::Start", "node"), made.clone()][..],
            60,
            Some("Node.js without a name: start it with --perf-basic"),
        ),
        (
            &[native("EEStartup", "libcoreclr.so"), made.clone()][..],
            60,
            Some(".NET without a name: start it with DOTNET_"),
        ),
        (
            std::slice::from_ref(&stripped),
            60,
            Some("Python without a name: start it, of version 3.12 or later, with -X"),
        ),
        (&named[..], 60, None),
        (&[native("main", "node"), made.clone()][..], 20, None),
        (&[native("main", "java"), made.clone()][..], 60, None),
        (&[native("node::Start", "node"), native("v8::Run", "node")][..], 60, None),
    ] {
        let profile = profile(1, &[(0, path, energy, 6), (0, &[java("a.B", "c")], 100 - energy, 4)]);
        let hints = unnamed::hints(&profile);
        assert_eq!(hints.len(), usize::from(expected.is_some()), "{hints:?}");
        for (hint, part) in hints.iter().zip(expected) {
            assert!(
                hint.starts_with("60.0 % of the energy of java (pid 7) is code of") && hint.contains(part),
                "{hint}"
            );
        }
    }
}
