use super::*;

#[test]
fn a_name_may_hold_anything() {
    let stat = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1234 0 0";
    let stat = parse_stat(stat).unwrap();
    assert_eq!((stat.comm.raw(), stat.parent, stat.start_ticks), ("a) b (c", Pid(3), 1234));
    assert!(parse_stat("7 (cut").is_none());
    assert!(parse_stat("7 )(").is_none());
}

#[test]
fn the_innermost_namespace_names_the_pid() {
    assert_eq!(namespace_pid("Name:\tx\nNSpid:\t4711\t12\t1\n"), Some(1));
    assert_eq!(status_field("Uid:\t1\t2\t3\t4\n", "Uid:", 1), 2);
}

#[test]
fn command_lines_are_split_at_terminators() {
    assert_eq!(split_command_line(b"java\0-cp\0\0Main\0"), ["java", "-cp", "", "Main"]);
    assert!(split_command_line(b"").is_empty());
    for (last, expected) in [("-Durl=http://u:pa", "-Durl=…"), ("http://u:pa", "http:…"), ("-xyz", "-…"), ("word", "…")]
    {
        let mut line = format!("java\0{last}");
        let missing = usize::try_from(MAX_COMMAND_LINE).unwrap() - line.len();
        line.push_str(&"x".repeat(missing));
        assert_eq!(split_command_line(line.as_bytes()), ["java", expected], "nothing of a value that is cut");
    }
}

/// A fake /proc with process 7, which runs `executable`.
fn tree(executable: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let process = directory.path().join("7");
    fs::create_dir_all(process.join("root/opt/jdk/bin")).unwrap();
    fs::write(process.join("stat"), "7 (java) S 3 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 1234 0 0").unwrap();
    fs::write(process.join("status"), "Uid:\t0\t5\t0\t0\n").unwrap();
    std::os::unix::fs::symlink(executable, process.join("exe")).unwrap();
    directory
}

fn version(directory: &tempfile::TempDir) -> Option<Option<TargetText>> {
    match ProcFiles::new(directory.path()).process(Pid(7)).unwrap().runtime {
        Runtime::Jvm { version, .. } => Some(version),
        Runtime::Native => None,
    }
}

#[test]
fn the_release_file_is_read_within_the_root_only() {
    let directory = tree("/opt/jdk/bin/java");
    let release = directory.path().join("7/root/opt/jdk/release");
    fs::write(&release, "JAVA_VERSION=\"17.0.1\"\n").unwrap();
    assert_eq!(version(&directory), Some(Some("17.0.1".into())));
    // A link out of the root leads nowhere.
    let outside = directory.path().join("outside");
    fs::rename(&release, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &release).unwrap();
    assert_eq!(version(&directory), Some(None));
}

#[test]
fn a_fifo_for_a_release_file_does_not_hang() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let directory = tree("/opt/jdk/bin/java");
    let release = directory.path().join("7/root/opt/jdk/release");
    mknodat(CWD, release, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(version(&directory), Some(None));
}

#[test]
fn a_jvm_stays_one_when_its_installation_is_replaced() {
    let directory = tree("/opt/jdk/bin/java (deleted)");
    // That of the successor.
    fs::write(directory.path().join("7/root/opt/jdk/release"), "JAVA_VERSION=\"21\"\n").unwrap();
    assert_eq!(version(&directory), Some(None));
    for (file, expected) in [
        ("/jdk/lib/server/libjvm.so", Some(None)),
        ("/jdk/lib/server/libjvm.so (deleted)", Some(None)),
        ("/jdk/lib/server/libjvm.so.debug", None),
    ] {
        let directory = tree("/usr/bin/embedder");
        let maps = format!("1000-2000 r-xp 0 fe:00 1  {file}\n3000-4000 rw-p 0 00:00 0 \n");
        fs::write(directory.path().join("7/maps"), maps).unwrap();
        assert_eq!(version(&directory), expected, "{file}");
    }
}

#[test]
fn a_jvm_with_another_launcher_may_have_mapped_many_files() {
    let directory = tree("/usr/share/search/bin/search-server");
    let file = format!("r--s 00000000 fe:00 7    /data/{}\n", "x".repeat(60));
    let mut maps: String = (1..=100_000).map(|at| format!("{at:x}000-{:x}000 {file}", at + 1)).collect();
    maps.push_str("7ff80fce2000-7ff810ce2000 r-xp 002e2000 fe:00 1 /jdk/lib/server/libjvm.so\n");
    fs::write(directory.path().join("7/maps"), maps).unwrap();
    assert_eq!(version(&directory), Some(None));
}

/// What is said of the service, unit and version of process 7.
fn service(directory: &tempfile::TempDir) -> (Option<String>, String, Option<String>) {
    let info = ProcFiles::new(directory.path()).process(Pid(7)).unwrap();
    let service = info.service.unwrap();
    let text = |text: Option<TargetText>| text.map(|text| text.raw().to_owned());
    (text(info.unit), service.name.raw().to_owned(), text(service.version))
}

/// A jar with a manifest alone, which is not packed.
fn jar(manifest: &str) -> Vec<u8> {
    let (name, length) = (b"META-INF/MANIFEST.MF", u32::try_from(manifest.len()).unwrap().to_le_bytes());
    let parts: [&[u8]; 7] = [b"PK\x03\x04", &[0; 14], &length, &length, &[20, 0, 0, 0], name, manifest.as_bytes()];
    parts.concat()
}

#[test]
fn a_service_is_named_by_unit_or_jar_and_its_version_by_the_jar() {
    let directory = tree("/opt/jdk/bin/java");
    let process = directory.path().join("7");
    fs::write(process.join("cmdline"), "java\0-jar\0shop-1.4.jar\0-jar\0x.jar\0").unwrap();
    assert_eq!(service(&directory), (None, "shop".into(), Some("1.4".into())), "by the file's name");
    fs::create_dir_all(process.join("root/srv")).unwrap();
    fs::write(process.join("root/srv/shop-1.4.jar"), jar("Implementation-Title: Shop\nImplementation-Version: 2\n"))
        .unwrap();
    std::os::unix::fs::symlink("/srv", process.join("cwd")).unwrap();
    assert_eq!(service(&directory), (None, "Shop".into(), Some("2".into())), "by its manifest");
    fs::write(process.join("cgroup"), "0::/system.slice/front.service\n").unwrap();
    assert_eq!(service(&directory), (Some("front.service".into()), "front".into(), Some("2".into())), "by the unit");
}

#[test]
fn a_jar_is_read_within_the_root_only() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let directory = tree("/opt/jdk/bin/java");
    let process = directory.path().join("7");
    fs::write(process.join("cmdline"), "java\0-jar\0/app.jar\0").unwrap();
    fs::write(directory.path().join("outside"), jar("Implementation-Title: secret\n")).unwrap();
    std::os::unix::fs::symlink("../../outside", process.join("root/app.jar")).unwrap();
    assert_eq!(service(&directory).1, "app");
    fs::remove_file(process.join("root/app.jar")).unwrap();
    mknodat(CWD, process.join("root/app.jar"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(service(&directory).1, "app");
}

#[test]
fn this_process_can_be_read() {
    let info = ProcFiles::new("/proc").process(Pid(std::process::id())).unwrap();
    assert_eq!(info.runtime, Runtime::Native);
    assert!(info.start_boottime_ns > 0);
}

#[test]
fn the_main_class_may_stand_in_a_file_of_arguments() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let directory = tree("/opt/jdk/bin/java");
    let process = directory.path().join("7");
    fs::write(process.join("cmdline"), "java\0@/arguments\0").unwrap();
    let main_class = || match ProcFiles::new(directory.path()).process(Pid(7)).unwrap().runtime {
        Runtime::Jvm { main_class, .. } => main_class.map(TargetText::into_raw),
        Runtime::Native => None,
    };
    let file = process.join("root/arguments");
    assert_eq!(main_class(), None, "it is missing");
    fs::write(&file, "-cp a:b\n'com.acme.Main with \"spaces\"'\n").unwrap();
    assert_eq!(main_class().as_deref(), Some("com.acme.Main with \"spaces\""));
    fs::rename(&file, process.join("root/linked")).unwrap();
    std::os::unix::fs::symlink("/linked", &file).unwrap();
    assert_eq!(main_class().as_deref(), Some("com.acme.Main with \"spaces\""), "a link within the root");
    let outside = directory.path().join("outside");
    fs::write(&outside, "Main").unwrap();
    let others: [(&str, &dyn Fn()); 3] = [
        ("too large", &|| fs::write(&file, "Main ".repeat(100_000)).unwrap()),
        ("a link out of the root", &|| std::os::unix::fs::symlink(&outside, &file).unwrap()),
        ("a pipe", &|| mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap()),
    ];
    for (what, make) in others {
        fs::remove_file(&file).unwrap();
        make();
        assert_eq!(main_class(), None, "{what}");
    }
}

#[test]
fn a_process_is_called_as_its_settings_of_opentelemetry_say_whatever_else_is_in_its_environment() {
    let directory = tree("/opt/jdk/bin/java");
    let process = directory.path().join("7");
    fs::write(process.join("cmdline"), "java\0Main\0").unwrap();
    let mut environment = b"PASSWORD=hunter2\0OTEL_SERVICE_NAME=checkout\0".to_vec();
    environment.extend([0xff; 1000]);
    fs::write(process.join("environ"), environment).unwrap();
    assert_eq!(service(&directory).1, "checkout");
    let info = ProcFiles::new(directory.path()).process(Pid(7)).unwrap();
    assert!(!format!("{info:?}").contains("hunter2"), "nothing else is kept");
}
