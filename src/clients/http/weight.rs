//! What a JSON document becomes in memory before anybody reads it: two bytes of a hostile one can become six hundred (Z3).

/// A document that is no heavier than this is parsed. A page of 1000 devices with their contexts weighs some 40 MB.
pub const WEIGHT_MAX: usize = 128 * 1024 * 1024;

/// Below this size no document can be too heavy.
const LIGHT: usize = WEIGHT_MAX / OBJECT;
/// The first node of a map is made for eleven members, whether it gets them or not.
const OBJECT: usize = 640;
const ARRAY: usize = 128;
/// A member or element: its place where a list has just grown, and its text's own allocation.
const VALUE: usize = 96;

/// Whether the body, taken as JSON, would take more memory than [`WEIGHT_MAX`]. Counts and understands nothing: what is no JSON
/// is found out by the parser, which stops there.
pub fn is_too_heavy(body: &[u8]) -> bool {
    if body.len() < LIGHT {
        return false;
    }
    let (mut weight, mut in_text, mut escaped) = (body.len(), false, false);
    for byte in body {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        weight += match byte {
            b'"' => {
                in_text = true;
                0
            }
            b'{' => OBJECT,
            b'[' => ARRAY,
            b',' => VALUE,
            _ => 0,
        };
        if weight > WEIGHT_MAX {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: Z3
    #[test]
    fn what_grows_in_memory_is_told_from_what_is_only_long() {
        let many =
            |part: &str, bytes: usize| format!("[{}{part}]", format!("{part},").repeat(bytes / (part.len() + 1)));
        for part in ["0", "{}", "[]", "\"\"", "{\"\":0}"] {
            assert!(is_too_heavy(many(part, 8 << 20).as_bytes()), "{part}");
            assert!(!is_too_heavy(many(part, 100_000).as_bytes()), "{part}");
        }
        // As NetBox, Ironic and BMCs write: long texts, few values.
        let row =
            r#"{"id":1234,"display":"gpu-b07-39","url":"https://netbox.example.com/api/dcim/devices/1234/","tags":[]}"#;
        assert!(!is_too_heavy(many(row, 8 << 20).as_bytes()));
        assert!(!is_too_heavy(format!("[\"{}\"]", ",{[".repeat(8 << 20)).as_bytes()), "a text is one value");
        assert!(!is_too_heavy(format!("[\"{}", "\\\",".repeat(8 << 20)).as_bytes()));
    }
}
