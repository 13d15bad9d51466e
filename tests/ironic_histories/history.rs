//! A history as a seed makes it.

use muster::domain::provision::ProvisionState;

/// What NetBox wants of the host: its name, and what stands in `ironic_settings` beside the usual.
pub const SHAPES: [(&str, &str); 6] = [
    ("plain", ""),
    ("bond", "bond = { name = \"bond0\", mode = \"802.3ad\", miimon = 100, xmit_hash_policy = \"layer3+4\" }"),
    (
        "software raid",
        "raid_interface = \"agent\"\ntarget_raid_config = { logical_disks = [{ size_gb = \"MAX\", raid_level = \"1\", controller = \"software\" }] }",
    ),
    (
        "hardware raid and a hint",
        "raid_interface = \"agent\"\ntarget_raid_config = { logical_disks = [{ size_gb = \"MAX\", raid_level = \"1\", controller = \"PERC H755\" }] }\n\
         root_device = { wwn = \"0x5000c500a1b2c3d4\" }",
    ),
    ("cables not verified", "skip_cable_verification = true"),
    (
        "ipmi",
        "driver = \"ipmi\"\nboot_interface = \"ipxe\"\nmanagement_interface = \"ipmitool\"\n\
      power_interface = \"ipmitool\"\nvendor_interface = \"ipmitool\"",
    ),
];

/// SplitMix64: the same numbers on every machine and with every version of every crate.
pub struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to n - 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Once in n times.
    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The node at the beginning.
#[derive(Debug, Clone)]
pub struct Start {
    pub state: ProvisionState,
    pub instance: bool,
    pub maintenance: bool,
    pub driver: Option<&'static str>,
    /// Another root-device hint than NetBox's.
    pub hint: bool,
    pub software_raid: bool,
    pub inventory: bool,
    pub wrong_credential: bool,
    pub ports: Ports,
    pub powered: bool,
}

/// The node's ports at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ports {
    AsWanted,
    None,
    WithoutLinks,
    /// One of another NIC boots.
    AnotherBoots,
    /// One of our addresses is on another node.
    Stolen,
}

/// What others do to the node.
#[derive(Debug, Clone)]
pub enum Meddle {
    State(ProvisionState),
    Instance(bool),
    Deployed,
    Maintenance(bool),
    /// Another client holds the node for so many seconds.
    Lock(u64),
    Delete,
    Steal,
    AnotherBoots,
    Unlink,
    Driver(&'static str),
}

/// What goes wrong on the way to Ironic.
#[derive(Debug, Clone, Copy)]
pub enum Mishap {
    Lost,
    AnswerLost,
    Busy,
    NoConductor,
    Conflict,
}

#[derive(Debug, Clone)]
pub struct History {
    /// Shown with the history.
    #[allow(dead_code, reason = "it is printed")]
    pub seed: u64,
    /// Which of [`SHAPES`].
    pub shape: usize,
    /// `None`: there is no node yet.
    pub start: Option<Start>,
    pub run_inspection: bool,
    pub force_inspection: bool,
    pub switch_driver: bool,
    pub attempts: Option<u32>,
    /// A pinned UUID: that of the node, or another one.
    pub pinned: Option<bool>,
    pub inspection_fails: u32,
    pub inspection_silent: u32,
    pub clean_fails: u32,
    /// Seconds for which no link comes up after each of the next power ons.
    pub dark: Option<u64>,
    pub links_unreported: bool,
    pub cables_swapped: bool,
    /// By the number of the request to Ironic that comes next.
    pub meddles: Vec<(u32, Meddle)>,
    pub mishaps: Vec<(u32, Mishap)>,
    /// During which request the run is cancelled; before or after it has arrived.
    pub cancel: Option<(u32, bool)>,
}

impl History {
    pub fn of(seed: u64) -> History {
        let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x6d75_7374_6572);
        // The first number of neighbouring seeds is alike.
        dice.next();
        let shape = dice.below(SHAPES.len() as u64) as usize;
        let start = (!dice.once_in(4)).then(|| start(&mut dice));
        let some = |dice: &mut Dice, n: u64, most: u64| if dice.once_in(n) { 1 + dice.below(most) as u32 } else { 0 };
        let (meddles, mishaps) = (events(&mut dice, meddle), events(&mut dice, mishap));
        History {
            seed,
            shape,
            start,
            run_inspection: !dice.once_in(5),
            force_inspection: dice.once_in(4),
            switch_driver: dice.once_in(3),
            attempts: dice.once_in(3).then(|| 1 + dice.below(3) as u32),
            pinned: dice.once_in(12).then(|| dice.once_in(2)),
            inspection_fails: some(&mut dice, 6, 4),
            inspection_silent: some(&mut dice, 20, 2),
            clean_fails: some(&mut dice, 5, 4),
            dark: dice.once_in(8).then(|| 60 + dice.below(600)),
            links_unreported: dice.once_in(6),
            cables_swapped: dice.once_in(15),
            meddles,
            mishaps,
            cancel: dice.once_in(6).then(|| (1 + dice.below(60) as u32, dice.once_in(2))),
        }
    }

    /// The same without one of the things that it is made of.
    pub fn smaller(&self) -> Vec<History> {
        let mut all = Vec::new();
        for n in 0..self.meddles.len() {
            let mut meddles = self.meddles.clone();
            meddles.remove(n);
            all.push(History { meddles, ..self.clone() });
        }
        for n in 0..self.mishaps.len() {
            let mut mishaps = self.mishaps.clone();
            mishaps.remove(n);
            all.push(History { mishaps, ..self.clone() });
        }
        let mut without = |is_there: bool, change: &dyn Fn(&mut History)| {
            if is_there {
                let mut history = self.clone();
                change(&mut history);
                all.push(history);
            }
        };
        without(self.cancel.is_some(), &|h| h.cancel = None);
        without(self.clean_fails > 0, &|h| h.clean_fails -= 1);
        without(self.inspection_fails > 0, &|h| h.inspection_fails -= 1);
        without(self.inspection_silent > 0, &|h| h.inspection_silent -= 1);
        without(self.dark.is_some(), &|h| h.dark = None);
        without(self.links_unreported, &|h| h.links_unreported = false);
        without(self.cables_swapped, &|h| h.cables_swapped = false);
        without(self.pinned.is_some(), &|h| h.pinned = None);
        without(self.switch_driver, &|h| h.switch_driver = false);
        without(self.force_inspection, &|h| h.force_inspection = false);
        without(!self.run_inspection, &|h| h.run_inspection = true);
        without(self.attempts.is_some(), &|h| h.attempts = None);
        without(self.shape != 0, &|h| h.shape = 0);
        if let Some(start) = &self.start {
            let mut plainer = |is_there: bool, change: &dyn Fn(&mut Start)| {
                if is_there {
                    let mut start = start.clone();
                    change(&mut start);
                    all.push(History { start: Some(start), ..self.clone() });
                }
            };
            plainer(start.instance, &|s| s.instance = false);
            plainer(start.maintenance, &|s| s.maintenance = false);
            plainer(start.driver.is_some(), &|s| s.driver = None);
            plainer(start.hint, &|s| s.hint = false);
            plainer(start.software_raid, &|s| s.software_raid = false);
            plainer(start.wrong_credential, &|s| s.wrong_credential = false);
            plainer(start.ports != Ports::AsWanted, &|s| s.ports = Ports::AsWanted);
        }
        all
    }
}

/// States that histories begin in or are put into: those that enrollment deals with far more often than the others.
fn state(dice: &mut Dice) -> ProvisionState {
    use ProvisionState::*;
    if dice.once_in(4) {
        let n = dice.below(ProvisionState::KNOWN.len() as u64 + 1) as usize;
        return ProvisionState::KNOWN.get(n).cloned().unwrap_or_else(|| "a state of the future".into());
    }
    let usual = [Enroll, Manageable, Manageable, InspectFailed, CleanFailed, CleanFailed, Available, Active, CleanWait];
    usual[dice.below(usual.len() as u64) as usize].clone()
}

fn start(dice: &mut Dice) -> Start {
    Start {
        state: state(dice),
        instance: dice.once_in(6),
        maintenance: dice.once_in(3),
        driver: dice.once_in(6).then(|| dice.pick(&["ipmi", "idrac", "fake-hardware"])),
        hint: dice.once_in(3),
        software_raid: dice.once_in(8),
        inventory: !dice.once_in(3),
        wrong_credential: dice.once_in(8),
        ports: dice.pick(&[
            Ports::AsWanted,
            Ports::AsWanted,
            Ports::AsWanted,
            Ports::None,
            Ports::None,
            Ports::WithoutLinks,
            Ports::AnotherBoots,
            Ports::Stolen,
        ]),
        powered: dice.once_in(2),
    }
}

/// None in half of the histories, up to three in the others, each before some request.
fn events<T>(dice: &mut Dice, one: fn(&mut Dice) -> T) -> Vec<(u32, T)> {
    let count = if dice.once_in(2) { 0 } else { 1 + dice.below(3) };
    let mut events: Vec<(u32, T)> = (0..count).map(|_| (1 + dice.below(50) as u32, one(dice))).collect();
    events.sort_by_key(|(at, _)| *at);
    events
}

fn meddle(dice: &mut Dice) -> Meddle {
    match dice.below(16) {
        0..=2 => Meddle::State(state(dice)),
        3..=4 => Meddle::Instance(true),
        5 => Meddle::Instance(false),
        6 => Meddle::Deployed,
        7..=8 => Meddle::Maintenance(dice.once_in(2)),
        9..=11 => Meddle::Lock(5 + dice.below(1500)),
        12 => Meddle::Steal,
        13 => Meddle::AnotherBoots,
        14 => Meddle::Unlink,
        _ => match dice.below(3) {
            0 => Meddle::Delete,
            1 => Meddle::Driver("ipmi"),
            _ => Meddle::Driver("fake-hardware"),
        },
    }
}

fn mishap(dice: &mut Dice) -> Mishap {
    dice.pick(&[
        Mishap::Lost,
        Mishap::AnswerLost,
        Mishap::AnswerLost,
        Mishap::Busy,
        Mishap::NoConductor,
        Mishap::Conflict,
    ])
}
