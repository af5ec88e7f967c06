//! Finds container and pod of a process, from its cgroup path.

/// What a cgroup path tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// 64 hexadecimal digits: Docker, containerd, CRI-O, Podman.
    pub id: Option<String>,
    /// Kubernetes pod UID.
    pub pod: Option<String>,
}

/// The path of the unified (v2) hierarchy, or the first one, from the text of
/// `/proc/PID/cgroup`.
pub fn cgroup_path(text: &str) -> Option<&str> {
    let path_of = |line: &'_ str| line.splitn(3, ':').nth(2).map(str::len);
    text.lines()
        .find(|line| line.starts_with("0::"))
        .or_else(|| text.lines().next())
        .and_then(|line| path_of(line).map(|len| &line[line.len() - len..]))
}

/// Finds container and pod in a cgroup path.
pub fn container_of(path: &str) -> Container {
    let mut found = Container::default();
    for part in path.split('/') {
        let name = part.trim_end_matches(".scope").trim_end_matches(".slice");
        let last = name.rsplit(['-', ':']).next().unwrap_or(name);
        if last.len() == 64 && last.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            found.id = Some(last.to_owned());
        }
        if let Some(at) = name.rfind("pod") {
            let uid = name[at + 3..].replace('_', "-");
            if uid.len() >= 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
                found.pod = Some(uid);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";

    #[test]
    fn runtimes_hide_the_id_in_different_places() {
        let docker = format!("/system.slice/docker-{ID}.scope");
        let kubernetes = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b3c4d_0000_1111_2222_333344445555.slice/cri-containerd-{ID}.scope"
        );
        assert_eq!(container_of(&docker).id.as_deref(), Some(ID));
        assert_eq!(
            container_of(&kubernetes),
            Container { id: Some(ID.to_owned()), pod: Some("1a2b3c4d-0000-1111-2222-333344445555".to_owned()) }
        );
        assert_eq!(container_of("/user.slice/user-0.slice/podman-x"), Container::default());
    }

    #[test]
    fn the_unified_hierarchy_is_preferred() {
        assert_eq!(cgroup_path("12:cpu:/a\n0::/b:c\n"), Some("/b:c"));
        assert_eq!(cgroup_path("12:cpu:/a\n"), Some("/a"));
        assert_eq!(cgroup_path(""), None);
    }
}
