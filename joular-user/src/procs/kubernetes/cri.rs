//! Lists pods by the runtime interface of Kubernetes (CRI): gRPC on the socket of containerd or CRI-O.
//!
//! Messages are those of <https://github.com/kubernetes/cri-api>, pkg/apis/runtime/v1/api.proto, with the fields that
//! are read here. gRPC is a message after five bytes, over HTTP/2
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).

use std::{collections::HashMap, path::Path};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, body::Bytes, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use joular_data::text::with_causes;
use prost::Message;
use tokio::net::UnixStream;

use super::{Listing, Pod};

/// Longest answer: a node has some hundred pods of some kilobytes.
const MAX_BYTES: usize = 64 << 20;
/// Not compressed, and the length of the message.
const PREFIX_BYTES: usize = 5;

#[derive(Clone, PartialEq, Message)]
struct PodSandboxes {
    #[prost(message, repeated, tag = "1")]
    items: Vec<PodSandbox>,
}

#[derive(Clone, PartialEq, Message)]
struct PodSandbox {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, optional, tag = "2")]
    metadata: Option<PodSandboxMetadata>,
    #[prost(map = "string, string", tag = "5")]
    labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    namespace: String,
}

#[derive(Clone, PartialEq, Message)]
struct Containers {
    #[prost(message, repeated, tag = "1")]
    items: Vec<Container>,
}

#[derive(Clone, PartialEq, Message)]
struct Container {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    pod_sandbox_id: String,
    #[prost(message, optional, tag = "3")]
    metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "4")]
    image: Option<ImageSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerMetadata {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ImageSpec {
    #[prost(string, tag = "1")]
    image: String,
    /// As the pod names it; newer runtimes say it.
    #[prost(string, tag = "18")]
    user_specified_image: String,
}

/// Joins what the two questions gave.
fn listing(sandboxes: &PodSandboxes, containers: &Containers) -> Listing {
    let mut listing = Listing::default();
    let mut pods = HashMap::new();
    for sandbox in &sandboxes.items {
        let Some(PodSandboxMetadata { name, uid, namespace }) = &sandbox.metadata else { continue };
        let labels = sandbox.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        // The runtime's own say what the metadata says.
        let labels = labels.filter(|(key, _)| !key.starts_with("io.kubernetes.")).collect();
        let pod = Pod { uid, namespace, name, labels };
        listing.add_pod(&pod);
        // The pod's first container, which waits, is the sandbox itself.
        listing.add_container(&sandbox.id, &pod, "", "");
        pods.insert(sandbox.id.as_str(), pod);
    }
    for container in &containers.items {
        let Some(pod) = pods.get(container.pod_sandbox_id.as_str()) else { continue };
        let name = container.metadata.as_ref().map_or("", |metadata| &metadata.name);
        let image = container.image.as_ref().map_or("", |image| match image.user_specified_image.as_str() {
            "" => &image.image,
            given => given,
        });
        listing.add_container(&container.id, pod, name, image);
    }
    listing
}

/// Asks the runtime.
pub(super) async fn list(socket: &Path) -> Result<Listing, String> {
    let stream = UnixStream::connect(socket).await.map_err(|error| format!("connecting: {error}"))?;
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map_err(|error| with_causes(&error))?;
    // It ends with `sender`.
    let connection = tokio::spawn(connection);
    let sandboxes = call(&mut sender, "ListPodSandbox").await?;
    let containers = call(&mut sender, "ListContainers").await?;
    drop(sender);
    connection.abort();
    Ok(listing(&sandboxes, &containers))
}

/// Calls a method whose request has no field set: everything is listed.
async fn call<M: Message + Default>(sender: &mut http2::SendRequest<Full<Bytes>>, method: &str) -> Result<M, String> {
    let request = Request::post(format!("http://localhost/runtime.v1.RuntimeService/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from_static(&[0; PREFIX_BYTES])))
        .map_err(|error| format!("{method}: {error}"))?;
    let answer = sender.send_request(request).await.map_err(|error| format!("{method}: {}", with_causes(&error)))?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, MAX_BYTES).collect().await.map_err(|error| format!("{method}: {error}"))?;
    // A failure without a message has its status among the headers.
    let trailers = body.trailers().cloned().unwrap_or_default();
    let header = |name: &str| trailers.get(name).or_else(|| parts.headers.get(name))?.to_str().ok().map(str::to_owned);
    let status = header("grpc-status").unwrap_or_default();
    if status != "0" {
        let cause = header("grpc-message").unwrap_or_default();
        return Err(format!("{method}: HTTP status {}, gRPC status '{status}' {cause}", parts.status.as_u16()));
    }
    message(&body.to_bytes()).map_err(|cause| format!("{method}: {cause}"))
}

/// The one message of an answer.
fn message<M: Message + Default>(answer: &[u8]) -> Result<M, String> {
    let message = match answer.split_first_chunk::<PREFIX_BYTES>() {
        Some(([0, length @ ..], message)) if u32::from_be_bytes(*length) as usize == message.len() => message,
        Some(([1, ..], _)) => return Err("the answer is compressed, which was not asked for".to_owned()),
        _ => return Err(format!("{} bytes are not an answer", answer.len())),
    };
    M::decode(message).map_err(|error| format!("no message: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox() -> PodSandbox {
        let labels = [("app.kubernetes.io/name", "checkout"), ("io.kubernetes.pod.uid", "u")];
        PodSandbox {
            id: "s".to_owned(),
            metadata: Some(PodSandboxMetadata { name: "checkout-1".into(), uid: "u".into(), namespace: "shop".into() }),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        }
    }

    fn container(sandbox: &str) -> Container {
        Container {
            id: "c".to_owned(),
            pod_sandbox_id: sandbox.to_owned(),
            metadata: Some(ContainerMetadata { name: "main".to_owned() }),
            image: Some(ImageSpec { image: "sha256:77".into(), user_specified_image: "shop/checkout:1".into() }),
        }
    }

    #[test]
    fn containers_have_the_names_and_labels_of_their_pod() {
        let listing = listing(
            &PodSandboxes { items: vec![sandbox(), PodSandbox::default()] },
            &Containers { items: vec![container("s"), Container::default()] },
        );
        let known = &listing.by_container["c"];
        assert_eq!((known.namespace.raw(), known.pod.raw()), ("shop", "checkout-1"));
        assert_eq!((&known.container, &known.image), (&Some("main".into()), &Some("shop/checkout:1".into())));
        assert_eq!(known.labels, ["app.kubernetes.io/name=checkout"]);
        assert_eq!(listing.by_container["s"].container, None);
        assert_eq!((listing.by_pod.len(), listing.by_container.len()), (1, 2));
    }

    #[test]
    fn an_answer_is_one_message_with_its_length_before_it() {
        let bytes = Containers { items: vec![container("s")] }.encode_to_vec();
        let length = u8::try_from(bytes.len()).unwrap();
        let framed = |prefix: [u8; 5]| [&prefix[..], &bytes].concat();
        assert_eq!(message::<Containers>(&framed([0, 0, 0, 0, length])).unwrap().items.len(), 1);
        for answer in [framed([1, 0, 0, 0, length]), framed([0, 0, 0, 1, length]), vec![0; 4], vec![]] {
            message::<Containers>(&answer).unwrap_err();
        }
    }
}
