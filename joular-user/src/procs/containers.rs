//! Finds container and pod of a process, from its cgroup paths.

use joular_data::model::target_text::TargetText;

/// What a cgroup path tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// 64 hexadecimal digits: Docker, containerd, CRI-O, Podman, ECS. On Fargate: those of the task
    /// and a number.
    pub id: Option<TargetText>,
    /// Kubernetes pod UID.
    pub pod: Option<TargetText>,
}

/// The path that says most, from the text of `/proc/PID/cgroup`. With several hierarchies only some
/// may know of the container: then the first of those. Else that of the unified (v2) hierarchy, or
/// the first one.
pub fn cgroup_path(text: &str) -> Option<&str> {
    let paths = || text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let unified = text.lines().find_map(|line| line.strip_prefix("0::"));
    let is_of_container = |path: &&str| container_of(path).id.is_some();
    unified.filter(is_of_container).or_else(|| paths().find(is_of_container)).or(unified).or_else(|| paths().next())
}

/// Finds container and pod in a cgroup path.
pub fn container_of(path: &str) -> Container {
    let mut found = Container::default();
    let mut is_ecs = false;
    for part in path.split('/') {
        let name = part.trim_end_matches(".scope").trim_end_matches(".slice");
        is_ecs |= name == "ecs";
        // The process that watches over a container is outside of it.
        if !name.contains("-conmon-")
            && let Some(id) = container_id(name).or_else(|| fargate_id(name).filter(|_| is_ecs))
        {
            found.id = Some(id.into());
        }
        found.pod = pod_uid(name).map(Into::into).or(found.pod);
    }
    found
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `docker-ID`, `cri-containerd:ID`, `ID`, …
fn container_id(name: &str) -> Option<&str> {
    let last = name.rsplit(['-', ':']).next().unwrap_or(name);
    is_hexadecimal(last, 64).then_some(last)
}

/// The task's 32 digits, and a number.
fn fargate_id(name: &str) -> Option<&str> {
    let (task, number) = name.split_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_hexadecimal(task, 32) && is_number).then_some(name)
}

/// Behind `pod`: a UUID, whose dashes systemd has as `_`, or the 32 digits of a static pod.
fn pod_uid(name: &str) -> Option<String> {
    let behind = name.get(name.rfind("pod")? + "pod".len()..)?;
    let end = behind.find(|digit: char| !digit.is_ascii_hexdigit() && digit != '-' && digit != '_');
    let uid = behind.get(..end.unwrap_or(behind.len()))?.replace('_', "-");
    let groups: Vec<&str> = uid.split('-').collect();
    let is_uuid =
        groups.len() == 5 && groups.iter().zip([8, 4, 4, 4, 12]).all(|(group, digits)| is_hexadecimal(group, digits));
    (is_uuid || is_hexadecimal(&uid, 32)).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";
    const UID: &str = "1a2b3c4d-0000-1111-2222-333344445555";
    const STATIC_UID: &str = "0123456789abcdef0123456789abcdef";
    const FARGATE: &str = "0123456789abcdef0123456789abcdef-1234567890";

    #[test]
    fn each_runtime_has_the_id_in_its_own_place() {
        for (path, id, pod) in [
            ("/system.slice/docker-ID.scope", Some(ID), None),
            ("/docker/ID", Some(ID), None),
            ("/docker/ID/init.scope", Some(ID), None),
            (
                "/system.slice/containerd.service/kubepods-besteffort-podUID.slice:cri-containerd:ID",
                Some(ID),
                Some(UID),
            ),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope",
                Some(ID),
                Some(UID),
            ),
            ("/kubepods/burstable/podUID/ID", Some(ID), Some(UID)),
            ("/kubepods/besteffort/podSTATIC/ID", Some(ID), Some(STATIC_UID)),
            ("/kubepods.slice/kubepods-podUID.slice/crio-ID.scope/container", Some(ID), Some(UID)),
            ("/kubepods.slice/kubepods-podUID.slice/crio-conmon-ID.scope", None, Some(UID)),
            ("/machine.slice/libpod-ID.scope/container", Some(ID), None),
            ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope", Some(ID), None),
            ("/machine.slice/libpod-conmon-ID.scope", None, None),
            ("/machine.slice/machine-libpod_pod_ID.slice/libpod-ID.scope", Some(ID), None),
            ("/libpod_parent/libpod_pod_ID/libpod-ID", Some(ID), None),
            ("/ecs/TASK/ID", Some(ID), None),
            ("/ecs/TASK/FARGATE", Some(FARGATE), None),
            ("/ecstasks.slice/ecstasks-TASK.slice/docker-ID.scope", Some(ID), None),
            ("/user.slice/user-0.slice/podman-x", None, None),
            ("/builds/FARGATE", None, None),
            ("/system.slice/tripod-0123.service", None, None),
        ] {
            let path = path.replace("FARGATE", FARGATE).replace("STATIC", STATIC_UID).replace("TASK", STATIC_UID);
            let path = path.replace(
                "podUID",
                &format!("pod{}", if path.contains(".slice") { UID.replace('-', "_") } else { UID.to_owned() }),
            );
            let found = container_of(&path.replace("ID", ID));
            assert_eq!((found.id, found.pod), (id.map(Into::into), pod.map(Into::into)), "{path}");
        }
    }

    #[test]
    fn the_hierarchy_that_knows_of_the_container_is_preferred_and_then_the_unified_one() {
        let in_v1 = format!("12:cpu:/\n4:memory:/docker/{ID}\n0::/system.slice/containerd.service\n");
        assert_eq!(cgroup_path(&in_v1), Some(&*format!("/docker/{ID}")));
        let in_v2 = format!("4:memory:/docker/{ID}\n0::/docker/{ID}/x\n");
        assert_eq!(cgroup_path(&in_v2), Some(&*format!("/docker/{ID}/x")));
        assert_eq!(cgroup_path("12:cpu:/a\n0::/b:c\n"), Some("/b:c"));
        assert_eq!(cgroup_path("12:cpu:/a\n"), Some("/a"));
        assert_eq!(cgroup_path(""), None);
    }
}
