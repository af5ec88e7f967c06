//! Tests what the chart makes of values.

use serde_json::{Value, json};

use super::{DIGEST, EVERYTHING, ROLE, is_skipped, object};

fn expect_parts(object: &Value, values: &str, parts: &[(&str, Value)]) {
    for (part, expected) in parts {
        assert_eq!(object.pointer(part).unwrap_or(&Value::Null), expected, "{values}: {part}");
    }
}

/// Compares parts of an object of this kind, which is the only one; null is what is not there.
fn expect(values: &str, kind: &str, parts: &[(&str, Value)]) {
    expect_parts(&object(values, kind), values, parts);
}

/// The same for the pods of the DaemonSet.
fn expect_pods(values: &str, parts: &[(&str, Value)]) {
    let pod = object(values, "DaemonSet")["spec"]["template"]["spec"].take();
    expect_parts(&pod, values, parts);
}

#[test]
fn pods_are_scheduled_as_values_say() {
    if is_skipped() {
        return;
    }
    for (values, part, expected) in [
        ("tolerations: []", "/tolerations", Value::Null),
        ("priorityClass: {create: false}", "/priorityClassName", Value::Null),
        ("priorityClass: {create: false, name: high}", "/priorityClassName", json!("high")),
        ("serviceAccount: {create: false}", "/serviceAccountName", json!("default")),
        ("terminationGracePeriodSeconds: 90", "/terminationGracePeriodSeconds", json!(90)),
        ("dataPath: /srv/energy", "/volumes/1/hostPath/path", json!("/srv/energy")),
        ("environmentSecret: ''", "/containers/0/envFrom", Value::Null),
    ] {
        expect_pods(values, &[(part, expected)]);
    }
}

#[test]
fn pods_have_the_image_the_capabilities_and_the_profiles_that_values_say() {
    if is_skipped() {
        return;
    }
    let image = format!("registry.example.com/joular-bpf:{}", env!("CARGO_PKG_VERSION"));
    expect_pods("", &[("/containers/0/image", json!(image))]);
    let by_digest = json!(format!("registry.example.com/joular-bpf@{DIGEST}"));
    let seccomp = json!({"type": "Localhost", "localhostProfile": "joular-bpf.json"});
    expect_pods(
        EVERYTHING,
        &[
            ("/containers/0/image", by_digest),
            ("/containers/0/securityContext/capabilities/add/6", json!("SYS_ADMIN")),
            ("/securityContext/seccompProfile", seccomp),
            ("/securityContext/seLinuxOptions/type", json!("spc_t")),
        ],
    );
}

#[test]
fn the_secret_of_the_token_is_readable_by_its_owner_alone() {
    if is_skipped() {
        return;
    }
    let items = json!([{"key": "token", "path": "metrics-token"}]);
    for (values, secret) in [
        ("", json!({"secretName": "joular-bpf", "defaultMode": 0o400})),
        (EVERYTHING, json!({"secretName": "token", "defaultMode": 0o400, "items": items})),
        ("config: {metrics: null, metrics-token: null}", Value::Null),
        ("config: {metrics-token: /vault/token}", Value::Null),
    ] {
        expect_pods(values, &[("/volumes/2/secret", secret)]);
    }
}

#[test]
fn probes_and_the_port_follow_the_configuration() {
    if is_skipped() {
        return;
    }
    for (values, port, is_probed, scheme) in [
        ("", json!(9897), true, Value::Null),
        (EVERYTHING, json!(9900), true, json!("HTTPS")),
        ("config: {metrics: null, metrics-token: null}", Value::Null, false, Value::Null),
    ] {
        let container = object(values, "DaemonSet")["spec"]["template"]["spec"]["containers"][0].take();
        assert_eq!(container.pointer("/ports/0/containerPort").unwrap_or(&Value::Null), &port, "{values}");
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            assert_eq!(container[probe].is_object(), is_probed, "{values}: {probe}");
            assert_eq!(container[probe]["httpGet"]["scheme"], scheme, "{values}: {probe}");
        }
    }
}

#[test]
fn pods_restart_when_the_configuration_changes() {
    if is_skipped() {
        return;
    }
    let sum = |values: &str| {
        object(values, "DaemonSet")["spec"]["template"]["metadata"]["annotations"]["checksum/config"].take()
    };
    let unchanged = sum("");
    assert!(unchanged.is_string(), "{unchanged}");
    assert_eq!(unchanged, sum("podLabels: {a: b}"));
    assert_ne!(unchanged, sum("config: {keep: 24h}"));
}

#[test]
fn other_objects_are_there_when_asked_for() {
    if is_skipped() {
        return;
    }
    for (values, kind, is_there) in [
        ("serviceAccount: {create: false}", "ServiceAccount", false),
        ("rbac: {create: false}", "ClusterRoleBinding", false),
        ("priorityClass: {create: false}", "PriorityClass", false),
        ("metricsToken: {existingSecret: token}", "Secret", false),
        ("", "PodMonitor", false),
        ("podMonitor: {enabled: true}", "PodMonitor", true),
        ("", "NetworkPolicy", false),
        ("networkPolicy: {enabled: true}", "NetworkPolicy", true),
        ("", "SecurityContextConstraints", false),
        ("openshift: {scc: {create: true}}", "SecurityContextConstraints", true),
    ] {
        assert_eq!(object(values, kind).is_object(), is_there, "{values}: {kind}");
    }
}

#[test]
fn clouds_and_prometheus_get_what_they_need() {
    if is_skipped() {
        return;
    }
    let role = json!({"eks.amazonaws.com/role-arn": ROLE});
    expect(EVERYTHING, "ServiceAccount", &[("/metadata/annotations", role)]);
    expect(EVERYTHING, "NetworkPolicy", &[("/spec/ingress/0/ports", json!([{"port": "metrics"}]))]);
    expect("networkPolicy: {enabled: true}", "NetworkPolicy", &[("/spec/ingress", Value::Null)]);
    let monitor = "podMonitor: {enabled: true, interval: 15s, labels: {release: prometheus}}";
    let credentials = json!({"name": "joular-bpf", "key": "metrics-token"});
    let endpoint = json!({"port": "metrics", "interval": "15s", "authorization": {"credentials": credentials}});
    let selector = json!({"app.kubernetes.io/name": "joular-bpf", "app.kubernetes.io/instance": "joular-bpf"});
    expect(
        monitor,
        "PodMonitor",
        &[
            ("/metadata/labels/release", json!("prometheus")),
            ("/spec/selector/matchLabels", selector),
            ("/spec/podMetricsEndpoints/0", endpoint),
        ],
    );
    let tls = "podMonitor: {enabled: true, tlsConfig: {serverName: a}}\nconfig: {metrics-cert: /c, metrics-key: /k}";
    expect(
        tls,
        "PodMonitor",
        &[
            ("/spec/podMetricsEndpoints/0/scheme", json!("https")),
            ("/spec/podMetricsEndpoints/0/tlsConfig", json!({"serverName": "a"})),
        ],
    );
}

#[test]
fn openshift_allows_what_pods_need_and_no_more() {
    if is_skipped() {
        return;
    }
    let values = "openshift: {scc: {create: true}}\nextraCapabilities: [SYS_ADMIN]";
    let added = object(values, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]["securityContext"]
        ["capabilities"]["add"]
        .take();
    expect(
        values,
        "SecurityContextConstraints",
        &[
            ("/users", json!(["system:serviceaccount:joular-bpf:joular-bpf"])),
            ("/allowHostPID", json!(true)),
            ("/allowHostDirVolumePlugin", json!(true)),
            ("/allowHostNetwork", json!(false)),
            ("/allowPrivilegedContainer", json!(false)),
            ("/allowPrivilegeEscalation", json!(false)),
            ("/allowedCapabilities", added),
            ("/seccompProfiles", json!(["runtime/default"])),
        ],
    );
    let localhost = json!(["localhost/joular-bpf.json"]);
    let values = format!("{EVERYTHING}openshift: {{scc: {{create: true}}}}\n");
    expect(&values, "SecurityContextConstraints", &[("/seccompProfiles", localhost)]);
}
