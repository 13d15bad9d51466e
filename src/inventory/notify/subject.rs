//! Subjects of six segments, into which no name can bring a seventh or a wildcard.

/// `PREFIX.inventory.SITE.KIND.NAME.EVENT`.
pub fn subject(prefix: &str, site: &str, kind: Kind, name: &str, event: Event) -> String {
    let kind = match kind {
        Kind::Device => "device",
        Kind::Cable => "cable",
    };
    let event = match event {
        Event::Updated => "updated",
        Event::Deleted => "deleted",
    };
    format!("{prefix}.inventory.{}.{kind}.{}.{event}", segment(site), segment(name))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Device,
    Cable,
}

/// The last segment: what is new is updated, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Updated,
    Deleted,
}

/// A name as one segment: letters and digits of ASCII, `-` and `_` stand for themselves, every other byte is `%XX`, and
/// nothing at all is `%`. Percent-decoding gives the name back.
pub fn segment(name: &str) -> String {
    if name.is_empty() {
        return "%".to_owned();
    }
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            segment.push(char::from(byte));
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(segment: &str) -> String {
        if segment == "%" {
            return String::new();
        }
        let mut bytes = Vec::new();
        let mut rest = segment.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).unwrap()
    }

    /// Proves: O10
    #[test]
    fn a_subject_has_six_segments_whatever_the_name() {
        let of = |name| subject("muster", "osl1", Kind::Device, name, Event::Updated);
        assert_eq!(of("gpu-b07-39"), "muster.inventory.osl1.device.gpu-b07-39.updated");
        assert_eq!(of("a.b *>"), "muster.inventory.osl1.device.a%2Eb%20%2A%3E.updated");
        assert_eq!(of(""), "muster.inventory.osl1.device.%.updated");
        assert_eq!(subject("m", "a.b", Kind::Cable, "7", Event::Deleted), "m.inventory.a%2Eb.cable.7.deleted");
    }

    proptest! {
        /// Proves: O10
        #[test]
        fn no_name_brings_a_segment_or_a_wildcard_and_each_can_be_read_back(name in any::<String>()) {
            let text = subject("muster", "osl1", Kind::Device, &name, Event::Deleted);
            let segments: Vec<&str> = text.split('.').collect();
            prop_assert_eq!(segments.len(), 6);
            prop_assert!(segments.iter().all(|s| !s.is_empty()));
            prop_assert!(!text.contains(['*', '>', ' ', '\t', '\r', '\n', '\0']) && text.is_ascii());
            prop_assert_eq!(decoded(segments[4]), name);
        }
    }
}
