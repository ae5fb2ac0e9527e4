use super::*;

#[test]
fn names_of_parts_are_understood() {
    assert_eq!(split_name("critic-Q4_K_M-00002-of-00003.gguf"), Some(("critic-Q4_K_M", 3)));
    assert_eq!(split_name("a-b-00001-of-00001.gguf"), Some(("a-b", 1)));
    for other in
        ["critic.gguf", "critic-00004-of-00003.gguf", "critic-1-of-3.gguf", "critic-00001-of-00003.bin", "-of-.gguf"]
    {
        assert_eq!(split_name(other), None, "{other}");
    }
    let found = parts(Path::new("d/x-00002-of-00002.gguf"));
    assert_eq!(found, [Path::new("d/x-00001-of-00002.gguf"), Path::new("d/x-00002-of-00002.gguf")]);
    assert_eq!(parts(Path::new("d/x.gguf")), [Path::new("d/x.gguf")]);
}
