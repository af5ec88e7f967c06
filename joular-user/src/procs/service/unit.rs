//! Finds the systemd unit of a process, from its cgroup path.

use super::super::containers;

const SUFFIX: &str = ".service";

/// Podman's cgroup of a container that a unit runs and shares its own cgroup with (`--cgroups=split`,
/// as Quadlet does).
const PODMAN_SPLIT: &str = "libpod-payload-";

/// The unit of a service, as systemd names it. A process in a container is in a unit of the
/// container's own systemd, or in the one that runs this container alone, and not in that of the
/// container engine. Neither a scope (of a session or an application) nor the manager of a user's
/// units (`user@1000.service`) is a service.
pub fn of_cgroup(path: &str) -> Option<&str> {
    let mut unit = None;
    for part in path.split('/') {
        if part.ends_with(SUFFIX) && part.len() > SUFFIX.len() {
            unit = (!part.starts_with("user@")).then_some(part);
        } else if containers::container_of(part).id.is_some() && !part.starts_with(PODMAN_SPLIT) {
            unit = None;
        }
    }
    unit
}

/// What a unit runs: `app@1.service` is one of several instances of `app`.
pub fn service_name(unit: &str) -> Option<&str> {
    let name = unit.strip_suffix(SUFFIX)?;
    let name = name.split_once('@').map_or(name, |(template, _)| template);
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_found_where_systemd_puts_it() {
        let id = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";
        for (path, unit, service) in [
            ("/system.slice/tomcat9.service", Some("tomcat9.service"), Some("tomcat9")),
            ("/system.slice/system-app.slice/app@1.service", Some("app@1.service"), Some("app")),
            ("/system.slice/app.service/worker/7", Some("app.service"), Some("app")),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/shop.service",
                Some("shop.service"),
                Some("shop"),
            ),
            ("/user.slice/user-1000.slice/user@1000.service/init.scope", None, None),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/app-term-12.scope", None, None),
            ("/user.slice/user-1000.slice/session-3.scope", None, None),
            ("/system.slice/run-r12.scope", None, None),
            ("/system.slice/docker-ID.scope", None, None),
            ("/system.slice/containerd.service/kubepods-besteffort:cri-containerd:ID", None, None),
            ("/system.slice/containerd.service/ID", None, None),
            ("/system.slice/shop.service/libpod-payload-ID", Some("shop.service"), Some("shop")),
            ("/docker/ID/system.slice/nginx.service", Some("nginx.service"), Some("nginx")),
            ("/.service", None, None),
            ("/@1.service", Some("@1.service"), None),
            ("/", None, None),
            ("", None, None),
        ] {
            let path = path.replace("ID", id);
            let found = of_cgroup(&path);
            assert_eq!((found, found.and_then(service_name)), (unit, service), "{path}");
        }
    }
}
