//! The engine: durable execution of workflows.
