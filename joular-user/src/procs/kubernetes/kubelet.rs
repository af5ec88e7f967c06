//! Lists pods by the kubelet's `/pods`: a `PodList` of the Kubernetes API (core/v1) with all pods of the node.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;

use super::{Listing, Pod, Trust};
use crate::fetch::{self, FetchError, Request};

/// Longest answer: a node has some hundred pods of some ten kilobytes.
const MAX_BYTES: usize = 64 << 20;

/// Of a static pod, whose control group does not have the uid by which the API server knows it.
const CONFIG_HASH: &str = "kubernetes.io/config.hash";

/// Everything is optional: a field that is missing is not worth losing the others.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodList {
    items: Vec<Item>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    ephemeral_containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    image: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    container_statuses: Vec<ContainerStatus>,
    init_container_statuses: Vec<ContainerStatus>,
    ephemeral_container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    image: String,
    /// `containerd://` and the id.
    #[serde(rename = "containerID")]
    container_id: String,
}

/// Understands an answer.
fn listing(json: &[u8]) -> Result<Listing, String> {
    let list: PodList = serde_json::from_slice(json).map_err(|error| format!("no list of pods: {error}"))?;
    let mut listing = Listing::default();
    for Item { metadata, spec, status } in &list.items {
        let labels = metadata.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let pod = Pod { uid: &metadata.uid, namespace: &metadata.namespace, name: &metadata.name, labels };
        listing.add_pod(&pod);
        if let Some(hash) = metadata.annotations.get(CONFIG_HASH) {
            listing.add_pod(&Pod { uid: hash, labels: pod.labels.clone(), ..pod });
        }
        let images = [&spec.containers, &spec.init_containers, &spec.ephemeral_containers].into_iter().flatten();
        let images: BTreeMap<&str, &str> =
            images.map(|container| (container.name.as_str(), container.image.as_str())).collect();
        let statuses =
            [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses];
        for container in statuses.into_iter().flatten() {
            let Some((_, id)) = container.container_id.split_once("://") else { continue };
            // Of the status it may be a digest.
            let image = images.get(container.name.as_str()).copied().unwrap_or(&container.image);
            listing.add_container(id, &pod, &container.name, image);
        }
    }
    Ok(listing)
}

/// Asks the kubelet. Token and certificates are read anew, because they are replaced now and then.
pub(super) async fn list(url: &str, token: Option<&Path>, trust: &Trust) -> Result<Listing, String> {
    let read =
        |key, path: &Path| fs::read(path).map_err(|error| format!("reading {}: {error}: check {key}", path.display()));
    let token = token.map(|path| read("kubernetes-token", path)).transpose()?;
    let token = token.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let authority = match trust {
        Trust::Authority(path) if url.starts_with("https:") => Some(read("kubernetes-ca", path)?),
        _ => None,
    };
    let request = Request {
        url: &format!("{url}/pods"),
        token: token.as_deref(),
        authority: authority.as_deref(),
        is_anyone_trusted: *trust == Trust::Anyone,
        accept: None,
        max_bytes: MAX_BYTES,
    };
    let bytes = fetch::get(&request).await.map_err(|error| match error {
        FetchError::Status { code: 401, .. } => "it does not accept the token".to_owned(),
        FetchError::Status { code: 403, .. } => {
            "the token may not read nodes/pods: give its role that right, or ask the \
                                                 container runtime where Kubernetes is older than 1.33"
                .to_owned()
        }
        other => other.to_string(),
    })?;
    listing(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortened from what a kubelet 1.30 says.
    const ANSWER: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[
      {"metadata":{"name":"checkout-5d9c7-x2","namespace":"shop","uid":"6a9f2f3e-5c1b-4d39-9a53-0c7b2f1e8d01",
        "labels":{"app.kubernetes.io/name":"checkout","app.kubernetes.io/version":"1.4.2"}},
       "spec":{"containers":[{"name":"main","image":"registry.shop:5000/shop/checkout:1.4.2"}],
               "initContainers":[{"name":"wait","image":"busybox"}]},
       "status":{"phase":"Running","containerStatuses":[{"name":"main","image":"sha256:77","containerID":"containerd://aa"}],
                 "initContainerStatuses":[{"name":"wait","image":"busybox","containerID":"cri-o://bb"}]}},
      {"metadata":{"name":"etcd-node1","namespace":"kube-system","uid":"u2","annotations":{"kubernetes.io/config.hash":"h2"}},
       "status":{"containerStatuses":[{"name":"etcd","containerID":""}]}}]}"#;

    #[test]
    fn pods_and_all_their_containers_are_known_with_images_as_the_pod_names_them() {
        let listing = listing(ANSWER.as_bytes()).unwrap();
        let main = &listing.by_container["aa"];
        assert_eq!((main.namespace.raw(), main.pod.raw()), ("shop", "checkout-5d9c7-x2"));
        assert_eq!(main.container, Some("main".into()));
        assert_eq!(main.image, Some("registry.shop:5000/shop/checkout:1.4.2".into()));
        assert_eq!(main.label("app.kubernetes.io/version"), Some("1.4.2"));
        assert_eq!(listing.by_container["bb"].container, Some("wait".into()));
        assert_eq!(listing.by_container.len(), 2);
        let mut pods: Vec<&str> = listing.by_pod.keys().map(String::as_str).collect();
        pods.sort_unstable();
        assert_eq!(pods, ["6a9f2f3e-5c1b-4d39-9a53-0c7b2f1e8d01", "h2", "u2"]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "<html>", "[1]", r#"{"items":3}"#] {
            assert!(listing(text.as_bytes()).unwrap_err().starts_with("no list of pods: "), "{text}");
        }
        assert_eq!(listing(b"{}").unwrap(), Listing::default());
    }
}
