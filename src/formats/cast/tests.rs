use std::path::Path;

use super::super::load::load_bytes;
use super::*;

const HEAD: &str = r#"{"version": 2, "width": 80, "height": 24, "timestamp": 100}"#;

fn read(events: &[&str]) -> super::super::load::LoadedFile {
    let text = format!("{HEAD}\n{}\n", events.join("\n"));
    let file = load_bytes(Path::new("x"), text.into_bytes());
    assert_eq!(file.report.format, Some("asciicast"), "{}", file.report.reason);
    file
}

fn steps(file: &super::super::load::LoadedFile) -> Vec<(Role, &str)> {
    file.trajectories[0].steps.iter().map(|s| (s.role, s.text.as_str())).collect()
}

fn has(file: &super::super::load::LoadedFile, code: &str) -> bool {
    file.report.diagnostics.iter().any(|d| d.code == code)
}

#[test]
fn what_is_typed_is_an_action_and_what_is_shown_its_observation() {
    let file = read(&[
        r#"[0.5, "o", "$ "]"#,
        r#"[1.0, "i", "clear\r"]"#,
        r#"[1.5, "o", "cleared"]"#,
        r#"[2.0, "i", "l"]"#,
        r#"[2.1, "i", "sx"]"#,
        r#"[2.2, "i", "\u007f"]"#,
        r#"[2.25, "i", "\r"]"#,
        r#"[2.5, "o", "x.py\r\n"]"#,
        r#"[3.0, "i", "cat <<E\rab\rE\r"]"#,
        r#"[3.5, "m", "here"]"#,
        r#"[4.0, "i", "make; tmux wait -S done\r"]"#,
        r#"[4.5, "q", "?"]"#,
        r#"[5.0, "i", "\u0004"]"#,
    ]);
    let expected = [
        (Role::Tool, "$ "),
        (Role::Meta, "typed by the harness: clear"),
        (Role::Tool, "cleared"),
        (Role::Assistant, "ls"),
        (Role::Tool, "x.py\r\n"),
        (Role::Assistant, "cat <<E\nab\nE"),
        (Role::Meta, "marker: here"),
        (Role::Assistant, "make; tmux wait -S done"),
        (Role::Meta, "typed by the harness: C-d"),
    ];
    assert_eq!(steps(&file), expected);
    let t = &file.trajectories[0];
    assert_eq!(t.steps[7].action.as_deref(), Some("make"));
    assert_eq!(t.steps[3].timestamp.as_deref(), Some("102.250"));
    assert!(has(&file, "cast.unknown-event") && !has(&file, "cast.only-recording"));
}

#[test]
fn an_installed_agent_types_nothing_itself() {
    let file = read(&[
        r#"[1, "i", "source /installed-agent/setup-env.sh; tmux wait -S done\r"]"#,
        r#"[2, "i", "mini -t 'TASK'; tmux wait -S done\r"]"#,
        r#"[3, "o", "the agent's own screen"]"#,
    ]);
    assert_eq!(file.trajectories[0].n_actions(), 0);
    assert!(has(&file, "cast.only-recording"));
    assert_eq!(steps(&file)[2], (Role::Tool, "the agent's own screen"));
}

#[test]
fn without_input_the_prompts_tell() {
    let file = read(&[
        r#"[1, "o", "\u001b[?2004hroot@abc:/app# "]"#,
        r#"[2, "o", "ls\r\n\u001b[?2004l\rx.py\r\n\u001b]0;title\u0007root@abc:/app# echo $HOME\r\n/root\r\n"]"#,
    ]);
    let expected =
        [(Role::Assistant, "ls"), (Role::Tool, "x.py"), (Role::Assistant, "echo $HOME"), (Role::Tool, "/root\n")];
    assert_eq!(steps(&file), expected);
    assert!(has(&file, "cast.prompts"));
    let file = read(&[r#"[1, "o", "progress 1%\rprogress 2%"]"#]);
    assert_eq!(steps(&file), [(Role::Tool, "progress 1%\rprogress 2%")]);
    assert!(has(&file, "cast.only-recording") && !has(&file, "cast.prompts"));
    assert_eq!(at_prompt("mail me@home: it costs $ 5"), None);
}

#[test]
fn the_other_versions_are_read() {
    let one =
        br#"{"version": 1, "width": 80, "height": 24, "duration": 2, "stdout": [[0.5, "a@b:~$ ls\r\n"], [1, "x"]]}"#;
    let file = load_bytes(Path::new("x"), one.to_vec());
    assert_eq!((file.report.format, file.trajectories[0].n_actions()), (Some("asciicast"), 1));
    let three = b"{\"version\": 3, \"term\": {\"cols\": 80, \"rows\": 24}, \"timestamp\": 10}\n[1.0, \"i\", \"ls\\r\"]\n[1.0, \"i\", \"pwd\\r\"]\n[0, \"x\", \"0\"]\n";
    let file = load_bytes(Path::new("x"), three.to_vec());
    let times: Vec<_> = file.trajectories[0].steps.iter().map(|s| s.timestamp.as_deref().unwrap()).collect();
    assert_eq!(times, ["11.000", "12.000"]);
}

#[test]
fn a_cut_last_event_does_not_hide_the_others() {
    let text = format!("{HEAD}\n[1, \"i\", \"ls\\r\"]\n[2, \"o\", \"x.p");
    let file = load_bytes(Path::new("x"), text.into_bytes());
    assert_eq!((file.report.format, file.trajectories[0].n_actions()), (Some("asciicast"), 1));
}
