//! Reads what tells this host from others: ids that files have, and labels.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use joular_data::{events::HostIdentity, model::target_text::TargetText};

use crate::config::labels::{self, MAX_LABELS};

/// More labels of this host: `key=value,key=value`, with `%` before two hexadecimal digits of what has a meaning there.
/// <https://opentelemetry.io/docs/specs/otel/resource/sdk/#specifying-resource-information-via-an-environment-variable>
pub const RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// No id is longer.
const MAX_ID_BYTES: u64 = 256;

/// Where files lie. Those of the host are seen through its first process, also from a container with its process ids.
pub struct Places<'a> {
    pub proc: &'a Path,
    pub sys: &'a Path,
}

/// The identity of this host. What cannot be read is not known; what is wrong in `attributes` is told to `warn`.
pub fn read(
    places: &Places<'_>,
    configured: &BTreeMap<String, String>,
    attributes: Option<&str>,
    warn: impl Fn(&str),
) -> HostIdentity {
    let host = places.proc.join("1/root");
    let mut labels = configured.clone();
    for (key, value) in of_attributes(attributes.unwrap_or_default()) {
        match labels::label(&key, &value) {
            _ if labels.contains_key(&key) => {}
            _ if !labels::is_of_hosts(&key) => {}
            Ok(()) if labels.len() < MAX_LABELS => drop(labels.insert(key, value)),
            Ok(()) => warn(&format!("{RESOURCE_ATTRIBUTES}: {key} is left out: more than {MAX_LABELS} labels")),
            Err(cause) => warn(&format!("{RESOURCE_ATTRIBUTES}: {} is left out: {cause}", key.escape_debug())),
        }
    }
    HostIdentity {
        machine_id: id(host.join("etc/machine-id")).or_else(|| id(host.join("var/lib/dbus/machine-id"))),
        instance_id: id(host.join("var/lib/cloud/data/instance-id")).or_else(|| of_amazon(places.sys)),
        labels: labels.iter().map(|(key, value)| format!("{key}={value}").into()).collect(),
    }
}

/// The first line of a file, if that looks like an id.
fn id(path: PathBuf) -> Option<TargetText> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_ID_BYTES).read_to_string(&mut text).ok()?;
    let line = text.lines().next()?.trim();
    let is_id = !line.is_empty() && line.chars().all(|c| c.is_ascii_graphic()) && line != "uninitialized";
    is_id.then(|| line.into())
}

/// Amazon's Nitro machines have their instance's id as the board's asset tag.
fn of_amazon(sys: &Path) -> Option<TargetText> {
    let tag = id(sys.join("class/dmi/id/board_asset_tag"))?;
    tag.raw().starts_with("i-").then_some(tag)
}

fn of_attributes(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(key, value)| (decoded(key), decoded(value)))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.trim().as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let digits = others.first_chunk::<2>().and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => (bytes.push(byte), rest = &others[2..]).1,
            None => (bytes.push(first), rest = others).1,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, fs};

    use super::*;

    fn raw(identity: &HostIdentity) -> (Option<&str>, Option<&str>) {
        (identity.machine_id.as_ref().map(TargetText::raw), identity.instance_id.as_ref().map(TargetText::raw))
    }

    #[test]
    fn ids_are_what_files_of_the_host_say() {
        let root = tempfile::tempdir().unwrap();
        let [proc, sys] = ["proc", "sys"].map(|name| root.path().join(name));
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = || read(&Places { proc: &proc, sys: &sys }, &BTreeMap::new(), None, |_| {});
        assert_eq!(found(), HostIdentity::default());
        write(proc.join("1/root/etc/machine-id"), "b08dfa6083e7567a1921a715000001fb\n");
        write(sys.join("class/dmi/id/board_asset_tag"), "Not Specified\n");
        assert_eq!(raw(&found()), (Some("b08dfa6083e7567a1921a715000001fb"), None));
        write(sys.join("class/dmi/id/board_asset_tag"), "i-0123456789abcdef0\n");
        assert_eq!(raw(&found()).1, Some("i-0123456789abcdef0"));
        write(proc.join("1/root/var/lib/cloud/data/instance-id"), "iid-datasource\n");
        assert_eq!(raw(&found()).1, Some("iid-datasource"));
        write(proc.join("1/root/etc/machine-id"), "uninitialized\n");
        assert_eq!(raw(&found()).0, None);
    }

    #[test]
    fn the_configuration_goes_before_the_environment_and_what_is_wrong_there_is_left_out() {
        let warnings = RefCell::new(Vec::new());
        let configured = BTreeMap::from([("cluster".to_owned(), "eu1".to_owned())]);
        let attributes = "cluster=us1, cloud.region=eu%2Dwest-1 ,service.name=x,k8s.pod.name=y,bad,a b=c,note=50%";
        let places = Places { proc: Path::new("/absent"), sys: Path::new("/absent") };
        let warn = |text: &str| warnings.borrow_mut().push(text.to_owned());
        let identity = read(&places, &configured, Some(attributes), warn);
        assert_eq!(identity.labels, ["cloud.region=eu-west-1", "cluster=eu1", "note=50%"].map(TargetText::from));
        let warnings = warnings.into_inner();
        assert!(warnings.len() == 2 && warnings[0].contains("bad is left out"), "{warnings:?}");
    }
}
