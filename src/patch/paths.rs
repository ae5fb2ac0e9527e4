//! What a file is for, judged by its path alone.

/// Use of a file in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathClass {
    /// Anything else: most likely what the issue is about.
    Source,
    /// A test, or something only tests use.
    Test,
    /// A script that an agent left behind (`reproduce.py` in the root of the repository).
    Scratch,
    /// Generated: build output, caches, installed packages.
    Build,
}

impl PathClass {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Source, Self::Test, Self::Scratch, Self::Build];

    /// The word of its badge.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Test => "tests",
            Self::Scratch => "scratch",
            Self::Build => "build",
        }
    }
}

const TEST_FOLDERS: [&str; 12] = [
    "test",
    "tests",
    "testing",
    "__tests__",
    "__mocks__",
    "__snapshots__",
    "spec",
    "specs",
    "e2e",
    "testdata",
    "test-data",
    "fixtures",
];

const BUILD_FOLDERS: [&str; 13] = [
    "build",
    "dist",
    "target",
    "node_modules",
    "site-packages",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".eggs",
    ".mypy_cache",
    ".pytest_cache",
    "htmlcov",
];

const SCRATCH_STEMS: [&str; 9] = ["reproduc", "repro", "debug", "scratch", "tmp", "temp", "demo", "verify", "check_"];

/// The class of `path`. `is_new`: the patch adds it, so it can be something the agent left behind.
pub fn classify(path: &str, is_new: bool) -> PathClass {
    let lower = path.to_lowercase();
    let mut folders: Vec<&str> = lower.split('/').filter(|part| !part.is_empty()).collect();
    let name = folders.pop().unwrap_or_default();
    // An existing file in a folder called `build` may be source (build scripts); a new one hardly is.
    let is_build = |folder: &&str| BUILD_FOLDERS.contains(folder) || folder.ends_with(".egg-info");
    if folders.iter().any(is_build) && (is_new || !folders.contains(&"build")) || has_extension(name, &["pyc", "pyo"]) {
        return PathClass::Build;
    }
    if folders.iter().any(|folder| TEST_FOLDERS.contains(folder)) || is_test_name(path, name) {
        return PathClass::Test;
    }
    if is_new && folders.is_empty() && SCRATCH_STEMS.iter().any(|stem| name.starts_with(stem)) {
        return PathClass::Scratch;
    }
    PathClass::Source
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
}

/// Names by the conventions of pytest, unittest, Go, JavaScript, Ruby, Java, C#, PHP and Rust.
fn is_test_name(path: &str, lower: &str) -> bool {
    let stem = lower.split('.').next().unwrap_or_default();
    let dotted = lower.split('.').skip(1).any(|part| matches!(part, "test" | "tests" | "spec" | "snap"));
    let by_stem = matches!(stem, "test" | "tests" | "conftest")
        || ["test_", "tests_", "test-"].iter().any(|head| stem.starts_with(head))
        || ["_test", "_tests", "_spec", "-test", "-spec"].iter().any(|tail| stem.ends_with(tail));
    let original = path.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
    let camel = ["Test", "Tests", "TestCase", "Spec"].iter().any(|tail| {
        original.strip_suffix(tail).is_some_and(|head| head.ends_with(|c: char| c.is_lowercase() || c.is_ascii_digit()))
    });
    dotted || by_stem || camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_many_languages() {
        let tests = [
            "tests/test_calc.py",
            "pkg/test_calc.py",
            "pkg/calc_test.go",
            "src/__tests__/a.js",
            "src/a.spec.ts",
            "src/a.test.tsx",
            "spec/models/user_spec.rb",
            "src/test/java/org/UserTest.java",
            "Foo/BarTests.cs",
            "conftest.py",
            "pkg/conftest.py",
            "app/tests.py",
            "testing/data.json",
            "src/testdata/a.golden",
            "Tests/Unit/FooTest.php",
        ];
        for path in tests {
            assert_eq!(classify(path, false), PathClass::Test, "{path}");
        }
    }

    #[test]
    fn names_that_only_look_like_tests() {
        for path in ["src/latest.py", "pkg/contest.py", "src/attestation.rs", "docs/testimonial.md", "src/Latest.java"]
        {
            assert_eq!(classify(path, false), PathClass::Source, "{path}");
        }
        assert_eq!(classify("", true), PathClass::Source);
    }

    #[test]
    fn leftovers_and_build_output() {
        assert_eq!(classify("reproduce.py", true), PathClass::Scratch);
        assert_eq!(classify("reproduce.py", false), PathClass::Source, "it was there before");
        assert_eq!(classify("pkg/debug.py", true), PathClass::Source, "in a package it is part of it");
        assert_eq!(classify("build/lib/pkg/calc.py", true), PathClass::Build);
        assert_eq!(classify("build/rules.py", false), PathClass::Source);
        assert_eq!(classify("a/__pycache__/b.cpython-311.pyc", true), PathClass::Build);
        assert_eq!(classify("pkg.egg-info/PKG-INFO", true), PathClass::Build);
    }
}
