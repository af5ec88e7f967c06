//! Says whether a pattern means a container or a control group.

use joular_data::model::container;

use super::selection::NamePattern;

/// Whether a pattern matches a container's id, or is its first digits, of which there are at least 12.
pub fn is_container(pattern: &NamePattern, id: &str) -> bool {
    pattern.matches(id) || pattern.exact().is_some_and(|digits| container::is_short_for(digits, id))
}

/// Whether a pattern matches a control group's path, or that of a group which contains it.
pub fn is_in_cgroup(pattern: &NamePattern, path: &str) -> bool {
    let mut upper = Some(path);
    while let Some(path) = upper {
        if pattern.matches(path) {
            return true;
        }
        upper = path.rsplit_once('/').map(|(upper, _)| upper);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_meant_by_its_id_and_by_its_first_twelve_digits() {
        let id = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";
        for (pattern, expected) in
            [(id, true), (&id[..12], true), (&id[..20], true), (&id[..11], false), ("4f2b*", true), (&id[1..13], false)]
        {
            assert_eq!(is_container(&NamePattern::new(pattern).unwrap(), id), expected, "{pattern}");
        }
    }

    #[test]
    fn a_cgroup_is_meant_with_all_groups_in_it() {
        let path = "/system.slice/shop.service/worker";
        for (pattern, expected) in [
            (path, true),
            ("/system.slice/shop.service", true),
            ("/system.slice", true),
            ("/system.slice/shop", false),
            ("system.slice", false),
            ("*/shop.service", true),
            ("/system.slice/s*", true),
            ("/user.slice*", false),
        ] {
            assert_eq!(is_in_cgroup(&NamePattern::new(pattern).unwrap(), path), expected, "{pattern}");
        }
    }
}
