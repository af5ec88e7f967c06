//! Reads what table `processes` says of processes.

use super::catalog::Process;
use crate::{
    dataset::{
        error::Result,
        read::{
            columns::{Columns, Flags, Texts},
            lists::TextLists,
        },
        tables::{
            processes::{
                COLLECTOR, CONTAINER, DEBUG_NON_SAFEPOINTS, JVM_VERSION, LABELS, MAIN_CLASS, NAMESPACE, POD, POD_NAME,
                SERVICE, VERSION,
            },
            shared::COMM,
        },
    },
    model::target_text::TargetText,
};

pub(super) struct ProcessColumns<'a> {
    pub(super) comm: Texts<'a>,
    main_class: Texts<'a>,
    jvm_version: Texts<'a>,
    collector: Texts<'a>,
    container: Texts<'a>,
    pod: Texts<'a>,
    namespace: Texts<'a>,
    pod_name: Texts<'a>,
    labels: TextLists,
    service: Texts<'a>,
    version: Texts<'a>,
    debug_non_safepoints: Flags,
}

impl<'a> ProcessColumns<'a> {
    pub(super) fn of(columns: &'a Columns<'_>) -> Result<Self> {
        Ok(Self {
            comm: columns.texts(COMM)?,
            main_class: columns.texts(MAIN_CLASS)?,
            jvm_version: columns.texts(JVM_VERSION)?,
            collector: columns.texts(COLLECTOR)?,
            container: columns.texts(CONTAINER)?,
            pod: columns.texts(POD)?,
            namespace: columns.texts(NAMESPACE)?,
            pod_name: columns.texts(POD_NAME)?,
            labels: columns.text_lists(LABELS)?,
            service: columns.texts(SERVICE)?,
            version: columns.texts(VERSION)?,
            debug_non_safepoints: columns.flags(DEBUG_NON_SAFEPOINTS)?,
        })
    }

    /// What is known of `process` with this row, which is later knowledge.
    pub(super) fn known(&self, row: usize, process: &Process) -> Result<Process> {
        let text = |texts: &Texts<'_>| texts.maybe(row).map(TargetText::from);
        Ok(Process {
            run: process.run,
            pid: process.pid,
            start: process.start,
            comm: self.comm.get(row)?.into(),
            main_class: text(&self.main_class),
            jvm_version: text(&self.jvm_version),
            collector: text(&self.collector),
            container: text(&self.container),
            pod: text(&self.pod),
            namespace: text(&self.namespace),
            pod_name: text(&self.pod_name),
            labels: self.labels.of(row).into_iter().map(TargetText::from).collect(),
            service: text(&self.service),
            version: text(&self.version),
            debug_non_safepoints: self.debug_non_safepoints.maybe(row),
        })
    }
}
