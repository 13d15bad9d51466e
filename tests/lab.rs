//! The lab as a whole: it starts, its state machine walks, its faults bite, its configuration is one that muster reads.

use muster::lab::Lab;
use muster::lab::scenario::Scenario;

#[tokio::test]
async fn the_demo_starts_and_its_configuration_can_be_read() {
    let lab = Lab::start(Scenario::demo().unwrap(), 8.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = lab.write_config(folder.path()).unwrap();
    println!("{}", std::fs::read_to_string(&path).unwrap());
    let settings = muster::config::load(&path).unwrap();
    assert_eq!(settings.sites.len(), 2);
}
