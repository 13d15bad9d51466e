//! Folds a run's records into what every view and command shows of it.
