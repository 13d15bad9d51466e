//! Computes a device's platform class key and says what becomes of the one that is recorded (P2–P9).

use serde_json::Value;

use super::text::neutralize_to;

/// The longest key that both records take (P8).
pub const KEY_MAX: usize = 128;
/// The GPU type of a device without GPUs (P3).
pub const NO_GPU: &str = "NOGPU";
/// The device class whose device types must have a GPU type.
pub const GPU_COMPUTE: &str = "COMPUTE_GPU";

/// What the key is made from, as NetBox has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inputs<'a> {
    pub device_class: Option<&'a str>,
    /// The device type's custom field.
    pub gpu_type: Option<&'a str>,
    pub manufacturer: &'a str,
    pub model: &'a str,
    /// `config_context.ztp`, where the context has one.
    pub ztp: Option<&'a Value>,
}

/// Why NetBox's data gives no key, and where to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolvable {
    pub message: String,
    pub action: String,
}

/// What becomes of NetBox's field (P9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It is empty: the computed key is written.
    Write,
    /// It holds the computed key.
    Equal,
    /// It holds another key, which is kept and is the effective one.
    Kept(String),
}

/// `<GPUTYPE>_<DEVICETYPE>_<FABRICTYPE>_<NN>` (P2). `NN` is always `01`: two kinds of hardware with one key are told
/// apart by their device types in NetBox, not here (P7).
pub fn compute(inputs: &Inputs) -> Result<String, Unresolvable> {
    let gpu = gpu_type(inputs)?;
    let device = format!("{}{}", plain(inputs.manufacturer), plain(inputs.model));
    if device.is_empty() {
        return Err(Unresolvable {
            message: format!(
                "manufacturer '{}' and model '{}' of the device type have no letter or digit",
                neutralize_to(inputs.manufacturer, 60),
                neutralize_to(inputs.model, 60)
            ),
            action: "correct manufacturer and model of the device type in NetBox".to_owned(),
        });
    }
    let fabric = if gpu == NO_GPU { "NORDMA" } else { fabric_type(inputs.ztp)? };
    let key = format!("{gpu}_{device}_{fabric}_01");
    fits(&key, "the computed platform class")?;
    Ok(key)
}

/// Compares the computed key with what NetBox's field holds; `None` where that is null, absent or empty (P9, C-37). A field
/// of nothing but blanks names no hardware and counts as empty.
pub fn settle(recorded: Option<&str>, computed: &str) -> Result<Settled, Unresolvable> {
    match recorded.filter(|text| !text.trim().is_empty()) {
        None => Ok(Settled::Write),
        Some(same) if same == computed => Ok(Settled::Equal),
        Some(other) => {
            fits(other, "the platform class that NetBox holds")?;
            Ok(Settled::Kept(other.to_owned()))
        }
    }
}

/// P3
fn gpu_type<'a>(inputs: &Inputs<'a>) -> Result<&'a str, Unresolvable> {
    match inputs.gpu_type.map(str::trim).filter(|text| !text.is_empty()) {
        Some(gpu) => Ok(gpu),
        None if inputs.device_class == Some(GPU_COMPUTE) => Err(Unresolvable {
            message: format!(
                "the device type '{} {}' of a GPU compute device has no gpu_type",
                neutralize_to(inputs.manufacturer, 60),
                neutralize_to(inputs.model, 60)
            ),
            action: format!(
                "set gpu_type on the device type '{}' in NetBox, then run again",
                neutralize_to(inputs.model, 60)
            ),
        }),
        None => Ok(NO_GPU),
    }
}

/// What is wrong with `config_context.ztp` of a device that has GPUs; `None`: nothing (P5).
pub fn ztp_misfit(ztp: Option<&Value>) -> Option<Unresolvable> {
    fabric_type(ztp).err()
}

/// P5. A guessed fabric would select the wrong hardware descriptor, so what is not clear is refused. A null takes a block
/// back, as NetBox's contexts do.
fn fabric_type(ztp: Option<&Value>) -> Result<&'static str, Unresolvable> {
    let Some(ztp) = ztp.filter(|ztp| !ztp.is_null()) else { return Ok("NORDMA") };
    match ztp.get("infiniband") {
        Some(Value::Object(_) | Value::Array(_)) => Ok("IB"),
        Some(other) if !other.is_null() => Err(Unresolvable {
            message: format!(
                "config_context.ztp.infiniband is '{}', not a section",
                neutralize_to(&other.to_string(), 60)
            ),
            action: "make ztp.infiniband a section in the device's NetBox config context, or remove ztp".to_owned(),
        }),
        _ => Err(Unresolvable {
            message: "config_context.ztp is present and has no infiniband section, so the fabric is unknown".to_owned(),
            action: "add the infiniband section to ztp in the device's NetBox config context, or remove ztp".to_owned(),
        }),
    }
}

/// P4
fn plain(text: &str) -> String {
    text.to_uppercase().chars().filter(char::is_ascii_alphanumeric).collect()
}

/// P8
fn fits(key: &str, what: &str) -> Result<(), Unresolvable> {
    let length = key.chars().count();
    if length <= KEY_MAX {
        return Ok(());
    }
    Err(Unresolvable {
        message: format!("{what} has {length} characters, {KEY_MAX} are the most: '{}'", neutralize_to(key, 60)),
        action: "shorten gpu_type, manufacturer or model in NetBox, or clear the device's platform class there"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inputs<'a>(class: &'a str, gpu: Option<&'a str>, ztp: Option<&'a Value>) -> Inputs<'a> {
        Inputs { device_class: Some(class), gpu_type: gpu, manufacturer: "Lenovo", model: "HG635N V2", ztp }
    }

    /// Proves: P2, P3, P4, P5, P6, P7
    #[test]
    fn keys_are_made_from_type_and_fabric() {
        let (ib, empty, other) = (json!({"infiniband": {"rails": 8}}), json!({}), json!({"roce": {}}));
        let cases: [(&str, Option<&str>, Option<&Value>, &str); 9] = [
            ("COMPUTE_GPU", Some("GB300"), Some(&ib), "GB300_LENOVOHG635NV2_IB_01"),
            ("COMPUTE_GPU", Some("GB300"), None, "GB300_LENOVOHG635NV2_NORDMA_01"),
            ("COMPUTE_GPU", Some(" GB300 "), Some(&Value::Null), "GB300_LENOVOHG635NV2_NORDMA_01"),
            ("COMPUTE_CPU", None, None, "NOGPU_LENOVOHG635NV2_NORDMA_01"),
            ("COMPUTE_CPU", Some(""), Some(&ib), "NOGPU_LENOVOHG635NV2_NORDMA_01"),
            ("HYPERVISOR", None, Some(&empty), "NOGPU_LENOVOHG635NV2_NORDMA_01"),
            ("HYPERVISOR", Some("  "), Some(&other), "NOGPU_LENOVOHG635NV2_NORDMA_01"),
            ("HYPERVISOR", Some("L40S"), Some(&ib), "L40S_LENOVOHG635NV2_IB_01"),
            ("COMPUTE_CPU", Some("L40S"), None, "L40S_LENOVOHG635NV2_NORDMA_01"),
        ];
        for (class, gpu, ztp, expected) in cases {
            assert_eq!(compute(&inputs(class, gpu, ztp)).as_deref(), Ok(expected), "{class} {gpu:?} {ztp:?}");
        }
    }

    /// Proves: P3
    #[test]
    fn a_gpu_compute_device_without_a_gpu_type_is_refused() {
        for gpu in [None, Some(""), Some(" ")] {
            let error = compute(&inputs("COMPUTE_GPU", gpu, None)).unwrap_err();
            assert!(error.action.contains("gpu_type") && error.message.contains("'Lenovo HG635N V2'"), "{error:?}");
        }
    }

    /// Proves: P5
    #[test]
    fn a_ztp_block_without_an_infiniband_section_is_refused() {
        for ztp in [
            json!({}),
            json!({"roce": {}}),
            json!({"infiniband": null}),
            json!({"infiniband": true}),
            json!("ib"),
            json!([]),
        ] {
            let error = compute(&inputs("COMPUTE_GPU", Some("GB300"), Some(&ztp))).unwrap_err();
            assert!(error.action.contains("ztp"), "{ztp}: {error:?}");
        }
    }

    /// Proves: P8
    #[test]
    fn a_key_over_128_characters_is_refused_computed_or_kept() {
        let gpu = "G".repeat(103);
        let longest = compute(&inputs("COMPUTE_GPU", Some(&gpu), None)).unwrap();
        assert_eq!(longest.len(), KEY_MAX);
        let gpu = "G".repeat(104);
        assert!(compute(&inputs("COMPUTE_GPU", Some(&gpu), None)).unwrap_err().message.contains("129"));
        assert!(settle(Some(&"K".repeat(129)), "A_B_C_01").is_err());
        assert_eq!(settle(Some(&"K".repeat(128)), "A_B_C_01"), Ok(Settled::Kept("K".repeat(128))));
    }

    /// Proves: P9. Case: C-37
    #[test]
    fn an_empty_field_is_written_an_equal_one_left_and_another_kept() {
        for empty in [None, Some(""), Some("  ")] {
            assert_eq!(settle(empty, "A_B_C_01"), Ok(Settled::Write));
        }
        assert_eq!(settle(Some("A_B_C_01"), "A_B_C_01"), Ok(Settled::Equal));
        assert_eq!(settle(Some("X_B_C_01"), "A_B_C_01"), Ok(Settled::Kept("X_B_C_01".into())));
    }

    #[test]
    fn a_device_type_of_signs_only_gives_no_key() {
        let nameless = Inputs { manufacturer: "–", model: "***", ..inputs("COMPUTE_CPU", None, None) };
        assert!(compute(&nameless).unwrap_err().action.contains("device type"));
    }
}
