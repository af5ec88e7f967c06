//! Describes groups: what identifies one, its name and its details.

use std::collections::HashMap;

use serde_json::json;

use super::{super::by::LabelKey, Group, group};
use crate::{
    events::Machine,
    model::{
        container::short_id,
        frame::{Frame, FrameKind, Marker, package_title},
        target_text::TargetText,
    },
    report::profile::{Catalog, Handler, PathIndex, Paths, ProcessIndex, catalog::Process},
    stacks::branch_id,
    text::signature::{Method, told_apart},
};

/// What identifies methods: class, name, signature, module. Neither kinds of code nor lines count.
pub(super) type MethodKey<'a> =
    (Option<&'a TargetText>, &'a TargetText, Option<&'a TargetText>, Option<&'a TargetText>, bool);

pub(super) fn method_key(frame: &Frame) -> MethodKey<'_> {
    let is_marker = frame.kind == FrameKind::Marker;
    (frame.class.as_ref(), &frame.name, frame.signature.as_ref(), frame.module.as_ref(), is_marker)
}

fn method_name(class: Option<&TargetText>, name: &TargetText) -> TargetText {
    class.map_or_else(|| name.clone(), |class| format!("{}.{}", class.raw(), name.raw()).into())
}

/// Names the groups of methods; signature and module are shown where one name has several.
pub(super) fn method_groups(methods: &[MethodKey<'_>]) -> Vec<Group> {
    let names: Vec<TargetText> = methods.iter().map(|(class, name, ..)| method_name(*class, name)).collect();
    let told: Vec<Method<'_>> = methods
        .iter()
        .zip(&names)
        .map(|(&(_, _, signature, module, _), name)| Method::new(name, signature, module))
        .collect();
    let group =
        |((method, shown), &(class, _, signature, module, is_marker)): ((&TargetText, TargetText), &MethodKey<'_>)| {
            let details =
                vec![json!(method), json!(class), json!(class.map(package_of)), json!(signature), json!(module)];
            Group { name: shown, details, is_marker }
        };
    names.iter().zip(told_apart(&told)).zip(methods).map(group).collect()
}

/// Classes that were allocated, behind them what no sample saw and what has no name any more.
pub(super) fn class_groups(classes: &[TargetText]) -> Vec<Group> {
    let marker = |name: &str| Group { name: name.into(), details: vec![json!(null)], is_marker: true };
    let class = |name: &TargetText| group(name.clone(), vec![json!(name)]);
    let markers = [marker(Marker::NoSample.name()), marker("[unknown class]")];
    classes.iter().map(class).chain(markers).collect()
}

fn package_of(class: &TargetText) -> &str {
    class.raw().rsplit_once('.').map_or("", |(package, _)| package)
}

/// What stands for code without a class, and whether it is a marker.
pub(super) type StandIn = (TargetText, bool);

pub(super) fn stand_in(frame: &Frame) -> Option<StandIn> {
    frame.class.is_none().then(|| (frame.stand_in(), frame.kind == FrameKind::Marker))
}

pub(super) fn class_group((class, other): (Option<&TargetText>, Option<StandIn>)) -> Group {
    let (stand_in, is_marker) = other.unwrap_or_default();
    let name = class.cloned().unwrap_or(stand_in);
    Group { name, details: vec![json!(class), json!(class.map(package_of))], is_marker }
}

pub(super) fn package_group((package, other): (Option<&str>, Option<StandIn>)) -> Group {
    let (stand_in, is_marker) = other.unwrap_or_default();
    let name = package.map_or(stand_in, package_title);
    Group { name, details: vec![json!(package)], is_marker }
}

pub(super) type LineKey<'a> =
    (Option<&'a TargetText>, &'a TargetText, Option<&'a TargetText>, Option<&'a TargetText>, Option<u32>, bool);

pub(super) fn line_key(frame: &Frame) -> LineKey<'_> {
    let (class, module, file) = (frame.class.as_ref(), frame.module.as_ref(), frame.file.as_ref());
    (class, &frame.name, module, file, frame.line, frame.kind == FrameKind::Marker)
}

pub(super) fn line_group((class, name, module, file, line, is_marker): LineKey<'_>) -> Group {
    let method = method_name(class, name);
    let place = match (file, line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", file.raw())),
        (Some(file), None) => Some(file.raw().to_owned()),
        (None, Some(line)) => Some(format!("line {line}")),
        (None, None) => module.map(|module| module.raw().to_owned()),
    };
    let details = vec![json!(method), json!(class), json!(module), json!(file), json!(line)];
    let name = match place {
        Some(place) => format!("{} ({place})", method.raw()).into(),
        None => method,
    };
    Group { name, details, is_marker }
}

pub(super) fn branch_group(paths: &Paths, path: PathIndex) -> Group {
    let names: Vec<String> = paths.frames_of(path).map(|frame| frame.method().raw().replace(';', ":")).collect();
    group(names.join(";"), vec![json!(branch_id(paths.frames_of(path))), json!(names.len())])
}

/// Stands for work of no handler.
pub(in crate::report) const NO_HANDLER: &str = "[no handler]";

pub(super) fn handler_group(handler: Option<&Handler>) -> Group {
    match handler {
        Some(Handler { class, method, framework }) => {
            group(method.clone(), vec![json!(method), json!(class), json!(framework)])
        }
        None => Group { name: NO_HANDLER.into(), details: vec![json!(null); 3], is_marker: true },
    }
}

pub(super) fn thread_group(catalog: &Catalog, index: usize) -> Group {
    let Some(thread) = catalog.threads.get(index) else { return group("", Vec::new()) };
    let process = catalog.process(thread.process);
    let host = &catalog.run_of(process).info.host;
    let details = vec![
        json!(thread.name),
        json!(thread.tid.0),
        json!(process.pid.0),
        json!(process.title()),
        json!(thread.category.name()),
        json!(host),
    ];
    group(format!("{} (thread {} of {})", thread.name.raw(), thread.tid, process.pid), details)
}

pub(super) fn process_group(catalog: &Catalog, index: ProcessIndex) -> Group {
    let process = catalog.process(index);
    let run = catalog.run_of(process);
    let details = vec![
        json!(process.pid.0),
        json!(process.comm),
        json!(process.main_class),
        json!(process.container),
        json!(process.pod),
        json!(run.info.host),
        json!(run.info.run_id),
        json!(process.service),
        json!(process.version),
    ];
    group(format!("{} {}", process.pid, process.title().raw()), details)
}

pub(super) fn host_group(catalog: &Catalog, machine: Machine<'_>) -> Group {
    let details = vec![json!(machine.host), json!(machine.machine_id), json!(machine.instance_id)];
    group(catalog.host_title(machine), details)
}

pub(super) fn label_group(key: LabelKey, value: Option<&str>) -> Group {
    let name = value.map_or_else(|| format!("[no label {}]", key.key()).into(), TargetText::from);
    Group { name, details: vec![json!(value)], is_marker: value.is_none() }
}

/// A container with its pod and machine.
pub(super) type ContainerKey<'a> = (&'a TargetText, Option<&'a TargetText>, Machine<'a>);

/// Namespace and name.
pub(super) type PodName<'a> = (&'a TargetText, &'a TargetText);

pub(super) fn container_of<'a>(catalog: &'a Catalog, process: &'a Process) -> Option<ContainerKey<'a>> {
    Some((process.container.as_ref()?, process.pod.as_ref(), catalog.run_of(process).info.machine()))
}

pub(super) fn service_group(service: Option<&TargetText>) -> Group {
    let name = service.cloned().unwrap_or_else(|| "[no service known]".into());
    Group { name, details: vec![json!(service)], is_marker: service.is_none() }
}

/// A container with its pod and host. Its name is the short form of its id.
pub(super) fn container_group(container: Option<ContainerKey<'_>>) -> Group {
    match container {
        Some((id, pod, machine)) => group(short_id(id.raw()), vec![json!(id), json!(pod), json!(machine.host)]),
        None => group("[no container]", vec![json!(null), json!(null), json!(null)]),
    }
}

/// Namespaces and names of pods by uid. A process that ended at once may not know them; others in its pod do.
pub(super) fn pod_names(catalog: &Catalog) -> HashMap<&TargetText, PodName<'_>> {
    let known = catalog.processes.iter();
    known.filter_map(|one| Some((one.pod.as_ref()?, (one.namespace.as_ref()?, one.pod_name.as_ref()?)))).collect()
}

/// A pod is called as `kubectl` does it, or by its uid.
pub(super) fn pod_group(pod: Option<(&TargetText, Option<PodName<'_>>)>) -> Group {
    match pod {
        Some((uid, Some((namespace, name)))) => {
            group(format!("{}/{}", namespace.raw(), name.raw()), vec![json!(uid), json!(name), json!(namespace)])
        }
        Some((uid, None)) => group(uid.clone(), vec![json!(uid), json!(null), json!(null)]),
        None => group("[no pod]", vec![json!(null), json!(null), json!(null)]),
    }
}

pub(super) fn namespace_group(namespace: Option<&TargetText>) -> Group {
    let name = namespace.cloned().unwrap_or_else(|| "[no namespace known]".into());
    Group { name, details: vec![json!(namespace)], is_marker: namespace.is_none() }
}
