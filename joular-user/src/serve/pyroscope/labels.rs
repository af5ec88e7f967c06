//! Names what Grafana can select and group by: labels of processes, and the part that a thread has in its JVM.

use joular_data::{
    attribution::window_report::Category,
    fleet::choice::View,
    model::target_text::TargetText,
    report::profile::{Catalog, Process, ThreadIndex},
};

use super::super::scan::Label;

/// The type of a profile, which is no label of a process.
pub const PROFILE_TYPE: &str = "__profile_type__";
/// The [category](Category) of a thread.
pub const JVM_PART: &str = "jvm_part";

/// Those of processes, beside the labels of pods and hosts.
const OF_PROCESSES: [&str; 7] = ["service_name", "service_version", "host", "namespace", "pod", "container", "comm"];

/// Those that sums of services have, too, each with the values that it has in the runs.
const OF_SUMS: [&str; 5] = ["service_name", "service_version", "namespace", JVM_PART, PROFILE_TYPE];

/// A view for each of these labels that sums do not have.
pub fn beyond_sums<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<View> {
    names.into_iter().filter(|name| !OF_SUMS.contains(name)).map(|_| View::Labels).collect()
}

/// What has labels: the threads of a process that have one part in it.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub catalog: &'a Catalog,
    pub process: &'a Process,
    pub part: Category,
}

impl<'a> Owner<'a> {
    pub fn of(catalog: &'a Catalog, thread: ThreadIndex) -> Self {
        Self { catalog, process: catalog.process_of(thread), part: catalog.thread(thread).category }
    }

    /// The names of all its labels, each once.
    pub fn names(self) -> Vec<String> {
        let of_data = self.of_data().map(|(name, _)| name);
        let all = OF_PROCESSES.into_iter().chain([JVM_PART]).map(str::to_owned).chain(of_data);
        let mut names: Vec<String> = all.filter(|name| self.value(name).is_some()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub fn value(self, name: &str) -> Option<String> {
        let found = if name == JVM_PART {
            Some(self.part.name().to_owned())
        } else {
            value(self.catalog, self.process, name).map(TargetText::into_raw)
        };
        found.filter(|value| !value.is_empty())
    }

    fn of_data(self) -> impl Iterator<Item = (String, &'a str)> {
        of_data(self.catalog, self.process)
    }
}

/// The value of a label of a process.
pub fn value(catalog: &Catalog, process: &Process, name: &str) -> Option<TargetText> {
    match name {
        // As exports for OpenTelemetry have it: profiles without a service are nowhere to be seen in Grafana.
        "service_name" => Some(process.service.as_ref().unwrap_or(process.title()).clone()),
        "service_version" => Label::Version.of(catalog, process),
        "host" => Label::Host.of(catalog, process),
        "namespace" => Label::Namespace.of(catalog, process),
        "pod" => Label::Pod.of(catalog, process),
        "container" => process.container.clone(),
        "comm" => Some(process.comm.clone()),
        name => of_data(catalog, process).find(|(known, _)| known == name).map(|(_, value)| value.into()),
    }
}

/// Labels of the process's pod, and then of its host, with names that selectors can have.
fn of_data<'a>(catalog: &'a Catalog, process: &'a Process) -> impl Iterator<Item = (String, &'a str)> {
    let of_host = catalog.runs.get(process.run).into_iter().flat_map(|run| &run.info.identity.labels);
    let pairs = process.labels.iter().chain(of_host).filter_map(|label| label.raw().split_once('='));
    pairs.map(|(key, value)| (selectable(key), value))
}

/// The key of a label as Prometheus writes it: `app_kubernetes_io_name`.
fn selectable(key: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name: String = key.chars().map(|c| if is_part(c) { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use joular_data::{
        events::{HostIdentity, RunInfo},
        report::profile::Run,
    };

    use super::*;

    #[test]
    fn processes_have_labels_of_their_service_their_pod_and_their_host() {
        let identity =
            HostIdentity { labels: vec!["cluster=eu1".into(), "tier=back".into()], ..HostIdentity::default() };
        let info = RunInfo { identity, host: "node-1".into(), ..RunInfo::default() };
        let catalog = Catalog { runs: vec![Run { info, ..Run::default() }], ..Catalog::default() };
        let process = Process {
            comm: "java".into(),
            main_class: Some("com.acme.Shop".into()),
            pod: Some("1a2b".into()),
            labels: vec!["app.kubernetes.io/name=shop".into(), "tier=front".into(), "host=liar".into(), "1st=".into()],
            ..Process::default()
        };
        let owner = Owner { catalog: &catalog, process: &process, part: Category::Gc };
        for (name, expected) in [
            ("service_name", Some("com.acme.Shop")),
            ("service_version", None),
            ("host", Some("node-1")),
            ("pod", Some("1a2b")),
            ("comm", Some("java")),
            ("jvm_part", Some("gc")),
            ("app_kubernetes_io_name", Some("shop")),
            ("app.kubernetes.io/name", None),
            ("tier", Some("front")),
            ("cluster", Some("eu1")),
            ("_1st", None),
            (PROFILE_TYPE, None),
        ] {
            assert_eq!(owner.value(name).as_deref(), expected, "{name}");
        }
        let names = ["app_kubernetes_io_name", "cluster", "comm", "host", "jvm_part", "pod", "service_name", "tier"];
        assert_eq!(owner.names(), names);
        let named = Process { service: Some("shop".into()), ..process.clone() };
        assert_eq!(Owner { process: &named, ..owner }.value("service_name").as_deref(), Some("shop"));
    }
}
