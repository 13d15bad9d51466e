//! The half of a journal that a test's own one leaves to the store: all but the appends.

/// Within `impl Journal for …`: reads from the store that the field holds.
macro_rules! reads_the_store {
    ($field:tt) => {
        fn active(&self) -> Result<Vec<::muster::domain::ids::RunId>, ::muster::store::StoreError> {
            self.$field.active_runs()
        }

        fn records(
            &self,
            run: ::muster::domain::ids::RunId,
        ) -> Result<Vec<::muster::domain::event::RunRecord>, ::muster::store::StoreError> {
            self.$field.records(run)
        }

        fn end(&self, run: ::muster::domain::ids::RunId) -> Result<u64, ::muster::store::StoreError> {
            self.$field.journal_end(run)
        }

        fn entry(
            &self,
            run: ::muster::domain::ids::RunId,
        ) -> Result<Option<::muster::domain::queue::Entry>, ::muster::store::StoreError> {
            self.$field.queue_entry(run)
        }
    };
}
pub(crate) use reads_the_store;
