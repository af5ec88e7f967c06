//! Reads name and version from the reference of a container's image.

use joular_data::model::target_text::TargetText;

use super::usable;

/// What an image says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageIdentity {
    pub name: TargetText,
    pub tag: Option<TargetText>,
}

/// Understands `registry:5000/path/name:tag@digest`
/// (<https://github.com/distribution/reference>); `None`: it is a digest alone.
pub fn identity(reference: &str) -> Option<ImageIdentity> {
    let named = reference.split_once('@').map_or(reference, |(named, _)| named);
    let last = named.rsplit_once('/').map_or(named, |(_, last)| last);
    let (name, tag) = last.split_once(':').map_or((last, None), |(name, tag)| (name, Some(tag)));
    let is_digest = named.starts_with("sha256:") || (tag.is_none() && is_id(name));
    // A tag that moves is not a version.
    let tag = tag.filter(|&tag| tag != "latest").and_then(usable);
    Some(ImageIdentity { name: usable(name).filter(|_| !is_digest)?, tag })
}

/// Whether it is the id of an image, which says nothing.
fn is_id(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_tag_are_what_is_last() {
        for (reference, expected) in [
            ("checkout", Some(("checkout", None))),
            ("shop/checkout:1.4.2", Some(("checkout", Some("1.4.2")))),
            ("registry:5000/shop/checkout", Some(("checkout", None))),
            ("registry:5000/checkout:1@sha256:77", Some(("checkout", Some("1")))),
            ("docker.io/library/tomcat:latest", Some(("tomcat", None))),
            ("sha256:5fb1", None),
            ("4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2", None),
            ("", None),
            ("a/", None),
            (":5", None),
        ] {
            let found = identity(reference);
            let found = found.as_ref().map(|one| (one.name.raw(), one.tag.as_ref().map(TargetText::raw)));
            assert_eq!(found, expected, "{reference}");
        }
    }
}
