//! Scores that are kept between runs.

use super::*;

/// What `trajscope cache --json` says: entries and bytes.
fn held(env: &Env) -> (u64, u64) {
    let said = &lines(&env.run(&["cache", "--json"]))[0];
    (said["entries"].as_u64().unwrap(), said["bytes"].as_u64().unwrap())
}

#[test]
fn a_second_run_takes_its_scores_from_the_cache_and_prints_the_same() {
    let env = Env::new();
    two_runs(&env);
    let first = env.run(&["score", ".", "--json"]);
    let (entries, bytes) = held(&env);
    assert!((1..=2).contains(&entries) && bytes > 0, "the two runs may read the same: {entries}");
    let second = env.run(&["score", ".", "--json"]);
    assert_eq!((stdout(&second), stderr(&second)), (stdout(&first), String::new()));
    assert_eq!(held(&env), (entries, bytes));
    let anew = env.run(&["score", ".", "--json", "--no-cache"]);
    assert_eq!(stdout(&anew), stdout(&first));
    let cleared = &lines(&env.run(&["cache", "--clear", "--json"]))[0];
    assert_eq!((&cleared["removed"], &cleared["entries"]), (&json!(entries), &json!(0)));
    assert_eq!(held(&env), (0, 0));
}

#[test]
fn no_cache_neither_reads_nor_writes() {
    let env = Env::new();
    two_runs(&env);
    for command in [["score", "."].as_slice(), &["rank", "."], &["export", ".", "-o", "preds.json"]] {
        let output = env.run(&[command, &["--no-cache"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(held(&env), (0, 0));
    // A file that cannot be believed is said when the cache is used, and not looked at when it is not.
    assert!(env.run(&["score", "run1"]).status.success());
    let folder = PathBuf::from(lines(&env.run(&["cache", "--json"]))[0]["folder"].as_str().unwrap());
    let kept = folders(&folder).iter().flat_map(|f| folders(f)).next().unwrap();
    std::fs::write(&kept, "trajscope-scores 1\nnonsense\n").unwrap();
    let without = env.run(&["score", "run1", "--json", "--no-cache"]);
    assert_eq!(stderr(&without), "");
    let with = env.run(&["score", "run1", "--json"]);
    assert_eq!(with.status.code(), Some(0), "a damaged cache is no finding");
    assert_eq!(stdout(&with), stdout(&without));
    assert!(stderr(&with).starts_with("score cache: 1 damaged file(s) ignored; first: "), "{}", stderr(&with));
    assert_eq!(stderr(&env.run(&["score", "run1", "--json"])), "", "it was replaced");
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect()
}

#[test]
fn a_cache_folder_that_cannot_be_written_costs_one_remark() {
    let env = Env::new();
    two_runs(&env);
    let file = env.write("file", "mine");
    let output = env.command(&["score", "run1", "--json"]).env("TRAJSCOPE_CACHE_DIR", &file).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(lines(&output)[0]["score"].is_f64());
    assert!(stderr(&output).contains("1 result(s) not kept") && stderr(&output).contains("--no-cache"));
    assert_eq!(stderr(&output).lines().count(), 1);
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
fn help_says_what_no_cache_does() {
    let env = Env::new();
    for command in ["score", "rank", "export", "inspect"] {
        let help = stdout(&env.run(&[command, "--help"]));
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("scores are neither read from nor written to the cache folder"), "{command}: {help}");
    }
}

/// A critic in the Hugging Face cache of this user, its files of yesterday. Gives its folder.
pub fn downloaded(env: &Env) -> PathBuf {
    let model = ".cache/huggingface/hub/models--all--critic";
    env.write(&format!("{model}/refs/main"), "abc");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1");
    let to = env.path(&format!("{model}/snapshots/abc"));
    std::fs::create_dir_all(&to).unwrap();
    for file in folders(&from) {
        let copy = to.join(file.file_name().unwrap());
        std::fs::copy(&file, &copy).unwrap();
        yesterday(&copy);
    }
    to
}

fn yesterday(file: &Path) {
    let at = std::time::SystemTime::now() - std::time::Duration::from_hours(24);
    std::fs::File::options().append(true).open(file).unwrap().set_modified(at).unwrap();
}

#[test]
fn a_model_of_which_all_is_known_is_not_read_again() {
    let env = Env::new();
    two_runs(&env);
    let folder = downloaded(&env);
    let score = || env.run(&["score", ".", "--json", "--critic", "all/critic", "--threads", "1"]);
    let first = score();
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert_eq!(lines(&first)[0]["critic"]["id"], "all/critic");
    // Other weights of the same size and time: only who reads them can tell.
    let weights = folder.join("model-00004-of-00004.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let time = std::fs::metadata(&weights).unwrap().modified().unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&weights, &bytes).unwrap();
    std::fs::File::options().append(true).open(&weights).unwrap().set_modified(time).unwrap();
    let second = score();
    assert_eq!((stdout(&second), stderr(&second)), (stdout(&first), String::new()));
    // A file that was really changed is read.
    yesterday(&weights);
    let third = score();
    assert_eq!(third.status.code(), Some(0), "{}", stderr(&third));
    assert_ne!(lines(&third)[0]["critic"]["fingerprint"], lines(&first)[0]["critic"]["fingerprint"]);
}
