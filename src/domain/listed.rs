//! A device as lists keep it: only what they show, filter, sort and copy. A hundred thousand of them are in memory at once,
//! so that devices of one rack that are alike share the words that they have in common.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::device::Device;
use super::word::Word;

/// A device of a list. What it shares with others of its kind in its rack reads as its own; written to, it becomes so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub netbox_id: u64,
    pub name: Word,
    /// The lowest unit; `None` where NetBox has the device in a rack without a position (S3).
    #[serde(default)]
    pub position: Option<f64>,
    #[serde(default)]
    pub serial: Option<Word>,
    #[serde(default)]
    pub asset_tag: Option<Word>,
    #[serde(default)]
    pub oob_ip: Option<Word>,
    #[serde(flatten, with = "as_own")]
    pub alike: Arc<Alike>,
}

/// What devices of one kind in one rack have in common. The fields are those of [`Device`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Alike {
    pub site: Word,
    #[serde(default)]
    pub location: Option<Word>,
    #[serde(default)]
    pub rack: Option<Word>,
    pub status: Word,
    pub role: Word,
    #[serde(default)]
    pub device_class: Option<Word>,
    pub manufacturer: Word,
    pub model: Word,
    #[serde(default)]
    pub tags: Vec<Word>,
    #[serde(default)]
    pub tenant: Option<Word>,
    #[serde(default)]
    pub platform_class: Option<Word>,
}

impl Deref for Listed {
    type Target = Alike;

    fn deref(&self) -> &Alike {
        &self.alike
    }
}

impl DerefMut for Listed {
    fn deref_mut(&mut self) -> &mut Alike {
        Arc::make_mut(&mut self.alike)
    }
}

/// A shared value is written as its holder's own, and is that when it is read.
mod as_own {
    use super::*;

    pub fn serialize<S: Serializer>(alike: &Alike, serializer: S) -> Result<S::Ok, S::Error> {
        alike.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Alike>, D::Error> {
        Alike::deserialize(deserializer).map(Arc::new)
    }
}

fn word(text: &Option<String>) -> Option<Word> {
    text.as_deref().map(Word::from)
}

impl From<&Device> for Listed {
    fn from(device: &Device) -> Listed {
        Listed {
            netbox_id: device.netbox_id,
            name: Word::from(&*device.name),
            position: device.position,
            serial: word(&device.serial),
            asset_tag: word(&device.asset_tag),
            oob_ip: word(&device.oob_ip),
            alike: Arc::new(Alike::from(device)),
        }
    }
}

impl From<&Device> for Alike {
    fn from(device: &Device) -> Alike {
        Alike {
            site: Word::from(&*device.site),
            location: word(&device.location),
            rack: word(&device.rack),
            status: Word::from(&*device.status),
            role: Word::from(&*device.role),
            device_class: word(&device.device_class),
            manufacturer: Word::from(&*device.manufacturer),
            model: Word::from(&*device.model),
            tags: device.tags.iter().map(|tag| Word::from(&**tag)).collect(),
            tenant: word(&device.tenant),
            platform_class: word(&device.platform_class),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_to_one_device_stays_with_it() {
        let one: Listed = serde_json::from_value(serde_json::json!({
            "netbox_id": 1, "name": "gpu-1", "site": "osl1", "rack": "B07", "status": "active", "role": "GPU compute",
            "manufacturer": "Supermicro", "model": "SYS", "custom_fields": {"owner": "infra"},
        }))
        .unwrap();
        let mut two = Listed { netbox_id: 2, ..one.clone() };
        assert!(Arc::ptr_eq(&one.alike, &two.alike));
        two.rack = Some("B08".into());
        assert_eq!((one.rack.as_deref(), two.rack.as_deref()), (Some("B07"), Some("B08")));
    }
}
