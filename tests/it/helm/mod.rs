//! Tests the Helm chart with real Helm, 3 and 4: what it makes of values, what it refuses, and that the manifests in
//! packaging/kubernetes are made of it.

mod kustomize;
mod objects;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use joular_tests::{helm, notes, paths, process::Running, python};
use serde_json::{Value, json};

use crate::{LIMIT, joular_bpf, packaging::printed};

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const ROLE: &str = "arn:aws:iam::111122223333:role/energy";

/// All that is off by default and that Kubernetes itself knows.
const EVERYTHING: &str = "
image: {digest: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}
imagePullSecrets: [{name: registry}]
config: {metrics: '[::]:9900', metrics-cert: /tls/tls.crt, metrics-key: /tls/tls.key}
metricsToken: {existingSecret: token, key: token}
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::111122223333:role/energy'}}
podAnnotations: {a: b}
podLabels: {c: d}
affinity: {nodeAffinity: {}}
seccompProfile: {type: Localhost, localhostProfile: joular-bpf.json}
appArmorProfile: {type: RuntimeDefault}
seLinuxOptions: {type: spc_t}
extraCapabilities: [SYS_ADMIN]
extraEnv: [{name: AWS_REGION, value: eu-central-1}]
extraVolumes: [{name: tls, secret: {secretName: tls}}]
extraVolumeMounts: [{name: tls, mountPath: /tls, readOnly: true}]
networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}
";

fn chart() -> PathBuf {
    paths::root().join("packaging/helm/joular-bpf")
}

/// Notes what is missing to test with, if something is.
fn is_skipped() -> bool {
    if !helm::is_installed() {
        notes::skipped("there is no Helm (`cargo xtask setup` unpacks it)");
    } else if !python::ENGINES.is_ready() {
        notes::skipped("a reader of YAML is missing (`cargo xtask setup` installs it)");
    }
    !helm::is_installed() || !python::ENGINES.is_ready()
}

/// Renders the chart with these values.
fn render(program: &Path, values: &str, options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    fs::write(&file, values).unwrap();
    let mut command = Command::new(program);
    command.args(["template", "joular-bpf", "--namespace", "joular-bpf"]).arg(chart()).arg("--values").arg(&file);
    command.args(options).env("KUBECONFIG", "/dev/null").output().unwrap()
}

/// The text that it renders to.
fn rendered(program: &Path, values: &str, options: &[&str]) -> String {
    let output = render(program, values, options);
    assert!(output.status.success(), "{values}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a script says of the file that the newest Helm renders.
fn said_of_rendered(values: &str, script: &str, arguments: &[&str]) -> String {
    let [.., newest] = helm::programs();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rendered.yaml");
    fs::write(&file, rendered(&newest, values, &[])).unwrap();
    printed(python::ENGINES.script(script).unwrap().args(arguments).arg(&file))
}

/// The object of a kind; null if there is none.
fn object(values: &str, kind: &str) -> Value {
    let objects: Vec<Value> = serde_json::from_str(&said_of_rendered(values, "objects.py", &[])).unwrap();
    objects.into_iter().find(|object| object["kind"] == kind).unwrap_or(Value::Null)
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let text = fs::read_to_string(chart().join("Chart.yaml")).unwrap();
    for key in ["version", "appVersion"] {
        let line = format!("{key}: {}", env!("CARGO_PKG_VERSION"));
        assert!(text.lines().any(|one| one == line), "Chart.yaml has no line '{line}'");
    }
}

#[test]
fn helm_finds_no_mistake() {
    if is_skipped() {
        return;
    }
    for program in helm::programs() {
        printed(Command::new(program).args(["lint", "--strict"]).arg(chart()));
    }
}

#[test]
fn kubernetes_takes_what_the_chart_makes() {
    if is_skipped() {
        return;
    }
    let always = ["ServiceAccount", "ConfigMap", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "DaemonSet"];
    for (values, further) in [("", "Secret"), (EVERYTHING, "NetworkPolicy")] {
        for release in ["1.31", "1.37"] {
            let said = said_of_rendered(values, "manifests.py", &[release]);
            let mut kinds: Vec<&str> = said.lines().filter_map(|line| line.strip_suffix(" joular-bpf")).collect();
            let mut expected = [&always[..], &[further]].concat();
            kinds.sort_unstable();
            expected.sort_unstable();
            assert_eq!(kinds, expected, "{said}");
        }
    }
}

#[test]
fn the_agent_takes_the_configuration_of_the_chart() {
    if is_skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    for (config, line) in [
        ("{}", "metrics-methods = 0"),
        ("{jvms: null, pid: [1234567]}", "pid = [1234567]"),
        ("{idle-watts: 12.5}", "idle-watts = 12.5"),
        ("{jvms: null, all: true}", "all = true"),
        (r#"{jvms: null, comm: [java, 'a "b" \c <&>']}"#, r#"comm = ["java", "a \"b\" \\c <&>"]"#),
        ("{ship: 's3://fleet/energy', ship-at-end: 59999ms}", r#"ship-at-end = "59999ms""#),
        (
            r"{redact: [{pattern: 'A[0-9]{16}\s'}, {name: p}]}",
            r#"redact = [{ pattern = "A[0-9]{16}\\s" }, { name = "p" }]"#,
        ),
        ("{service-rule: [{name: shop, cgroup: /shop}]}", r#"service-rule = [{ cgroup = "/shop", name = "shop" }]"#),
    ] {
        let values = format!("config: {config}");
        for program in helm::programs() {
            let text = rendered(&program, &values, &["--show-only", "templates/config-map.yaml"]);
            assert!(text.lines().any(|one| one.trim_start() == line), "{values}: {text}");
        }
        let map = object(&values, "ConfigMap");
        fs::write(&file, map["data"]["agent.toml"].as_str().unwrap()).unwrap();
        let checked = joular_bpf(&["agent", "--check", "--config", file.to_str().unwrap()]);
        assert_eq!(checked.code(), Some(0), "{config}: {checked:?}");
    }
}

#[test]
fn jobs_for_the_bucket_run_without_any_privilege() {
    if is_skipped() {
        return;
    }
    assert_eq!(object("config: {ship: 's3://fleet/energy'}", "CronJob"), Value::Null, "they are off by default");
    for (name, options) in [("compact", ["--hours", "3"]), ("expire", ["--keep-days", "30"])] {
        let values = format!("config: {{ship: 's3://fleet/energy'}}\nfleet: {{{name}: {{enabled: true}}}}");
        let job = object(&values, "CronJob");
        let spec = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        let container = &spec["containers"][0];
        assert_eq!(container["args"], json!([name, "s3://fleet/energy", options[0], options[1]]));
        assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(spec["securityContext"]["runAsNonRoot"], json!(true));
        assert_eq!(spec["hostPID"], Value::Null);
        for release in ["1.31", "1.37"] {
            let said = said_of_rendered(&values, "manifests.py", &[release]);
            assert!(said.contains(&format!("CronJob joular-bpf-{name}")), "{said}");
        }
    }
}

#[test]
fn wrong_values_are_refused_with_what_is_wrong() {
    if is_skipped() {
        return;
    }
    for (values, words) in [
        ("confg: {}", &["confg"][..]),
        ("config: {shipAtEnd: 5s}", &["shipAtEnd"]),
        ("config: {ship-at-end: soon}", &["ship-at-end"]),
        ("config: {ship-at-end: 1m}", &["config.ship-at-end: 1m", "terminationGracePeriodSeconds, 60"]),
        ("terminationGracePeriodSeconds: 30\nconfig: {ship-at-end: 30s}", &["config.ship-at-end: 30s"]),
        ("config: {metrics: '0.0.0.0:65536'}", &["config.metrics", "a port from 1 to 65535"]),
        ("config: {metrics: '0.0.0.0'}", &["config.metrics", "a port from 1 to 65535"]),
        ("config: {metrics: '127.0.0.1:9897'}", &["config.metrics", "0.0.0.0:9897"]),
        ("config: {metrics: null}\npodMonitor: {enabled: true}", &["podMonitor.enabled", "config.metrics"]),
        ("seccompProfile: {type: Localhost}", &["localhostProfile"]),
        ("image: {digest: '0.1.0'}", &["digest"]),
        ("networkPolicy: {from: everyone}", &["from"]),
        ("fleet: {compact: {enabled: true}}", &["fleet.compact.enabled", "config.ship is not a bucket"]),
        ("config: {ship: 's3://f'}\nfleet: {expire: {enabled: true, keepDays: 0}}", &["keepDays"]),
    ] {
        for program in helm::programs() {
            let output = render(&program, values, &[]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{values}");
            assert!(words.iter().all(|word| said.contains(word)), "{values}: {said}");
        }
    }
}

#[test]
fn an_upgrade_keeps_the_token_that_the_chart_has_made() {
    if is_skipped() {
        return;
    }
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "data": {"metrics-token": "a2VwdA=="},
        "metadata": {
            "name": "joular-bpf", "namespace": "joular-bpf", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "joular-bpf", "meta.helm.sh/release-namespace": "joular-bpf"},
        },
    });
    let mut api = python::COMMON.script("kubernetes_api.py").unwrap();
    let mut api = Running::spawn("kubernetes_api.py", api.arg(secret.to_string())).unwrap();
    let ready = api.wait_stdout("ready ", LIMIT).unwrap();
    let address = format!("http://127.0.0.1:{}", ready.trim_start_matches("ready ").trim());
    let alone = ["--show-only", "templates/secret.yaml"];
    let in_cluster = ["--dry-run=server", "--disable-openapi-validation", "--kube-apiserver", &address];
    for program in helm::programs() {
        assert!(rendered(&program, "", &[&alone[..], &in_cluster].concat()).contains("metrics-token: a2VwdA=="));
        assert_ne!(rendered(&program, "", &alone), rendered(&program, "", &alone), "the token is not random");
    }
}
