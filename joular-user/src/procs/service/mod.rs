//! Says to which service a process belongs, and of which version the service is.
//!
//! The first of these that is known gives the name: a rule of the configuration, the program's settings of OpenTelemetry, a
//! label of the pod, the systemd unit, the container's image, what a JVM runs (its jar or its main class), the process's own
//! name. The version has a chain of its own. docs/identity.md has both for users.

pub mod image;
pub mod jar;
pub mod otel;
pub mod rules;
pub mod unit;

use joular_data::{
    events::{ProcessInfo, Runtime, Service, ServiceFrom, Workload},
    model::target_text::TargetText,
};

use self::{image::ImageIdentity, jar::JarIdentity, otel::Declared, rules::Rules};
use super::java::{self, Launched};

use crate::bounds::Bound;

/// Labels that Kubernetes recommends: <https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/>.
const NAME_LABEL: &str = "app.kubernetes.io/name";
const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// What files and settings of a process say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    pub jar: Option<JarIdentity>,
    pub declared: Declared,
}

impl Sources {
    /// Of what a JVM runs, without reading the file.
    pub fn of_launched(launched: Option<&Launched>, command_line: &[TargetText]) -> Self {
        let jar = launched.and_then(Launched::jar).map(|path| jar::of_file_name(java::file_name(path)));
        Self { jar, declared: Declared::read(&[], command_line) }
    }
}

/// The service of a process of which everything else is known.
pub fn of(info: &ProcessInfo, sources: Sources, rules: &Rules) -> Service {
    let Sources { jar, declared } = sources;
    let (title, jar_version) = jar.map_or((None, None), |jar| (jar.name, jar.version));
    let rule = rules.first_match(info);
    let workload = info.workload.as_deref();
    let label = |key| workload.and_then(|known: &Workload| usable(known.label(key)?));
    let image = workload.and_then(|known| image::identity(known.image.as_ref()?.raw()));
    let (image, tag) = image.map_or((None, None), |ImageIdentity { name, tag }| (Some(name), tag));
    let unit = info.unit.as_ref().and_then(|unit| unit::service_name(unit.raw()));
    let main_class = match &info.runtime {
        Runtime::Jvm { main_class, .. } => main_class.clone(),
        Runtime::Native => None,
    };
    let told = [
        (rule.map(|rule| rule.name.clone()), ServiceFrom::Rule),
        (declared.name, ServiceFrom::OpenTelemetry),
        (label(NAME_LABEL), ServiceFrom::Label),
        (unit.map(Into::into), ServiceFrom::Unit),
        (image, ServiceFrom::Image),
        (title, ServiceFrom::Jar),
        (main_class, ServiceFrom::MainClass),
    ];
    let mut told = told.into_iter().filter_map(|(name, from)| Some((name?, from)));
    let (name, from) = told.next().unwrap_or_else(|| (info.comm.clone(), ServiceFrom::Comm));
    let of_rule = rule.and_then(|rule| rule.version.clone());
    let version = of_rule.or(declared.version).or_else(|| label(VERSION_LABEL)).or(jar_version).or(tag);
    Service { name, version, from }
}

/// The service of a process that has another name now. Its files are not read again.
pub fn renamed(info: &ProcessInfo, rules: &Rules) -> Option<Service> {
    let known = info.service.clone()?;
    if let Some(rule) = rules.first_match(info) {
        let version = rule.version.clone().or(known.version);
        return Some(Service { name: rule.name.clone(), version, from: ServiceFrom::Rule });
    }
    match known.from {
        ServiceFrom::Comm => Some(Service { name: info.comm.clone(), ..known }),
        // The rule was for the name before.
        ServiceFrom::Rule => {
            let launched = Launched::of_line(&info.command_line, |_| None);
            Some(of(info, Sources::of_launched(launched.as_ref(), &info.command_line), rules))
        }
        ServiceFrom::OpenTelemetry
        | ServiceFrom::Label
        | ServiceFrom::Unit
        | ServiceFrom::Image
        | ServiceFrom::Jar
        | ServiceFrom::MainClass => Some(known),
    }
}

/// The service of a process when other rules hold. `None`: a rule named it before, so only its files and settings say.
pub fn ruled(info: &ProcessInfo, rules: &Rules) -> Option<Service> {
    let known = info.service.clone().filter(|known| known.from != ServiceFrom::Rule)?;
    Some(match rules.first_match(info) {
        Some(rule) => {
            let version = rule.version.clone().or(known.version);
            Service { name: rule.name.clone(), version, from: ServiceFrom::Rule }
        }
        None => known,
    })
}

/// The service of a process of which it is known only now what it runs. Its files are not read again.
pub fn launched(info: &ProcessInfo, launched: &Launched, rules: &Rules) -> Option<Service> {
    let known = info.service.clone()?;
    match known.from {
        ServiceFrom::Jar | ServiceFrom::MainClass | ServiceFrom::Comm => {
            Some(of(info, Sources::of_launched(Some(launched), &info.command_line), rules))
        }
        _ => Some(known),
    }
}

/// The service of a process of whose pod more is known now. Its files are not read again.
pub fn placed(info: &ProcessInfo, rules: &Rules) -> Service {
    let known = info.service.clone().unwrap_or_default();
    let name = |from| (known.from == from).then(|| known.name.clone());
    let (declared, is_declared) = (name(ServiceFrom::OpenTelemetry), known.from == ServiceFrom::OpenTelemetry);
    let declared = Declared { name: declared, version: known.version.clone().filter(|_| is_declared) };
    // Unless a rule or a label says another one, the version is the jar's, which may be the one that is known.
    let jar = Some(JarIdentity { name: name(ServiceFrom::Jar), version: known.version.clone() });
    of(info, Sources { jar, declared }, rules)
}

/// Longest text that names a service or a version.
const MAX_BYTES: usize = 256;
pub static NAMES: Bound = Bound::new(
    "service_name_too_long",
    MAX_BYTES as u64,
    "bytes of a text that names a service or a version",
    "what comes next names it ([identity.md](identity.md))",
);

/// A text that may name something: neither empty nor longer than people read.
fn usable(text: &str) -> Option<TargetText> {
    let text = text.trim();
    NAMES.cut(u64::from(text.len() > MAX_BYTES));
    (!text.is_empty() && text.len() <= MAX_BYTES).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::{
        rules::{Condition, Rule},
        *,
    };
    use crate::procs::selection::NamePattern;

    fn process(comm: &str, unit: Option<&str>, main_class: Option<&str>) -> ProcessInfo {
        let runtime = match Runtime::UNKNOWN_JVM {
            Runtime::Jvm { version, collector, debug_non_safepoints, unwinding, .. } => Runtime::Jvm {
                version,
                main_class: main_class.map(Into::into),
                collector,
                debug_non_safepoints,
                unwinding,
            },
            Runtime::Native => Runtime::Native,
        };
        ProcessInfo { comm: comm.into(), unit: unit.map(Into::into), runtime, ..ProcessInfo::default() }
    }

    fn jar(name: Option<&str>, version: Option<&str>) -> Sources {
        let jar = Some(JarIdentity { name: name.map(Into::into), version: version.map(Into::into) });
        Sources { jar, ..Sources::default() }
    }

    fn nothing() -> Sources {
        Sources::default()
    }

    fn rules(comm: &str, name: &str, version: Option<&str>) -> Rules {
        let condition = Condition::Comm(NamePattern::of_comm(comm).unwrap());
        Rules::new(vec![Rule { name: name.into(), version: version.map(Into::into), conditions: vec![condition] }])
    }

    fn in_pod(labels: &[&str], image: &str, info: ProcessInfo) -> ProcessInfo {
        let labels = labels.iter().map(|&label| label.into()).collect();
        let workload = Workload { labels, image: Some(image.into()), ..Workload::default() };
        ProcessInfo { workload: Some(Box::new(workload)), ..info }
    }

    #[test]
    fn a_pods_labels_go_before_units_and_its_image_goes_before_jars() {
        let name = "app.kubernetes.io/name=checkout";
        let shop = rules("shop*", "ruled", None);
        for (info, expected) in [
            (in_pod(&[name], "i:1", process("shop", None, None)), ("ruled", ServiceFrom::Rule)),
            (in_pod(&[name], "i:1", process("java", Some("a.service"), None)), ("checkout", ServiceFrom::Label)),
            (in_pod(&["app=x"], "i:1", process("java", Some("a.service"), None)), ("a", ServiceFrom::Unit)),
            (
                in_pod(&["app.kubernetes.io/name="], "r:5000/i:1", process("java", None, None)),
                ("i", ServiceFrom::Image),
            ),
            (in_pod(&[], "sha256:77", process("java", None, None)), ("x", ServiceFrom::Jar)),
        ] {
            let service = of(&info, jar(Some("x"), None), &shop);
            assert_eq!((service.name.raw(), service.from), expected);
        }
    }

    #[test]
    fn the_version_of_a_label_goes_before_the_jars_and_that_before_the_images_tag() {
        let version = "app.kubernetes.io/version=1.4.2";
        for (labels, of_jar, expected) in
            [(&[version][..], Some("3"), "1.4.2"), (&[], Some("3"), "3"), (&[], None, "9")]
        {
            let info = in_pod(labels, "shop/checkout:9", process("java", None, None));
            assert_eq!(of(&info, jar(Some("x"), of_jar), &Rules::default()).version, Some(expected.into()));
        }
    }

    #[test]
    fn a_pod_that_is_known_later_names_the_service_as_if_it_had_been_known_before() {
        let jar = || jar(Some("x"), Some("3"));
        let rules = rules("shop", "ruled", Some("8"));
        for comm in ["java", "shop"] {
            for unit in [None, Some("a.service")] {
                for labels in [&[][..], &["app.kubernetes.io/name=n"], &["app.kubernetes.io/version=2"]] {
                    for image in ["shop/checkout:9", "sha256:77"] {
                        let before = process(comm, unit, Some("x.jar"));
                        let service = Some(of(&before, jar(), &rules));
                        let now = in_pod(labels, image, ProcessInfo { service, ..before });
                        assert_eq!(placed(&now, &rules), of(&now, jar(), &rules), "{now:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_that_says_something_names_the_service() {
        let shop = rules("shop*", "checkout", None);
        for (info, jar, rules, expected) in [
            (process("shop-7", Some("a.service"), None), nothing(), &shop, ("checkout", ServiceFrom::Rule)),
            (process("java", Some("a.service"), Some("x.Main")), nothing(), &shop, ("a", ServiceFrom::Unit)),
            (process("java", None, Some("x.jar")), jar(Some("x"), None), &shop, ("x", ServiceFrom::Jar)),
            (process("java", None, Some("x.Main")), nothing(), &shop, ("x.Main", ServiceFrom::MainClass)),
            (process("java", None, None), nothing(), &shop, ("java", ServiceFrom::Comm)),
            (process("shop", None, None), nothing(), &Rules::default(), ("shop", ServiceFrom::Comm)),
        ] {
            let service = of(&info, jar, rules);
            assert_eq!((service.name.raw(), service.from), expected);
        }
    }

    #[test]
    fn the_version_is_the_rules_and_else_the_jars_whatever_told_the_name() {
        let of_jar = || jar(Some("x"), Some("3.2.0"));
        for (info, rules, expected) in [
            (process("shop", None, Some("x.jar")), rules("shop", "s", Some("9")), "9"),
            (process("shop", None, Some("x.jar")), rules("shop", "s", None), "3.2.0"),
            (process("java", Some("a.service"), Some("x.jar")), Rules::default(), "3.2.0"),
        ] {
            assert_eq!(of(&info, of_jar(), &rules).version, Some(expected.into()));
        }
    }

    #[test]
    fn a_new_name_counts_where_the_name_was_what_is_known() {
        let rules = rules("shop", "checkout", None);
        let rename = |before: &str, unit: Option<&str>, after: &str| {
            let info = process(before, unit, None);
            let service = Some(of(&info, nothing(), &rules));
            let service = renamed(&ProcessInfo { comm: after.into(), service, ..info }, &rules).unwrap();
            (service.name.raw().to_owned(), service.from)
        };
        assert_eq!(rename("java", None, "orders"), ("orders".to_owned(), ServiceFrom::Comm));
        assert_eq!(rename("java", None, "shop"), ("checkout".to_owned(), ServiceFrom::Rule));
        assert_eq!(rename("shop", None, "orders"), ("orders".to_owned(), ServiceFrom::Comm));
        assert_eq!(rename("java", Some("a.service"), "orders"), ("a".to_owned(), ServiceFrom::Unit));
    }

    #[test]
    fn the_settings_of_opentelemetry_go_before_all_but_a_rule() {
        let declared = Declared { name: Some("checkout".into()), version: Some("7".into()) };
        let sources = || Sources { declared: declared.clone(), ..jar(Some("x"), Some("3")) };
        let in_pod =
            in_pod(&["app.kubernetes.io/name=n", "app.kubernetes.io/version=2"], "i:1", process("java", None, None));
        let service = of(&in_pod, sources(), &Rules::default());
        assert_eq!((service.name.raw(), service.from), ("checkout", ServiceFrom::OpenTelemetry));
        assert_eq!(service.version, Some("7".into()));
        assert_eq!(of(&in_pod, sources(), &rules("java", "ruled", None)).from, ServiceFrom::Rule);
        let info = ProcessInfo { service: Some(service), ..in_pod };
        assert_eq!(placed(&info, &Rules::default()).from, ServiceFrom::OpenTelemetry, "when its pod is known better");
    }

    #[test]
    fn what_a_jvm_runs_names_its_service_if_nothing_better_does() {
        let before = process("server", None, None);
        let learned = |service| {
            let info = ProcessInfo { service: Some(service), ..process("server", None, Some("com.acme.Main")) };
            launched(&info, &Launched::Named("com.acme.Main".into()), &Rules::default()).unwrap()
        };
        let of_comm = of(&before, nothing(), &Rules::default());
        assert_eq!(of_comm.from, ServiceFrom::Comm);
        assert_eq!(
            (learned(of_comm).name.raw(), learned(of(&before, nothing(), &Rules::default())).from),
            ("com.acme.Main", ServiceFrom::MainClass)
        );
        let of_unit = of(&process("server", Some("a.service"), None), nothing(), &Rules::default());
        assert_eq!(learned(of_unit).name, "a");
    }
}
