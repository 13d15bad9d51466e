//! STUB for compiling
use std::sync::Arc; use crate::activities::env::Env; use crate::domain::ids::RunId; use crate::domain::event::RunRecord;
#[derive(Clone)] pub struct Engine; #[derive(Debug, thiserror::Error)] #[error("x")] pub struct EngineError;
impl Engine { pub fn start(_: Arc<Env>) -> Result<Engine, EngineError> { todo!() } pub fn launch(&self, _: RunId) -> Result<(), EngineError> { todo!() } pub async fn cancel(&self, _: RunId, _: &str) -> Result<(), EngineError> { todo!() } pub async fn shutdown(&self) {} pub fn subscribe(&self) -> tokio::sync::broadcast::Receiver<RunRecord> { todo!() } }
