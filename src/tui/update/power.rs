//! The power of one host: the dialog, the question before what interrupts, and what is asked of the BMC (U10).

use super::fleet::moved;
use crate::domain::rack::PowerWish;
use crate::tui::action::Action;
use crate::tui::effect::Effect;
use crate::tui::model::input::Input;
use crate::tui::model::power::{Looked, PowerDialog, WISHES};
use crate::tui::model::{Confirm, Model, Popup, ToastKind};

/// Opens the dialog for the host that keys act on, and looks how it stands.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let Some(host) = model.target().map(|host| host.device.name.to_string()) else { return Vec::new() };
    model.popup = Some(Popup::Power(PowerDialog::of(&host)));
    vec![Effect::LookPower { host }]
}

/// How the host stands. It may come when another dialog is open.
pub(super) fn looked(model: &mut Model, host: &str, looked: Looked) -> Vec<Effect> {
    if let Some(Popup::Power(dialog)) = &mut model.popup
        && dialog.host == host
    {
        dialog.looked = Some(looked);
    }
    Vec::new()
}

/// Does an action of the dialog.
pub(super) fn act(model: &mut Model, mut dialog: PowerDialog, action: Action) -> Vec<Effect> {
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::First | Action::HalfUp => i64::MIN,
        Action::Last | Action::HalfDown => i64::MAX,
        Action::SetPower => return go_on(model, dialog),
        _ => 0,
    };
    dialog.choice = moved(dialog.choice, by, WISHES.len());
    model.popup = Some(Popup::Power(dialog));
    Vec::new()
}

/// Asks before what interrupts; where somebody lives on the host, for its name.
fn go_on(model: &mut Model, dialog: PowerDialog) -> Vec<Effect> {
    let (host, wish) = (dialog.host.clone(), dialog.wish());
    if !wish.interrupts() {
        return ask(model, host, wish, None);
    }
    let lives = dialog.looked.and_then(|looked| looked.lives);
    let ends = match wish {
        PowerWish::Off { hard: false } => "Its operating system is asked to end; after a minute the host is cut off.",
        PowerWish::Off { hard: true } => "The host is cut off at once: what it has not written is lost.",
        PowerWish::Cycle => "The host is off and on again at once: what it has not written is lost.",
        PowerWish::On => "",
    };
    let mut lines = vec![ends.to_owned()];
    let typed = lives.map(|what| {
        lines.push(format!("Mind: {what}. Type {host} to go on."));
        (host.clone(), Input::default())
    });
    model.popup = Some(Popup::Confirm(Confirm {
        title: format!("{} · {host} · 1 host", wish.words()),
        lines,
        yes: wish.words().to_owned(),
        no: "leave it".to_owned(),
        on_yes: false,
        effects: vec![Effect::Power { host: host.clone(), wish, typed: typed.is_some().then_some(host) }],
        typed,
    }));
    Vec::new()
}

/// A host may take a minute: that its BMC is asked is said at once.
fn ask(model: &mut Model, host: String, wish: PowerWish, typed: Option<String>) -> Vec<Effect> {
    model.toast(ToastKind::Info, format!("asking the BMC of {host}: {}", wish.words()), None);
    vec![Effect::Power { host, wish, typed }]
}
