//! Recognises OpenJ9, the other JVM in use (IBM Semeru). It describes its structures to nobody, so it is
//! only kept from being taken for HotSpot: it maps a libjvm.so as well, one that leads to its own library.
//!
//! It must not be asked for a perf map. It takes the signal that HotSpot is asked by as an order to write
//! dumps, during which some versions hang (eclipse-openj9/openj9 issue 12224). By `-XX:+PerfTool` it writes
//! a perf map by itself.

use std::{fs::File, sync::Arc};

use joular_data::{
    events::Runtime,
    model::frame::{Frame, FrameKind},
};

use super::{Build, LoadedLibrary, OpenError, RuntimeSystem};
use crate::procs::maps::is_openj9;

const NAME: &str = "openj9";

#[derive(Debug)]
pub struct OpenJ9;

#[derive(Debug, thiserror::Error)]
#[error(
    "it is OpenJ9, whose structures are not known: run it with -XX:+PerfTool for the names of its compiled methods, or \
     on HotSpot (OpenJDK 11 to 25) for whole stacks"
)]
struct NotKnown;

impl RuntimeSystem for OpenJ9 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_library(&self, file_name: &str) -> bool {
        is_openj9(file_name)
    }

    fn is_jvm(&self) -> bool {
        true
    }

    /// What a process is first seen as does not tell JVMs apart.
    fn is_runtime(&self, _: &Runtime) -> bool {
        false
    }

    fn writes_perf_map_on_request(&self) -> bool {
        false
    }

    fn perf_map_frame(&self, name: &str) -> Frame {
        Frame::new(FrameKind::Compiled, name.trim())
    }

    fn read_build(&self, _: &File, _: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError> {
        Err(OpenError::NotUnderstood(Box::new(NotKnown)))
    }
}
