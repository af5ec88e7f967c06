//! Merges flags of the command line with those of the configuration file.

use super::flags::Flags;

impl Flags {
    /// These flags, completed from `file`. Flags that exclude each other are a
    /// group: `--pid 1` replaces the `comm` of the file.
    pub fn or_else_from(self, file: Self) -> Self {
        let target = if self.has_target() { &self } else { &file };
        let (comm, pid, all, replay) = (target.comm.clone(), target.pid.clone(), target.all, target.replay.clone());
        let (container, pod) = (target.container.clone(), target.pod.clone());
        let (namespace, label) = (target.namespace.clone(), target.label.clone());
        let (cgroup, service) = (target.cgroup.clone(), target.service.clone());
        let place = if self.output.is_some() || self.no_output { &self } else { &file };
        let (output, no_output) = (place.output.clone(), place.no_output);
        let screen = if self.json || self.quiet { &self } else { &file };
        let (json, quiet) = (screen.json, screen.quiet);
        Self {
            comm,
            pid,
            container,
            pod,
            namespace,
            label,
            cgroup,
            service,
            all,
            replay,
            duration: self.duration.or(file.duration),
            interval: self.interval.or(file.interval),
            frequency: self.frequency.or(file.frequency),
            kubernetes: self.kubernetes.or(file.kubernetes),
            kubernetes_token: self.kubernetes_token.or(file.kubernetes_token),
            kubernetes_ca: self.kubernetes_ca.or(file.kubernetes_ca),
            counters: if self.counters.is_empty() { file.counters } else { self.counters },
            alloc: self.alloc || file.alloc,
            io: self.io || file.io,
            record: self.record.or(file.record),
            config: self.config,
            energy: if self.energy.is_empty() { file.energy } else { self.energy },
            energy_file: self.energy_file.or(file.energy_file),
            model_watts: self.model_watts.or(file.model_watts),
            tdp: self.tdp.or(file.tdp),
            tdp_states: self.tdp_states.or(file.tdp_states),
            nic: self.nic.or(file.nic),
            disk: self.disk.or(file.disk),
            powercap_root: self.powercap_root.or(file.powercap_root),
            dram_by: self.dram_by.or(file.dram_by),
            idle: self.idle.or(file.idle),
            idle_watts: self.idle_watts.or(file.idle_watts),
            smt_ratio: self.smt_ratio.or(file.smt_ratio),
            calibration: self.calibration.or(file.calibration),
            weights: self.weights.or(file.weights),
            sampler: self.sampler.or(file.sampler),
            output,
            no_output,
            flush: self.flush.or(file.flush),
            rotate: self.rotate.or(file.rotate),
            keep: self.keep.or(file.keep),
            keep_size: self.keep_size.or(file.keep_size),
            ship: self.ship.or(file.ship),
            ship_window: self.ship_window.or(file.ship_window),
            ship_rate: self.ship_rate.or(file.ship_rate),
            command_line: self.command_line.or(file.command_line),
            top: self.top.or(file.top),
            no_infer: self.no_infer || file.no_infer,
            json,
            quiet,
            metrics: self.metrics.or(file.metrics),
            metrics_token: self.metrics_token.or(file.metrics_token),
            metrics_cert: self.metrics_cert.or(file.metrics_cert),
            metrics_key: self.metrics_key.or(file.metrics_key),
            metrics_methods: self.metrics_methods.or(file.metrics_methods),
            otlp: self.otlp.or(file.otlp),
            otlp_interval: self.otlp_interval.or(file.otlp_interval),
            otlp_profiles: self.otlp_profiles || file.otlp_profiles,
            otlp_headers: self.otlp_headers.or(file.otlp_headers),
            otlp_ca: self.otlp_ca.or(file.otlp_ca),
            guest_power: self.guest_power.or(file.guest_power),
            service_rule: file.service_rule,
            redact: file.redact,
            kernel_log: self.kernel_log || file.kernel_log,
            proc_root: self.proc_root.or(file.proc_root),
            cpu_root: self.cpu_root.or(file.cpu_root),
            sys_root: self.sys_root.or(file.sys_root),
        }
    }

    fn has_target(&self) -> bool {
        let has_condition = self.conditions().iter().any(|(_, texts)| !texts.is_empty());
        has_condition || !self.pid.is_empty() || self.all || self.replay.is_some()
    }

    /// Conditions on targets that may be given together, by the names of their flags.
    pub fn conditions(&self) -> [(&'static str, &[String]); 7] {
        [
            ("comm", &self.comm),
            ("container", &self.container),
            ("pod", &self.pod),
            ("namespace", &self.namespace),
            ("label", &self.label),
            ("cgroup", &self.cgroup),
            ("service", &self.service),
        ]
    }

    /// Names of the given flags that apply to a measurement only.
    pub fn live_only(&self) -> impl Iterator<Item = &'static str> {
        [
            ("duration", self.duration.is_some()),
            ("interval", self.interval.is_some()),
            ("frequency", self.frequency.is_some()),
            ("kubernetes", self.kubernetes.is_some()),
            ("kubernetes-token", self.kubernetes_token.is_some()),
            ("kubernetes-ca", self.kubernetes_ca.is_some()),
            ("counters", !self.counters.is_empty()),
            ("alloc", self.alloc),
            ("io", self.io),
            ("record", self.record.is_some()),
            ("energy", !self.energy.is_empty()),
            ("energy-file", self.energy_file.is_some()),
            ("model-watts", self.model_watts.is_some()),
            ("tdp", self.tdp.is_some()),
            ("tdp-states", self.tdp_states.is_some()),
            ("nic", self.nic.is_some()),
            ("disk", self.disk.is_some()),
            ("powercap-root", self.powercap_root.is_some()),
            ("dram-by", self.dram_by.is_some()),
            ("weights", self.weights.is_some()),
            ("sampler", self.sampler.is_some()),
            ("metrics", self.metrics.is_some()),
            ("metrics-token", self.metrics_token.is_some()),
            ("metrics-cert", self.metrics_cert.is_some()),
            ("metrics-key", self.metrics_key.is_some()),
            ("metrics-methods", self.metrics_methods.is_some()),
            ("otlp", self.otlp.is_some()),
            ("otlp-interval", self.otlp_interval.is_some()),
            ("otlp-profiles", self.otlp_profiles),
            ("otlp-headers", self.otlp_headers.is_some()),
            ("otlp-ca", self.otlp_ca.is_some()),
            ("ship", self.ship.is_some()),
            ("ship-window", self.ship_window.is_some()),
            ("ship-rate", self.ship_rate.is_some()),
            ("guest-power", self.guest_power.is_some()),
            ("service-rule", !self.service_rule.is_empty()),
            ("cpu-root", self.cpu_root.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
    }
}
