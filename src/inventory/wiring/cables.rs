//! Looks at the cables. What happens to one in the middle of a path moves no time of the interfaces at its ends, so that
//! these are read again.

use super::{ObserveError, Seen, WiringObserver, WiringReport};
use crate::clients::netbox::observe::List;
use crate::clients::netbox::records::CableDetail;
use crate::domain::wiring::Interface;
use crate::store::{ObjectChange, ObjectKind};

impl WiringObserver {
    /// Cables that changed, and those that are gone as far as their number shows it.
    pub(super) async fn read_cables(&self, seen: &mut Seen) -> Result<WiringReport, ObserveError> {
        if seen.ignores_filters {
            return self.compare_cables(seen).await;
        }
        let (mut report, mut changes) = self.read_list::<CableDetail>(seen).await?;
        let here = self.store.object_count(ObjectKind::Cable)?.0;
        if self.netbox.count(List::Cables).await? != Some(here) {
            let (compared, more) = self.compare_list::<CableDetail>(seen).await?;
            report.add(compared);
            changes.extend(more);
        }
        report.add(self.follow(&changes).await?);
        Ok(report)
    }

    /// All cables, by ids and times.
    pub(super) async fn compare_cables(&self, seen: &mut Seen) -> Result<WiringReport, ObserveError> {
        let (mut report, changes) = self.compare_list::<CableDetail>(seen).await?;
        report.add(self.follow(&changes).await?);
        Ok(report)
    }

    /// Reads again what hangs on cables that changed. The ends of a direct cable have times of their own, which move with it.
    /// Where any other one changed, every path may go another way now that leads through more than one cable.
    async fn follow(&self, changes: &[ObjectChange]) -> Result<WiringReport, ObserveError> {
        if changes.iter().all(|change| change.before.is_none() && change.now.is_none()) {
            return Ok(WiringReport::default());
        }
        let interfaces = self.store.objects::<Interface>()?;
        let indirect = interfaces.iter().filter(|interface| interface.is_indirect());
        self.read_interfaces(indirect.map(|interface| interface.netbox_id).collect()).await
    }
}
