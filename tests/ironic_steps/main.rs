//! Every Ironic step of an enrollment, one at a time, over the lab.

mod bench;
mod guards;
mod locks;
mod networking;
mod recovery;
mod walk;
