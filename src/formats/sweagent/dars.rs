//! DARS: a search tree of messages. Every way from the root to a leaf is an attempt; ways share their beginning.

use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{chat, field, names, rows};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Source, Step, Trajectory};

/// Most ways read of one tree.
const MAX_WAYS: usize = 256;

/// A tree of nodes.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?.get("root")?;
    let fits = ["role", "children", "_depth"].iter().all(|k| root.get(k).is_some());
    if fits { Match::some(Confidence::Certain, "a `root` with `role`, `children` and `_depth`") } else { None }
}

/// Patches of a tree's leaves with the harness's output.
pub fn sniff_evaluation(sniff: &Sniff<'_>) -> Option<Match> {
    let keys = ["run_id", "status", "output", "content"];
    let fits = sniff.is_rows() && sniff.rows.iter().all(|r| keys.iter().all(|k| r.get(k).is_some()));
    if fits { Match::some(Confidence::Certain, "rows with `run_id`, `status`, `output` and `content`") } else { None }
}

/// Counts what the evaluations say: they name no instance and no node, so nothing can be joined to them.
pub fn decode_evaluation(input: &Input<'_>) -> Decoded {
    let (mut resolved, mut all) = (0, 0);
    let mut diagnostics = input.document.rows(|row| {
        all += 1;
        let output = field::str(row.value, "output").unwrap_or_default();
        resolved += usize::from(output.lines().any(|l| l.trim() == "Instances resolved: 1"));
    });
    let text = format!("{resolved} of {all} evaluated patches resolved the instance, which is not named here");
    diagnostics.push(Diagnostic::new(Severity::Info, "dars.evaluation", text));
    Decoded { diagnostics, ..Decoded::default() }
}

/// A node and the way to it.
struct Open<'a> {
    node: &'a Value<'a>,
    pointer: String,
    /// Nodes above it.
    depth: usize,
}

/// Reads a tree.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut trajectories = Vec::new();
    decoded.diagnostics = input.document.rows(|row| {
        let Some(root) = field::get(row.value, "root") else { return };
        let source = Source { record: row.record, span: row.span, ..Source::default() };
        let ways = ways(root, rows::pointer(row, "root"));
        let n = ways.len();
        trajectories.extend(ways.into_iter().enumerate().map(|(i, way)| {
            let mut trajectory = attempt(&way);
            trajectory.source = Source { record: row.record + i, ..source.clone() };
            trajectory.format = input.format;
            trajectory.instance_id = instance(input);
            if n > 1 {
                let text = format!("one of {n} ways through a search tree: they share their beginning");
                trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "dars.way", text));
            }
            trajectory
        }));
    });
    if trajectories.len() >= MAX_WAYS {
        let text = format!("the tree has more than {MAX_WAYS} ways: the others were left out");
        decoded.diagnostics.push(Diagnostic::new(Severity::Warning, "dars.too-many", text));
    }
    names::together(&mut trajectories, input.path);
    decoded.trajectories = trajectories;
    decoded
}

/// `astropy__astropy-6938.prev.root`.
fn instance(input: &Input<'_>) -> Option<String> {
    let name = input.path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".root").unwrap_or(name);
    let stem = stem.strip_suffix(".prev").or_else(|| stem.strip_suffix(".json")).unwrap_or(stem);
    if names::looks_like_instance(stem) { Some(stem.to_owned()) } else { names::instance_of(input.path) }
}

/// The ways from the root to each leaf, with the pointers of the nodes. Without recursion: trees are hundreds deep.
fn ways<'a>(root: &'a Value<'a>, pointer: String) -> Vec<Vec<(&'a Value<'a>, String)>> {
    let mut found = Vec::new();
    let mut way: Vec<(&Value<'_>, String)> = Vec::new();
    let mut open = vec![Open { node: root, pointer, depth: 0 }];
    while let Some(Open { node, pointer, depth }) = open.pop() {
        way.truncate(depth);
        way.push((node, pointer.clone()));
        let children = field::list(node, "children");
        if children.is_empty() {
            found.push(way.clone());
            if found.len() >= MAX_WAYS {
                break;
            }
        }
        let below = children.iter().enumerate().rev();
        open.extend(below.map(|(i, node)| Open { node, pointer: format!("{pointer}/children/{i}"), depth: depth + 1 }));
    }
    found
}

fn attempt(way: &[(&Value, String)]) -> Trajectory {
    let mut steps = Vec::new();
    let mut acted = false;
    for (node, pointer) in way {
        let raw = RawPlace { pointer: pointer.as_str().into(), ..RawPlace::default() };
        for mut step in chat::message_steps(node) {
            step.raw = raw.clone();
            if step.role == Role::Assistant {
                step.action = field::text(node, "action").or(step.action.take());
                step.thought = field::text(node, "thought");
                acted |= !step.is_demo;
            } else if acted && step.role == Role::User {
                step.role = Role::Tool;
            }
            steps.push(step);
        }
        steps.extend(search(node).into_iter().map(|text| Step { raw: raw.clone(), ..Step::new(Role::Meta, text) }));
    }
    let leaf = way.last().map_or(&Value::Null, |(node, _)| *node);
    let name = field::get(leaf, "node_id").and_then(field::scalar_text);
    let terminal = field::get(leaf, "is_terminal").and_then(field::truth) == Some(true);
    let content = field::get(leaf, "content").map(chat::content_text).unwrap_or_default();
    let submitted = terminal && content.trim_start().starts_with("diff --git");
    Trajectory {
        agent: Some("DARS".to_owned()),
        attempt: name.map(|id| format!("leaf {id}")),
        patch: if submitted { Some(content) } else { None },
        exit_status: Some(if terminal { "terminal" } else { "open" }.to_owned()),
        steps,
        ..Trajectory::default()
    }
}

/// What the search asked and was told at a node: the agent on the way never saw it.
fn search(node: &Value) -> Vec<String> {
    let parts = [
        ("expansion_prompt", "the search asked for other actions"),
        ("expansion_candidates", "other actions proposed"),
        ("critic_prompt", "the search asked its critic"),
        ("critic_response", "the search's critic answered"),
    ];
    let told = parts.iter().filter_map(|(key, what)| {
        let text = field::get(node, key).map(field::json_text).filter(|t| !t.is_empty())?;
        Some(format!("{what}:\n{text}"))
    });
    told.collect()
}
