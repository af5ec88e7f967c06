//! Tests of `--json`.

use joular_data::{
    attribution::allocated::AllocationRow,
    fixture::{self, BUSY, Load, SMALL},
};
use serde_json::Value;

use super::*;

fn messages(load: Load, windows: u64) -> Vec<Value> {
    let mut output = JsonOutput::new(Vec::new());
    fixture::play(&mut output, load, windows).unwrap();
    let text = String::from_utf8(output.out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_is_its_start_its_windows_and_its_summary() {
    let messages = messages(SMALL, 2);
    let types: Vec<_> = messages.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["run", "window", "window", "summary"]);
    assert_eq!(messages[1]["domains"][0]["label"], "modelled");
    assert_eq!(messages[3]["audit"]["energy_label"], "modelled");
}

#[test]
fn windows_sum_to_the_summary() {
    let messages = messages(SMALL, 3);
    let figure = |message: &Value| message["audit"]["measured_uj"].as_u64().unwrap();
    assert_eq!(messages[1..4].iter().map(figure).sum::<u64>(), figure(&messages[4]));
}

#[test]
fn bytes_of_windows_and_their_processes_sum_to_the_summary() {
    let mut output = JsonOutput::new(Vec::new());
    let mut stacks = StackTable::default();
    for index in 0..3 {
        let mut report = fixture::window(SMALL, &mut stacks, index);
        let (branch, bytes) = (report.branches[0].branch, 1000 + index);
        let allocated = |thread| AllocationRow::new(thread, branch, bytes, 1);
        report.allocations = (0..report.threads.len()).map(allocated).collect();
        output.window(&report, &stacks).unwrap();
    }
    output.run_ended(&fixture::end()).unwrap();
    let text = String::from_utf8(output.out).unwrap();
    let messages: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let processes = |message: &Value| message["processes"].as_array().unwrap().clone();
    let of_process = |process: &Value| process["measured"]["allocated"].as_u64().unwrap();
    let of_windows: u64 = messages[..3].iter().flat_map(processes).map(|process| of_process(&process)).sum();
    assert_eq!(messages[3]["measured"]["allocated"].as_u64().unwrap(), of_windows);
    assert!(of_windows > 0);
}

#[test]
fn parts_of_jvms_sum_to_the_whole_in_windows_and_over_the_run() {
    let messages = messages(SMALL, 3);
    let jvms = |message: &Value| message["jvms"].as_array().unwrap().clone();
    let energy = |jvm: &Value| jvm["energy_uj"].as_u64().unwrap();
    for jvm in messages[1..].iter().flat_map(jvms) {
        let parts = jvm["parts_uj"].as_object().unwrap();
        assert_eq!(parts.values().filter_map(Value::as_u64).sum::<u64>(), energy(&jvm), "{jvm}");
        assert!(jvm["vm_tax_uj"].as_u64().unwrap() >= parts["gc"].as_u64().unwrap(), "{jvm}");
    }
    let sum = |message: &Value| jvms(message).iter().map(energy).sum::<u64>();
    assert!(sum(&messages[4]) > 0);
    assert_eq!(messages[1..4].iter().map(sum).sum::<u64>(), sum(&messages[4]));
}

#[test]
fn every_sample_of_a_jvm_has_a_cause() {
    let messages = messages(BUSY, 2);
    let summary = &messages[3];
    let causes = summary["jvm_samples_by_cause"].as_object().unwrap();
    let sum: u64 = causes.values().filter_map(Value::as_u64).sum();
    assert_eq!(summary["jvm_samples"], sum);
    assert!(causes.contains_key("complete") && causes.contains_key("depth"), "{causes:?}");
    let rows = messages[1..3].iter().flat_map(|message| message["quality"].as_array().unwrap());
    assert_eq!(rows.map(|row| row["samples"].as_u64().unwrap()).sum::<u64>(), sum, "all processes are JVMs");
}

/// A window is worth little, a run more: what reports say of the same samples.
#[test]
fn every_method_has_the_interval_that_its_samples_leave() {
    let messages = messages(SMALL, 40);
    let length = |method: &Value| {
        let [own, low, high] = ["self_uj", "self_low_uj", "self_high_uj"].map(|key| method[key].as_u64().unwrap());
        assert!(low <= own && own <= high, "{method}");
        (high - low) as f64 / own.max(1) as f64
    };
    let methods = |message: &Value| message["methods"].as_array().unwrap().clone();
    let sampled = |method: &Value| method["self_samples"].as_u64().unwrap() > 0;
    let (windows, summary) = (&messages[1..41], &messages[41]);
    let of_windows: Vec<f64> = windows.iter().flat_map(methods).filter(sampled).map(|method| length(&method)).collect();
    let of_run: Vec<f64> = methods(summary).iter().map(length).collect();
    assert!(of_windows.iter().all(|length| *length > 0.0), "a window with a sample or two is not exact");
    let mean = |lengths: &[f64]| lengths.iter().sum::<f64>() / lengths.len() as f64;
    assert!(mean(&of_run) < mean(&of_windows) / 2.0, "{of_run:?}");
    assert!(summary["interval_note"].as_str().unwrap().contains("modelled"), "{summary}");
}

#[test]
fn what_is_left_out_is_counted() {
    let messages = messages(BUSY, 1);
    assert_eq!(messages[1]["methods"].as_array().unwrap().len(), MAX_METHODS);
    let all = fixture::window(BUSY, &mut StackTable::default(), 0).methods.len();
    assert_eq!(messages[1]["methods_omitted"], all - MAX_METHODS);
}
