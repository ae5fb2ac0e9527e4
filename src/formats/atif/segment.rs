//! One ATIF root: a trajectory, a continuation of one, or a sub-agent's.

use std::path::Path;
use std::sync::Arc;

use super::super::json::Value;
use super::super::{chat, field, names};
use super::steps::{self, Reference};
use crate::trajectory::{ByteSpan, Diagnostic, RawPlace, Role, Severity, Step, Trajectory, Usage};

/// How deep sub-agents may start sub-agents of their own.
const DEPTH: usize = 8;

/// Where a root stands.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Its file, where that is not the trajectory's own.
    pub file: Option<Arc<Path>>,
    /// Its record in the file.
    pub span: ByteSpan,
    /// JSON pointer into the record.
    pub pointer: String,
}

impl Place {
    /// An element of a list below the root.
    pub fn element(&self, list: &str, index: usize) -> RawPlace {
        let pointer = format!("{}{list}/{index}", self.pointer).into();
        RawPlace { file: self.file.clone(), span: self.span, pointer, ..RawPlace::default() }
    }

    fn below(&self, list: &str, index: usize) -> Self {
        Self { pointer: format!("{}{list}/{index}", self.pointer), ..self.clone() }
    }
}

/// What a root holds.
#[derive(Debug)]
pub struct Segment {
    /// Its steps and what it says of the run; without totals.
    pub trajectory: Trajectory,
    /// Totals of its own steps.
    pub fresh: Usage,
    /// Totals of the steps it copied.
    copied: Usage,
    /// Totals it gives.
    pub given: Usage,
    /// File of the next segment.
    pub continues: Option<String>,
    /// Sub-agents it refers to.
    pub refs: Vec<Reference>,
    /// Sub-agents it holds.
    pub embedded: Vec<Trajectory>,
}

/// Reads a root.
pub fn read(root: &Value, place: &Place, path: &Path) -> Segment {
    read_at(root, place, path, 0)
}

fn read_at(root: &Value, place: &Place, path: &Path, depth: usize) -> Segment {
    let (mut steps, found) = steps::read(root, place);
    if let Some(notes) = field::text(root, "notes") {
        steps.push(Step {
            raw: RawPlace { pointer: format!("{}/notes", place.pointer).into(), ..place.element("", 0) },
            ..Step::new(Role::Meta, notes)
        });
    }
    let agent = field::get(root, "agent").unwrap_or(&Value::Null);
    let first = |value: &Value, keys: &[&str]| keys.iter().find_map(|k| field::text(value, k));
    let extra = field::get(root, "extra").unwrap_or(&Value::Null);
    let model = || field::list(root, "steps").iter().find_map(|s| field::text(s, "model_name"));
    let mut trajectory = Trajectory {
        instance_id: first(root, &["instance_id"]).or_else(|| first(extra, &["instance_id", "task_name"])),
        session: first(root, &["session_id", "trajectory_id"]),
        parent: field::str_at(agent, &["extra", "parent_session_id"]).map(str::to_owned),
        agent: agent_name(agent),
        model: first(agent, &["model_name"]).or_else(model),
        tools: chat::tool_specs(field::list(agent, "tool_definitions")),
        steps,
        ..Trajectory::default()
    };
    remarks(&mut trajectory, &found);
    let mut segment = Segment {
        trajectory,
        given: given(root),
        fresh: found.fresh,
        copied: found.copied,
        continues: field::text(root, "continued_trajectory_ref"),
        refs: found.refs,
        embedded: Vec::new(),
    };
    segment.read_embedded(root, place, path, depth);
    segment
}

fn agent_name(agent: &Value) -> Option<String> {
    let name = field::text(agent, "name").or_else(|| agent.as_str().map(str::to_owned))?;
    Some(match field::text(agent, "version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    })
}

fn given(root: &Value) -> Usage {
    let total = |key: &str| field::at(root, &["final_metrics", key]);
    Usage {
        cost: total("total_cost_usd").and_then(field::number),
        tokens_in: total("total_prompt_tokens").and_then(field::count),
        tokens_out: total("total_completion_tokens").and_then(field::count),
        tokens_cached: total("total_cached_tokens").and_then(field::count),
        api_calls: None,
    }
}

fn remarks(trajectory: &mut Trajectory, found: &steps::Found) {
    if found.token_lists > 0 {
        let text = format!("{} lists of token ids and log probabilities are left out", found.token_lists);
        trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "atif.token-lists", text));
    }
    for (source, n) in &found.unknown {
        let text = format!("{n} steps of unknown source `{source}` are shown as they are");
        trajectory.diagnostics.push(Diagnostic::new(Severity::Warning, "atif.unknown-source", text));
    }
    let copied = trajectory.steps.iter().filter(|s| s.is_demo && s.role == Role::Assistant).count();
    if copied > 0 {
        let text = format!("{copied} actions are copied from another session: shown, never counted");
        trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "atif.copied", text));
    }
}

impl Segment {
    fn read_embedded(&mut self, root: &Value, place: &Place, path: &Path, depth: usize) {
        let list = field::list(root, "subagent_trajectories");
        if list.is_empty() || depth >= DEPTH {
            return;
        }
        let session = self.session_or_name(path);
        for (at, value) in list.iter().enumerate() {
            let inner = read_at(value, &place.below("/subagent_trajectories", at), path, depth + 1);
            let mut found = inner.finished();
            if let Some(sub) = found.first_mut() {
                // Inside one file `trajectory_id` is what sub-agents are told apart by; the session may be shared.
                sub.session = field::text(value, "trajectory_id").or_else(|| sub.session.take());
                sub.parent = Some(session.clone());
                sub.instance_id = None;
            }
            self.embedded.append(&mut found);
        }
    }

    /// The session; made from the file's name where the file gives none, so that sub-agents can name it.
    pub fn session_or_name(&mut self, path: &Path) -> String {
        let name = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.trajectory.session.get_or_insert_with(name).clone()
    }

    /// Appends the next segment of the same run. What it copied is known already and dropped, unless it is new.
    pub fn append(&mut self, next: Self) {
        let known = |step: &Step| {
            self.trajectory.steps.iter().any(|s| (s.role, &s.text, &s.calls) == (step.role, &step.text, &step.calls))
        };
        let new: Vec<Step> = next.trajectory.steps.into_iter().filter(|s| !s.is_demo || !known(s)).collect();
        self.trajectory.steps.extend(new);
        self.given = continued(self.given, next.given, next.fresh);
        self.fresh = steps::sum(self.fresh, next.fresh);
        self.refs.extend(next.refs);
        self.embedded.extend(next.embedded);
        self.trajectory.diagnostics.extend(next.trajectory.diagnostics);
        self.continues = next.continues;
    }

    /// Says which of the files referred to are not there. `path` is the file's own.
    pub fn name_missing(&mut self, path: &Path) {
        let beside = path.parent().unwrap_or(Path::new(""));
        let on_disk = path.is_file();
        let ids: Vec<Option<String>> = self.embedded.iter().map(|t| t.session.clone()).collect();
        let mut missing: Vec<String> = Vec::new();
        let lies_there = |name: &str| on_disk && beside.join(name).is_file();
        for reference in self.refs.iter().filter(|r| r.id.is_none() || !ids.contains(&r.id)) {
            match &reference.path {
                Some(name) if lies_there(name) => {}
                Some(name) => missing.push(name.clone()),
                None => missing.push(reference.id.clone().unwrap_or_else(|| "without a name".to_owned())),
            }
        }
        for name in missing {
            self.missing(&name);
        }
        if let Some(name) = self.continues.take().filter(|n| !lies_there(n)) {
            self.ends_early(&name);
        }
    }

    /// A sub-agent's trajectory that is nowhere.
    pub fn missing(&mut self, name: &str) {
        let text = format!("the trajectory of a sub-agent is not there: `{name}`");
        self.trajectory.diagnostics.push(Diagnostic::new(Severity::Warning, "atif.missing-subagent", text));
    }

    /// A continuation that is nowhere.
    pub fn ends_early(&mut self, name: &str) {
        let text = format!("the trajectory goes on in `{name}`, which is not there");
        self.trajectory.diagnostics.push(Diagnostic::new(Severity::Warning, "atif.missing-continuation", text));
    }

    /// The trajectory with its totals, and the sub-agents it holds behind it.
    pub fn finished(mut self) -> Vec<Trajectory> {
        self.trajectory.usage = self.totals();
        // A sub-agent's task is none of its own: it does not stand among the attempts at the instance.
        if self.trajectory.parent.is_some() {
            self.trajectory.instance_id = None;
        }
        let mut all = vec![self.trajectory];
        all.append(&mut self.embedded);
        all
    }

    /// What the file gives; where it gives nothing, the sum over its own steps. A total that is exactly the sum with
    /// the copied steps counted them twice. A 0 for work done means that nobody counted.
    fn totals(&mut self) -> Usage {
        let worked = self.trajectory.steps.iter().any(Step::is_action);
        let both = steps::sum(self.fresh, self.copied);
        let mut twice = false;
        let mut whole = |given: Option<u64>, fresh: Option<u64>, both: Option<u64>| {
            let doubled = given.is_some() && given == both && both != fresh;
            twice |= doubled;
            let total = if doubled { fresh } else { given.or(fresh) };
            total.filter(|n| *n > 0 || !worked)
        };
        let tokens_in = whole(self.given.tokens_in, self.fresh.tokens_in, both.tokens_in);
        let tokens_out = whole(self.given.tokens_out, self.fresh.tokens_out, both.tokens_out);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 + 1e-6 * a.abs().max(b.abs());
        let doubled = match (self.given.cost, both.cost) {
            (Some(given), Some(both)) => near(given, both) && !self.fresh.cost.is_some_and(|fresh| near(fresh, both)),
            _ => false,
        };
        let cost = if doubled { self.fresh.cost } else { self.given.cost.or(self.fresh.cost) };
        if twice || doubled {
            let text = "the totals in the file count copied steps again: the sum over the own steps is shown";
            self.trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "atif.counted-twice", text));
        }
        Usage {
            cost: field::honest_cost(cost, worked),
            tokens_in,
            tokens_cached: self.given.tokens_cached.or(self.fresh.tokens_cached),
            tokens_out,
            api_calls: self.fresh.api_calls,
        }
    }

    /// Names the instance by the file where nothing else does.
    pub fn name_instance(&mut self, path: &Path) {
        let id = self.trajectory.instance_id.take();
        self.trajectory.instance_id = id.or_else(|| names::instance_of(path));
    }
}

/// Totals of a run and its next segment: that one counts on from the first, or starts anew.
fn continued(before: Usage, next: Usage, own: Usage) -> Usage {
    let counts_on = match (before.tokens_in, next.tokens_in, own.tokens_in) {
        (Some(before), Some(next), Some(own)) => next >= before.saturating_add(own),
        (Some(before), Some(next), None) => next >= before,
        _ => false,
    };
    if counts_on { next } else { steps::sum(before, next) }
}
