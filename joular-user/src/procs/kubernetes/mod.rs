//! Knows which pod and container of Kubernetes a control group belongs to: names, image, labels.
//!
//! The kernel knows ids only. The node's kubelet ([`kubelet`]) or its container runtime ([`cri`]) knows the rest.
//! One of them is asked by a thread of its own ([`watch`]), so that no window ever waits for an answer: what is not
//! known yet is told when it is.

mod cri;
mod kubelet;
mod watch;

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::SyncSender,
    },
};

use joular_data::{events::Workload, model::target_text::TargetText};

use crate::bounds::Bound;

pub use self::watch::Say;

/// Longest label, as `key=value`: Kubernetes allows 317 bytes for a key and 63 for a value.
const MAX_LABEL_BYTES: usize = 384;
/// Labels of a pod that are kept.
const MAX_LABELS: usize = 64;
/// Longest name: that of an image.
const MAX_NAME_BYTES: usize = 1024;
pub static LABELS: Bound = Bound::new(
    "pod_labels_not_kept",
    MAX_LABELS as u64,
    "labels of a pod, and 384 bytes of one",
    "the rest is not recorded",
);
pub static NAMES: Bound = Bound::new(
    "pod_name_too_long",
    MAX_NAME_BYTES as u64,
    "bytes of the name of a pod, a namespace, a container or an image",
    "it is not recorded",
);
/// Ids that were asked for in vain and are remembered.
const MAX_UNKNOWN: usize = 4096;

/// Who is asked for pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The node's kubelet: its address, without a path.
    Kubelet { url: String, token: Option<PathBuf>, trust: Trust },
    /// The socket of a container runtime: containerd, CRI-O.
    Cri(PathBuf),
}

/// Which certificate of the kubelet is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// One that an authority of this file signed.
    Authority(PathBuf),
    /// Any. Whoever is at the kubelet's address then gets the token.
    Anyone,
}

/// What Kubernetes runs on this node.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listing {
    by_container: HashMap<String, Workload>,
    /// Without container and image.
    by_pod: HashMap<String, Workload>,
}

/// Pods of this node, as far as they are known. Clones share what is known.
#[derive(Clone, Debug, Default)]
pub struct Pods(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    known: Mutex<Arc<Listing>>,
    /// Grows with each change of `known`.
    generation: AtomicU64,
    /// Ids that were not found, for each of which the source was asked at once.
    unknown: Mutex<HashSet<TargetText>>,
    /// Makes the watching thread ask at once. It ends when this is gone.
    ask: SyncSender<()>,
}

impl Pods {
    /// Grows with each change of what is known.
    pub fn generation(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.generation.load(Ordering::Acquire))
    }

    /// What runs in a container, or at least in which pod it is. If that is not known, the source is asked at once,
    /// and [`Self::generation`] grows when there is an answer.
    pub fn find(&self, container: Option<&TargetText>, pod: Option<&TargetText>) -> Option<Box<Workload>> {
        let shared = self.0.as_ref()?;
        let known = Arc::clone(&shared.known.lock().unwrap_or_else(PoisonError::into_inner));
        let in_container = container.and_then(|id| known.by_container.get(id.raw()));
        let found = in_container.or_else(|| known.by_pod.get(pod?.raw()));
        if in_container.is_none()
            && let Some(id) = container.or(pod)
        {
            shared.miss(id);
        }
        found.cloned().map(Box::new)
    }
}

impl Shared {
    fn miss(&self, id: &TargetText) {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if unknown.len() >= MAX_UNKNOWN {
            unknown.clear();
        }
        if unknown.insert(id.clone()) {
            // Full: it will ask anyway.
            let _ = self.ask.try_send(());
        }
    }

    fn publish(&self, listing: Listing) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if **known != listing {
            *known = Arc::new(listing);
            self.generation.fetch_add(1, Ordering::Release);
        }
    }
}

/// A pod, as both sources describe it.
#[derive(Debug, Default)]
struct Pod<'a> {
    uid: &'a str,
    namespace: &'a str,
    name: &'a str,
    labels: Vec<(&'a str, &'a str)>,
}

impl Pod<'_> {
    /// `None`: a name is missing, or longer than Kubernetes allows.
    fn workload(&self) -> Option<Workload> {
        let mut labels = self.labels.clone();
        labels.sort_unstable();
        let texts = labels.into_iter().map(|(key, value)| format!("{key}={value}"));
        let kept = texts.filter(|text| text.len() <= MAX_LABEL_BYTES).take(MAX_LABELS);
        let labels: Vec<TargetText> = kept.map(Into::into).collect();
        LABELS.cut((self.labels.len() - labels.len()) as u64);
        Some(Workload { namespace: name(self.namespace)?, pod: name(self.name)?, labels, ..Workload::default() })
    }
}

fn name(text: &str) -> Option<TargetText> {
    NAMES.cut(u64::from(text.len() > MAX_NAME_BYTES));
    (!text.is_empty() && text.len() <= MAX_NAME_BYTES).then(|| text.into())
}

impl Listing {
    fn add_pod(&mut self, pod: &Pod<'_>) {
        if let Some(workload) = pod.workload() {
            self.by_pod.insert(pod.uid.to_owned(), workload);
        }
    }

    /// `image`: as the pod names it.
    fn add_container(&mut self, id: &str, pod: &Pod<'_>, container: &str, image: &str) {
        if let Some(workload) = pod.workload() {
            let workload = Workload { container: name(container), image: name(image), ..workload };
            self.by_container.insert(id.to_owned(), workload);
        }
    }
}

#[cfg(test)]
impl Pods {
    /// Knows these containers, and nothing else; what they are can be changed.
    pub fn fixed(containers: &[(&str, Workload)]) -> Self {
        let pods = Self(Some(Arc::new(Shared {
            known: Mutex::default(),
            generation: AtomicU64::new(0),
            unknown: Mutex::default(),
            ask: std::sync::mpsc::sync_channel(1).0,
        })));
        pods.learn(containers);
        pods
    }

    pub fn learn(&self, containers: &[(&str, Workload)]) {
        let by_container = containers.iter().map(|(id, workload)| ((*id).to_owned(), workload.clone())).collect();
        self.0.as_ref().unwrap().publish(Listing { by_container, by_pod: HashMap::new() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod<'a>() -> Pod<'a> {
        Pod { uid: "u", namespace: "shop", name: "checkout-1", labels: vec![("b", "2"), ("a", "1")] }
    }

    #[test]
    fn a_container_is_known_by_its_id_and_else_by_its_pod() {
        let mut listing = Listing::default();
        listing.add_pod(&pod());
        listing.add_container("c", &pod(), "main", "shop/checkout:1");
        let pods = Pods::fixed(&[]);
        pods.0.as_ref().unwrap().publish(listing);
        let [c, d, u] = ["c", "d", "u"].map(TargetText::from);
        let found = pods.find(Some(&c), Some(&u)).unwrap();
        assert_eq!((found.pod.raw(), found.container), ("checkout-1", Some("main".into())));
        let found = pods.find(Some(&d), Some(&u)).unwrap();
        assert_eq!((found.pod.raw(), found.container), ("checkout-1", None));
        assert_eq!(found.labels, ["a=1", "b=2"]);
        assert_eq!(pods.find(Some(&d), None), None);
        assert_eq!(pods.find(None, None), None);
    }

    #[test]
    fn the_generation_grows_with_what_is_new_only() {
        let pods = Pods::fixed(&[("c", pod().workload().unwrap())]);
        let first = pods.generation();
        pods.learn(&[("c", pod().workload().unwrap())]);
        assert_eq!(pods.generation(), first);
        pods.learn(&[]);
        assert_eq!(pods.generation(), first + 1);
        assert_eq!(Pods::default().generation(), 0);
    }

    #[test]
    fn names_and_labels_are_bounded() {
        let long = "x".repeat(10_000);
        let labels = (0..200).map(|_| ("k", "v")).chain([(long.as_str(), "v"), ("quote\"", "line\nbreak")]).collect();
        let workload = Pod { labels, ..pod() }.workload().unwrap();
        assert_eq!(workload.labels.len(), MAX_LABELS);
        assert!(workload.labels.iter().all(|label| label.raw() == "k=v"));
        assert_eq!(Pod { name: &long, ..pod() }.workload(), None);
        assert_eq!(Pod { namespace: "", ..pod() }.workload(), None);
    }
}
