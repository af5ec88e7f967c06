//! Reads stacks as the data set has them.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::dataset::{DataSet, float, text};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub kind: String,
    pub class: String,
    pub name: String,
    pub module: String,
    pub file: String,
    pub line: Option<u32>,
}

impl Frame {
    pub fn method(&self) -> String {
        if self.class.is_empty() { self.name.clone() } else { format!("{}.{}", self.class, self.name) }
    }

    pub fn is_java(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "interpreted" | "compiled" | "compiled-c1" | "compiled-c2" | "inlined" | "native-wrapper"
        )
    }

    pub fn is_marker(&self) -> bool {
        self.kind == "marker"
    }
}

/// A call path of a thread, root first, and how many samples found it there.
#[derive(Clone, Debug)]
pub struct Stack {
    pub thread: String,
    pub samples: f64,
    pub frames: Vec<Frame>,
}

/// All stacks of a process that samples hit.
pub fn stacks(data: &DataSet, pid: u32) -> Result<Vec<Stack>> {
    // Frames as plain lists: a deep stack has a thousand of them.
    let rows = data.rows(&format!(
        "SELECT thread_name, samples, list_transform(frames, lambda f: [f.kind, coalesce(f.class, ''), f.method,
                coalesce(f.module, ''), coalesce(f.file, ''), coalesce(f.line::VARCHAR, '')]) AS frames
         FROM (SELECT thread_name, stack_id, sum(samples)::DOUBLE AS samples FROM branches
               WHERE pid = {pid} AND samples > 0 GROUP BY ALL)
         JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames FROM stacks) USING (stack_id)
         ORDER BY thread_name, samples DESC"
    ))?;
    rows.iter().map(stack).collect()
}

fn stack(row: &Value) -> Result<Stack> {
    let frames = row["frames"].as_array().with_context(|| format!("no frames in {row}"))?;
    let frames = frames.iter().map(|fields| {
        let field = |index: usize| fields[index].as_str().unwrap_or_default().to_owned();
        let line = field(5).parse().ok();
        Frame { kind: field(0), class: field(1), name: field(2), module: field(3), file: field(4), line }
    });
    Ok(Stack {
        thread: text(row, "thread_name")?.to_owned(),
        samples: float(row, "samples")?,
        frames: frames.collect(),
    })
}
